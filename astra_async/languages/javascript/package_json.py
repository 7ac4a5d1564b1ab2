"""Of an answer's package.json only dependencies and devDependencies reach the pristine one.

Scripts, runner settings (`jest`, `mocha`, `babel`), `type`, `main`, `imports` and all else steer the test
process and stay as they are. Entries that the answer adds or changes are taken; removals are ignored, as they
could only break what the image has installed. A version is taken only as a plain range: aliases
(`npm:other@1`), paths, links and addresses would put other code under a library's name.
"""

from __future__ import annotations

import json
import re
from typing import Any

from astra_async.languages.language import RUNNER, Merge
from astra_async.languages.project_files import read_table
from astra_async.types import Dropped

_MERGED = ("dependencies", "devDependencies")
_NAME = re.compile(r"(?:@[a-z0-9._~-]{1,100}/)?[a-zA-Z0-9._~-]{1,200}")
_VERSION = re.compile(r"[\w.+~^<>=|* -]{1,100}")


def _merged(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    old, new = read_table(pristine, strict=False), read_table(answer, strict=False)
    if old is None or new is None:
        return None, [Dropped(path=path, reason="invalid_json")]
    dropped = [
        Dropped(path=f"{path}#{key}", reason=RUNNER)
        for key in dict.fromkeys([*new, *old])
        if key not in _MERGED and old.get(key) != new.get(key, old.get(key))
    ]
    result = dict(old)
    for section in _MERGED:
        _merge_section(path, section, new.get(section), result, dropped)
    if result == old:
        return None, dropped
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n", dropped


def _merge_section(
    path: str, section: str, wanted: Any, result: dict[str, Any], dropped: list[Dropped]
) -> None:
    existing = result.get(section, {})
    if wanted is None or not isinstance(existing, dict):
        return
    entries = wanted.items() if isinstance(wanted, dict) else [("", wanted)]
    taken = dict(existing)
    for name, version in entries:
        if taken.get(name) == version:
            continue
        if isinstance(version, str) and _NAME.fullmatch(name) and _VERSION.fullmatch(version):
            taken[name] = version
        else:
            dropped.append(Dropped(path=f"{path}#{section}.{name[:200]}", reason="not_a_version"))
    if taken != existing:
        result[section] = taken


PACKAGE_JSON = Merge(
    takes=lambda path, _: path.rpartition("/")[2] == "package.json",
    merged=_merged,
)
