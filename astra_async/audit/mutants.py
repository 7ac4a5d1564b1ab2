"""Mutated test suites: a problem's own tests, parsed, with one place of each test changed.

The problem's hash seeds the random choices, so every audit of a problem uses the same suites.
"""

from __future__ import annotations

import asyncio
import random
import re
import resource
import sys
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from astra_async.errors import SandboxError
from astra_async.languages import LANGUAGES
from astra_async.languages.mutations import NEGATION, MutableTest
from astra_async.overlay.merged_files import fixed_part, with_fixed_part

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Self

    from astra_async.languages.mutations import Place, TestReader
    from astra_async.prepare import Prepared
    from astra_async.types import Changed, Project, ProjectFile


_CPU_S, _WALL_S = 60, 120.0
_MEMORY_BYTES = 2 * 1024**3
_MOST_BYTES = 400_000  # of one file; larger files are not mutated
_TESTS = msgspec.json.Decoder(list[MutableTest])


async def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Return the tests in these files that can be mutated. Raises SandboxError if the worker fails."""
    texts = {
        path: content.decode("latin-1") for path, content in files.items() if len(content) <= _MOST_BYTES
    }
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "astra_async.audit.mutants"),
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_WALL_S):
            output, _ = await worker.communicate(msgspec.json.encode(texts))
    except TimeoutError as error:
        message = f"the test files could not be parsed within {_WALL_S:.0f} s"
        raise SandboxError(message) from error
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    if worker.returncode != 0:
        message = f"the test files could not be parsed: the parser exited with code {worker.returncode}"
        raise SandboxError(message)
    return _TESTS.decode(output)


def mutable_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Return the tests of all languages that have at least one place to mutate."""
    readers = {suffix: each.mutate for each in LANGUAGES for suffix in each.suffixes if each.mutate}
    by_reader: dict[TestReader, dict[str, bytes]] = defaultdict(dict)
    for path, content in files.items():
        if reader := readers.get(path.rpartition(".")[2].lower()):
            by_reader[reader][path] = content
    return [test for reader, held in by_reader.items() for test in reader(held) if test.places]


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    texts = msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, str])
    found = mutable_tests({path: text.encode("latin-1") for path, text in texts.items()})
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    _main()


