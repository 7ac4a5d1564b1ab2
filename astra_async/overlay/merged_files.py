"""Files of which an answer changes parts: package.json and .env.

- Of an answer's package.json only dependencies and devDependencies reach the pristine one. Scripts, runner
  settings (`jest`, `mocha`, `babel`), `type`, `main`, `imports` and all else steer the test process and stay
  as they are. Entries that the answer adds or changes are taken; removals are ignored, as they could only
  break what the image has installed. A version is taken only as a plain range: aliases (`npm:other@1`),
  paths, links and addresses would put other code under a library's name.
- Of an .env file an application's own variables are taken; the lines that steer a test process are always
  the pristine ones, in their order, whatever the answer does with them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from astra_async.types import Dropped

_MERGED = ("dependencies", "devDependencies")
_NAME = re.compile(r"(?:@[a-z0-9._~-]{1,100}/)?[a-zA-Z0-9._~-]{1,200}")
_ENVIRONMENT_FILE = re.compile(r"(?:.*/)?\.env(?:\.[\w.-]{1,40})?")
_VERSION = re.compile(r"[\w.+~^<>=|* -]{1,100}")


def is_package_json(path: str) -> bool:
    """Whether a path is a package.json: of a pristine one only dependencies may change."""
    return path.rpartition("/")[2] == "package.json"


def is_environment_file(path: str) -> bool:
    """Whether a path is a .env file or one of its kind (`.env.local`), whose variables decide."""
    return _ENVIRONMENT_FILE.fullmatch(path) is not None


def merged_package_json(path: str, pristine: bytes, answer: str) -> tuple[bytes | None, list[Dropped]]:
    """An answer's package.json merged into the pristine one, and what was dropped.

    None for the text when nothing of the answer's was taken.
    """
    old, new = _object(pristine.decode(errors="replace")), _object(answer)
    if old is None or new is None:
        return None, [Dropped(path=path, reason="invalid_json")]
    dropped = [
        Dropped(path=f"{path}#{key}", reason="runner_configuration")
        for key in dict.fromkeys([*new, *old])
        if key not in _MERGED and old.get(key) != new.get(key, old.get(key))
    ]
    result = dict(old)
    for section in _MERGED:
        _merge_section(path, section, new.get(section), result, dropped)
    if result == old:
        return None, dropped
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    return text.encode(errors="replace"), dropped


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text.removeprefix("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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


# Variables by which a test runner, an interpreter or a package manager can be steered. NODE_ENV is not
# among them: runners set it themselves, and dotenv never replaces what is set.
_STEERING = re.compile(
    r"(?:^|\b)(NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_EXTRA_CA_CERTS|DJANGO_SETTINGS_MODULE|TEST_RUNNER|TESTOPTS"
    r"|(?:JEST|VITEST|MOCHA|KARMA|BABEL|CYPRESS|PLAYWRIGHT|NPM_CONFIG|YARN|PYTEST|PYTHON|COVERAGE|RUBY|BUNDLE|GEM|RSPEC"
    r"|MINITEST|MAVEN|JAVA|JDK|GRADLE|DOTNET|PHPUNIT|LD|DYLD|BASH|TS_NODE|SWC|CHROME|TEST|TESTS)_\w{0,80}"
    r"|(?:PYTHON|RUBY|MAVEN|JAVA|LD)(?:PATH|OPT|LIB|HOME|STARTUP|WARNINGS)|RUBYOPT|RAILS_ENV|RACK_ENV|PATH|IFS|SHELL|HOME)"
    r"\s{0,20}[=:]",
    re.IGNORECASE,
)


# At most one value in quotes, with neither quotes nor escapes in it; or a comment.
_PLAIN = re.compile(r"""\s*+\#.*|[^"'`\\]*+(?:"[^"'`\\]*+"|'[^"'`\\]*+')?[^"'`\\]*+""", re.DOTALL)


def merged_environment(path: str, pristine: bytes, answer: str) -> tuple[str | None, list[Dropped]]:
    """An answer's .env with the pristine one's steering lines, and the answer's own as dropped parts.

    None for the text when nothing of the answer's was taken. A steering line stands where the answer repeats
    it, below what it may refer to; one that is missing comes before the next of them, or last.
    """
    lines = pristine.decode(errors="replace").removeprefix("\ufeff").splitlines(keepends=True)
    fixed = [line for line in lines if _steered(line)]
    waiting, known = list(map(_bare, fixed)), set(map(_bare, fixed))
    merged, own, dropped = [], [], []
    for line in answer.splitlines(keepends=True):
        steered, bare = _steered(line), _bare(line)
        if steered is None:
            own.append(line)
            merged.append(line)
        elif bare in waiting:
            passed = waiting.index(bare) + 1
            del waiting[:passed]
            at = len(fixed) - len(waiting)
            merged += fixed[at - passed : at]
        elif bare not in known:
            dropped.append(Dropped(path=f"{path}#{steered}", reason="runner_configuration"))
    if dropped and not "".join(own).strip():
        return None, dropped
    merged += fixed[len(fixed) - len(waiting) :]
    # A quotation mark that stays open, whoever reads it, takes the lines below it into its value.
    return _joined(merged if all(map(_PLAIN.fullmatch, own)) else fixed + own), dropped


def _steered(line: str) -> str | None:
    """The steering variable that a line sets, or None."""
    if line.lstrip().startswith(("=", ":")):  # Node's dotenv sets what the line above names
        return line.strip()[:1]
    found = _STEERING.search(line)
    return found.group(1) if found else None


def _bare(line: str) -> str:
    return line.strip("\ufeff \t\r\n")


def _joined(lines: list[str]) -> str:
    """Lines as one text; the last alone may be without an end."""
    above = (line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines[:-1])
    return "".join([*above, *lines[-1:]])
