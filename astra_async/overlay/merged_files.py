"""Files of which an answer changes parts: .env here, those of the languages in their folders.

Of an .env file an application's own variables are taken; the lines that steer a test process are always the
pristine ones, in their order, whatever the answer does with them.
"""

from __future__ import annotations

import re

from astra_async.languages import LANGUAGES
from astra_async.languages.language import Merge
from astra_async.problems.source_text import as_utf8
from astra_async.types import Dropped

_ENVIRONMENT_FILE = re.compile(r"(?:.*/)?\.env(?:\.[\w.-]{1,40})?")


def merge_of(path: str, pristine: str | None) -> Merge | None:
    """How a path is merged; None where the answer's text is taken as it is. No pristine text: a new file."""
    if _ENVIRONMENT_FILE.fullmatch(path):
        return _ENVIRONMENT
    rules = (language.merge for language in LANGUAGES if language.merge)
    return next(
        (each for each in rules if (each.new or pristine is not None) and each.takes(path, pristine or "")),
        None,
    )


def staying(path: str, content: bytes) -> bytes:
    """The part of a pristine file that no answer changes; empty where answers are taken as they are."""
    merge = merge_of(path, "")
    return merge.parted(_text(content))[1].encode() if merge else b""


def with_staying(path: str, part: bytes, content: bytes) -> bytes:
    """A file as an answer left it, or the pristine one, with another such part.

    Invariant: where that part is not found again the file is empty, never with the part that it had.
    """
    merge = merge_of(path, "")
    merged = merge and merge.merged(path, _text(part), _text(content))[0]
    return (merged or "").encode()


def _text(content: bytes) -> str:
    return as_utf8(content).decode(errors="replace")


# Variables by which a test runner, an interpreter or a package manager can be steered. NODE_ENV is not
# among them: runners set it themselves, and dotenv never replaces what is set.
_STEERING = re.compile(
    r"(?:^|\b)((?:COVERAGE|LD|DYLD|BASH|CHROME|TEST|TESTS)_\w{0,80}|LD(?:PATH|OPT|LIB|HOME|STARTUP|WARNINGS)"
    rf"|PATH|IFS|SHELL|HOME|{'|'.join(each.tools.variables for each in LANGUAGES if each.tools.variables)})"
    r"\s{0,20}[=:]",
    re.IGNORECASE,
)


# At most one value in quotes, with neither quotes nor escapes in it; or a comment.
_PLAIN = re.compile(r"""\s*+\#.*|[^"'`\\]*+(?:"[^"'`\\]*+"|'[^"'`\\]*+')?[^"'`\\]*+""", re.DOTALL)


def _merged_environment(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    """An answer's .env with the pristine one's steering lines, and the answer's own as dropped parts.

    None for the text when nothing of the answer's was taken. A steering line stands where the answer repeats
    it, below what it may refer to; one that is missing comes before the next of them, or last.
    """
    lines = pristine.removeprefix("\ufeff").splitlines(keepends=True)
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


_ENVIRONMENT = Merge(
    takes=lambda path, _: _ENVIRONMENT_FILE.fullmatch(path) is not None, merged=_merged_environment
)
