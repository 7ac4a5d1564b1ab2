"""JavaScript and TypeScript, on Node.js and in the browser."""

from __future__ import annotations

import re

from astra_async.languages.javascript.image import MANAGERS, find_node, installs
from astra_async.languages.javascript.lookup import SOURCES, NodeLookup
from astra_async.languages.javascript.mutate import read_tests
from astra_async.languages.javascript.offline import OFFLINE
from astra_async.languages.javascript.package_json import PACKAGE_JSON
from astra_async.languages.javascript.tools import TOOLS
from astra_async.languages.language import Images, Language, TestFiles

_EXT = r"\.(?:[cm]?[jt]sx?|vue|coffee)"
JAVASCRIPT = Language(
    name="javascript",
    suffixes=SOURCES,
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
        holds="javascript/installed.sh",
    ),
    tools=TOOLS,
    tests=TestFiles(
        paths=re.compile(
            rf"[.](?:tests?|specs?|cy|e2e|e2e-spec){_EXT}$|\.snap$"
            r"|(?:^|/)(?:__tests__|__mocks__|__snapshots__|__fixtures__)/|^(?:e2e|cypress|playwright)/"
            r"|(?:^|/)src/test\.[jt]s$"  # Angular's, which loads every spec file for karma
        ),
        likely=re.compile(rf"(?:^|[-_./])(?:[Tt]ests?|[Ss]pecs?)(?:[-_.][^/]*)?{_EXT}$|[a-z]Tests?{_EXT}$"),
        content=(
            re.compile(r"(?<![.\w$])(?:it|test|specify)(?:\.(?:only|skip|each|concurrent))?\(\s{0,50}[\"'`]"),
            re.compile(r"\bexpect\s?\(|\bassert\b|\bshould\b|\.expect\(|\bt\.(?:is|equal|ok|same)\("),
        ),
        alone=re.compile(r"\.snap$|(?:^|/)__snapshots__/"),
        folders=frozenset(
            {*("__tests__", "__mocks__", "__snapshots__", "__fixtures__"), *("e2e", "cypress", "playwright")}
        ),
    ),
    lookup=NodeLookup,
    merge=PACKAGE_JSON,
    offline=OFFLINE,
    compiled=r"\.node$",
    unbuilt=(
        r"SyntaxError|Syntax Error|ParseError|Module parse failed|Failed to compile|error (?:TS|NG)\d"
        r"|Test suite failed to run|Cannot find module"
    ),
    mutate=read_tests,
)