_OPPOSITES = {"true": "false", "True": "False", "TRUE": "FALSE"}
_OPPOSITES |= {other: name for name, other in _OPPOSITES.items()}
_LAST_DIGIT = re.compile(r"\d(?=[^\d]*$)")
_LAST_QUOTE = re.compile(r"(?=['\"`]#*$)|$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A mutated test, identified by its title, and the changed line."""

    title: str
    path: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A project with mutated tests; `inside` maps source paths to the mutated tests inside them."""

    project: Project
    mutations: tuple[Mutation, ...]
    inside: Mapping[str, bytes]

    def applied(self, changed: Changed) -> Changed:
        """Return a solution's files, with the tests inside its sources mutated as well."""
        return dict(changed) | {
            path: with_fixed_part(path, text, content)
            for path, text in self.inside.items()
            if (content := changed.get(path)) is not None
        }


@dataclass(frozen=True, slots=True)
class TestSuites:
    """A problem's mutable tests; `sources` maps paths to the texts that hold tests."""

    __test__ = False

    project: Project
    sources: Mapping[str, bytes]
    inside: frozenset[str]
    tests: Sequence[MutableTest]
    constants: Mapping[tuple[str, str], Sequence[str]]  # (path, type) -> sorted constants

    @classmethod
    async def of(cls, prepared: Prepared) -> Self:
        """Parse a problem's test files, and the tests inside its sources."""
        policy, sources, inside = prepared.policy, dict[str, bytes](), set[str]()
        for path, file in sorted(policy.files.items()):
            if file.link is None and path in policy.tests:
                sources[path] = file.content
            elif file.link is None and (text := fixed_part(path, file.content)):
                sources[path] = text
                inside.add(path)
        tests = await read_tests(sources)
        constants: dict[tuple[str, str], set[str]] = defaultdict(set)
        for place in (place for test in tests for place in test.places):
            constants[place.path, place.kind].add(place.text)
        ordered = {key: sorted(found) for key, found in constants.items()}
        return cls(prepared.project, sources, frozenset(inside), tests, ordered)

    def suite(self, number: int, covered: Collection[str] = ()) -> Suite | None:
        """Return the suite that mutates the `number`-th place of each test, or None if no test has one.

        Tests with a title in `covered` stay unchanged, because an earlier suite has covered them.
        """
        edits: dict[str, dict[tuple[int, int], bytes]] = defaultdict(dict)
        mutations = []
        for at, test in enumerate(self.tests):
            places = self._in_order(at, test) if test.title not in covered else []
            if len(places) <= number:
                continue
            place, text = places[number]
            known, span = edits[place.path], (place.begin, place.end)
            if any(begin < place.end and place.begin < end and (begin, end) != span for begin, end in known):
                continue  # overlaps another test's place
            text = known.setdefault(span, text)
            mutations.append(self._mutation(test.title, place, text))
        return Suite(mutations=tuple(mutations), **self._mutated(edits)) if mutations else None

    def _in_order(self, at: int, test: MutableTest) -> list[tuple[Place, bytes]]:
        """Return the places of a test with their replacements, alternating constants and negations."""
        rng = random.Random(f"{self.project.sha256} {at}")  # noqa: S311 - reproducible, not secret
        constants: list[tuple[Place, bytes]] = []
        negations: list[tuple[Place, bytes]] = []
        for place in rng.sample(test.places, len(test.places)):
            kind = negations if place.kind == NEGATION else constants
            kind.append((place, self._replacement(place, rng)))
        pairs = zip_longest(constants, negations)
        return [each for pair in pairs for each in pair if each is not None]

    def _replacement(self, place: Place, rng: random.Random) -> bytes:
        """Return the negated assertion, or another constant of this type from the test file."""
        if place.kind == NEGATION:
            return place.text.encode()
        constants = self.constants[place.path, place.kind]
        if len(constants) == 1:
            return _another(place.text).encode()
        at = rng.randrange(len(constants) - 1)
        at += at >= bisect_left(constants, place.text)  # skip the original constant
        return constants[at].encode()

    def _mutation(self, title: str, place: Place, text: bytes) -> Mutation:
        source = self.sources[place.path]
        begin = source.rfind(b"\n", 0, place.begin) + 1
        end = source.find(b"\n", place.end)
        end = len(source) if end < 0 else end
        after = source[begin : place.begin] + text + source[place.end : end]
        return Mutation(
            title=title,
            path=place.path,
            line=source.count(b"\n", 0, place.begin) + 1,
            before=source[begin:end].decode(errors="replace"),
            after=after.decode(errors="replace"),
        )

    def _mutated(self, edits: Mapping[str, Mapping[tuple[int, int], bytes]]) -> dict[str, Any]:
        texts = {path: _edited(self.sources[path], each) for path, each in edits.items()}
        inside = {path: text for path, text in texts.items() if path in self.inside}

        def content_of(file: ProjectFile) -> bytes:
            text = texts.get(file.path, file.content)
            return with_fixed_part(file.path, text, file.content) if file.path in inside else text

        files = tuple(replace(file, content=content_of(file)) for file in self.project.files)
        return {"project": replace(self.project, files=files), "inside": inside}


def _edited(source: bytes, edits: Mapping[tuple[int, int], bytes]) -> bytes:
    for (begin, end), text in sorted(edits.items(), reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _another(constant: str) -> str:
    """Return a different constant: the opposite truth value, the next digit, or a longer text."""
    if constant in _OPPOSITES:
        return _OPPOSITES[constant]
    if constant[:1].isdigit():
        return _LAST_DIGIT.sub(lambda digit: str((int(digit[0]) + 1) % 10), constant)
    return _LAST_QUOTE.sub("x", constant, count=1)
