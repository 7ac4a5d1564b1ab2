"""Go's own names (the universe block), which a package's sources may declare anew for its tests, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import at_top, closing, masked
from astra_async.languages.project_files import split

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine

_VALUES_AND_TYPES = (
    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    " string uint uint8 uint16 uint32 uint64 uintptr true false iota nil"
)
_FUNCTIONS = (  # used where they are called: fields and variables of these names are none of them
    "append cap clear close complex copy delete imag len make max min new panic print println real recover"
)
_CALLED = frozenset(f"{each}(" for each in (*_VALUES_AND_TYPES.split(), *_FUNCTIONS.split()))
_UNIVERSE = _CALLED | frozenset(_VALUES_AND_TYPES.split())
_NAMES = r"\w+(?:\s*,\s*\w+)*"
_BEGIN = r"(?<![^\n;(])[ \t\r]*"  # of a declaration at the top of a file, or in a group of them
_DECLARATION = re.compile(
    rf"{_BEGIN}(?:func\s+(?P<function>\w+)\s*[(\[]|(?:type|var|const)\s*(?:\(|(?<=\s)(?P<names>{_NAMES})))"
)
# A line goes on behind what ends nothing (Go's rule for semicolons).
_GOES_ON = re.compile(r"(?<=[^\w)\]}(;\s])\s*\n")
_GROUPED = re.compile(_BEGIN + rf"(?P<names>{_NAMES})")
_WORD = re.compile(r"(?<![.\w])[a-z]\w*")
_USE = re.compile(r"(?<![.\w])[a-z]\w*+(?:[ \t]*+\()?")
SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,10}'", re.DOTALL)


class UniverseLookup:
    """Of a package no source may declare what its tests use of Go's own names, unless it does already."""

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        self._used: dict[str, set[str]] = {}  # by the tests of each folder
        for path in project.protected:
            if path.endswith("_test.go"):
                uses = _USE.findall(masked(project.texts[path], SKIPPED))
                used = {re.sub(r"[ \t]", "", each) for each in uses} & _UNIVERSE
                words = {each.removesuffix("(") for each in used}
                self._used.setdefault(split(path)[0], set()).update(words)

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        folder, _stem, suffix = split(path)
        used = self._used.get(folder, set()) if suffix == "go" else set()
        new = (_declared(text) if used else set()) - _declared(self._texts.get(path, ""))
        return INSTALLED if used & new else None


def _declared(text: str) -> set[str]:
    """The names that stand at the top of a file; methods and fields may be called what they like."""
    code = _GOES_ON.sub(" ", masked(text, SKIPPED))
    names: set[str] = set()
    for found in at_top(code, 0, len(code), _DECLARATION):
        names.add(found["function"] or "")
        names.update(_WORD.findall(found["names"] or ""))
        if found[0].endswith("(") and not found["function"]:
            for each in at_top(code, found.end(), closing(code, found.end() - 1), _GROUPED):
                names.update(_WORD.findall(each["names"]))
    return names
