"""JavaScript and TypeScript, on Node.js."""

from __future__ import annotations

import re

from astra_async.languages.javascript.image import MANAGERS, find_node, installs
from astra_async.languages.language import Images, Language

JAVASCRIPT = Language(
    name="javascript",
    suffixes=frozenset({"js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts"}),
    images=Images(
        find=find_node,
        calls=re.compile(
            r"(?<![\w./-])(?:npm|npx|yarn|pnpm|node|ng|jest|mocha|vitest|karma|react-scripts|vue-cli-service"
            r"|tape|cypress)(?![\w./-])|node_modules/\.bin"
        ),
        signs=("package.json",),
        installs=installs,
        managers=MANAGERS,
        leavings=("package-lock.json", "yarn.lock", "pnpm-lock.yaml"),
    ),
)
