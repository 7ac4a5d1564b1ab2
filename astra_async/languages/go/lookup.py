"""Go's own names (the universe block), which a package's sources may declare anew for its tests, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import MOST_CHARACTERS, masked
from astra_async.languages.project_files import split

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine

_UNIVERSE = (
    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    " string uint uint8 uint16 uint32 uint64 uintptr true false iota nil append cap clear close complex copy"
    " delete imag len make max min new panic print println real recover"
)
_NAME = rf"(?:{_UNIVERSE.replace(' ', '|')})"
# At the top of a file: a declaration, or a line of a group of them. Methods and fields have such names, too.
_DECLARED = re.compile(
    rf"^(?:func {_NAME}[\[(]|(?:type|var|const)[ \t]+{_NAME}\b"
    rf"|(?:var|const)[ \t]+[\w, \t]*\b{_NAME}[ \t]*(?:,|=))"
    rf"|^(?:type|var|const)[ \t]*\((?:[^()]|\([^()]*\))*?^[ \t]*(?:\w+[ \t]*,[ \t]*)*{_NAME}\b",
    re.MULTILINE,
)
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|`[^`]*`|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


class UniverseLookup:
    """Of a package with tests no source may declare what Go declares itself, unless one does already."""

    def __init__(self, project: Pristine) -> None:
        texts = project.texts
        self._tested = {split(path)[0] for path in project.protected if path.endswith("_test.go")}
        self._declared = {path for path, text in texts.items() if path.endswith(".go") and _declares(text)}

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        folder, _stem, suffix = split(path)
        is_tested = suffix == "go" and folder in self._tested and path not in self._declared
        return INSTALLED if is_tested and _declares(text) else None


def _declares(text: str) -> bool:
    return _DECLARED.search(masked(text[:MOST_CHARACTERS], SKIPPED)) is not None
