"""What a problem's tests show to a reader of their language."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.altering import DeclaredTest, parts_exchanged
from astra_async.overlay.merged_files import staying

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.overlay import PathPolicy

_READERS = {suffix: each.trial for each in LANGUAGES for suffix in each.suffixes if each.trial}
_MAX_BYTES = 400_000  # of a test file that is read


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a problem's tests show to a reader, by the path of their file.

    `sources` are the texts that were read: of a file of tests all, of a source the tests inside of it.
    """

    files: Mapping[str, tuple[DeclaredTest, ...]]
    sources: Mapping[str, bytes]
    _ends: dict[str, list[int]] = field(default_factory=dict)  # of the lines of a text, as they are asked for

    def line(self, path: str, at: int) -> int:
        """The number of the line in which a place of a text stands."""
        if path not in self._ends:
            self._ends[path] = [each.end() for each in re.finditer(rb"\n", self.sources[path])]
        return bisect_right(self._ends[path], at)

    @property
    def tests(self) -> list[DeclaredTest]:
        """All tests of all files."""
        return [test for each in self.files.values() for test in each]

    @property
    def alterable(self) -> int:
        """How many tests can be altered."""
        return sum(bool(test.alterations) for test in self.tests)


def survey(policy: PathPolicy) -> Survey:
    """Read the tests of the languages that can be read."""
    files: dict[str, tuple[DeclaredTest, ...]] = {}
    sources: dict[str, bytes] = {}
    for path, file in sorted(policy.files.items()):
        read = _READERS.get(path.rpartition(".")[2].lower())
        if read is None or file.link is not None or len(file.content) > _MAX_BYTES:
            continue
        source = file.content if path in policy.tests else staying(path, file.content)
        if source and (found := read(path, source)):
            files[path], sources[path] = tuple(_with_parts(source, test) for test in found), source
    return Survey(files=files, sources=sources)


def _with_parts(source: bytes, test: DeclaredTest) -> DeclaredTest:
    """The test, of which a text may also be asked with two parts of it exchanged."""
    exchanged = (each for place in test.alterations for each in parts_exchanged(source, place))
    return replace(test, alterations=(*test.alterations, *exchanged))


def held_titles(names: Iterable[str], titles: Iterable[str]) -> dict[str, frozenset[str]]:
    """Names that hold titles, as words of their own, with these; a title within a longer one counts nothing.

    minitest numbers its specs: `test_0001_adds prices`.
    """
    known = sorted({title for title in titles if title}, key=len, reverse=True)
    found = {}
    for name in names:
        held: list[str] = []
        for title in known:
            words = rf"(?:(?<!\w)|(?<=test_\d{{4}}_)){re.escape(title)}(?!\w)"
            if title in name and not any(title in each for each in held) and re.search(words, name):
                held.append(title)
        if held:
            found[name] = frozenset(held)
    return found
