"""What a problem's tests show to a reader of their language."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.altering import DeclaredTest, rewritten
from astra_async.languages.other_values import parts_exchanged
from astra_async.overlay.merged_files import staying

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    from astra_async.languages.altering import Alteration
    from astra_async.overlay import PathPolicy

_READERS = {suffix: each.trial for each in LANGUAGES for suffix in each.suffixes if each.trial}
_MAX_BYTES = 400_000  # of a test file that is read
_VARIABLE = re.compile(rb"^[ \t]*(?:(?:const|let|let mut|var) )?\$?([a-z]\w{2,}) = ", re.MULTILINE)
_WANTED = {b"wanted", b"expected", b"answer", b"outcome", b"result"}  # as people name what a row expects


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a problem's tests show to a reader, by the path of their file.

    `sources` are the texts that were read: of a file of tests all, of a source the tests inside of it;
    `names` are those of variables in all of the project's files, by the files' suffix.
    """

    files: Mapping[str, tuple[DeclaredTest, ...]]
    sources: Mapping[str, bytes]
    names: Mapping[str, set[bytes]]
    _words: dict[str, set[bytes]] = field(default_factory=dict)
    _ends: dict[str, list[int]] = field(default_factory=dict)  # of the lines of a text, as they are asked for

    def line(self, path: str, at: int) -> int:
        """The number of the line in which a place of a text stands."""
        if path not in self._ends:
            self._ends[path] = [each.end() for each in re.finditer(rb"\n", self.sources[path])]
        return bisect_right(self._ends[path], at)

    def written(self, path: str, edits: Iterable[tuple[Alteration, bytes]]) -> bytes:
        """A text, in whose places something else stands."""
        source = self.sources[path]
        written = (each for place, text in edits for each in place.edits(source, text))
        return rewritten(source, dict.fromkeys(written))  # tests may share what is written in their functions

    def new_name(self, path: str, rng: random.Random) -> bytes:
        """A variable's name that this file does not have, of another file where there is one.

        Nor is it a word of what notes comparisons in this file, or looks like a test's.
        """
        if path not in self._words:
            noting = {text for test in self.files[path] if test.noted for _, text in test.noted.also}
            self._words[path] = set(re.findall(rb"\w+", b" ".join([self.sources[path], *noting])))
        words = self._words[path]
        names = {
            each for each in self.names[_suffix(path)] - words if not each.startswith((b"test", b"pytest"))
        }
        names = names or _WANTED - words
        return rng.choice(sorted(names or {b"wanted_here"}))

    @property
    def tests(self) -> list[DeclaredTest]:
        """All tests of all files."""
        return [test for each in self.files.values() for test in each]

    @property
    def alterable(self) -> int:
        """How many tests can be altered."""
        return sum(test.is_alterable for test in self.tests)


def survey(policy: PathPolicy) -> Survey:
    """Read the tests of the languages that can be read."""
    files: dict[str, tuple[DeclaredTest, ...]] = {}
    sources: dict[str, bytes] = {}
    names: dict[str, set[bytes]] = defaultdict(set)
    for path, file in sorted(policy.files.items()):
        suffix = _suffix(path)
        read = _READERS.get(suffix)
        if read is None or file.link is not None or len(file.content) > _MAX_BYTES:
            continue
        names[suffix].update(_VARIABLE.findall(file.content))
        source = file.content if path in policy.tests else staying(path, file.content)
        if source and (found := read(path, source)):
            files[path], sources[path] = tuple(_with_parts(source, test) for test in found), source
    return Survey(files=files, sources=sources, names=names)


def _suffix(path: str) -> str:
    return path.rpartition(".")[2].lower()


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
