"""Altered tests: a problem's own test files in which some tests ask for another answer, just as plausible.

Of each test that is altered one place is written differently, and nothing else in its file: another
constant stands there that this file, or this problem's tests, use in the same role, or the assertion is
turned round. The name of the test stays, so that a report tells of it as of the test itself.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.integrity.substitutes import Substitutes
from astra_async.integrity.surveyed_tests import held_titles, survey
from astra_async.languages.altering import (
    ALL_HELD,
    EACH_TIME,
    KEYS,
    NOTED,
    NUMBER,
    ORDER,
    RAISED,
    SHAPES,
    SUBJECT,
    TEXT,
    TRUTH,
    TURNED,
    VARIED,
    Alteration,
)
from astra_async.overlay.merged_files import with_staying
from astra_async.testing.counting import grade
from astra_async.testing.reports.report_text import clean_name

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from astra_async.languages.altering import DeclaredTest
    from astra_async.overlay import PathPolicy
    from astra_async.types import Changed, ExpectedTest, NamedOutcome, Project, TestReport

# Of tests that have both: exchanged constants show who is lenient, turned ones who is honest in a trial.
_EXCHANGED = 0.6
_SHAPED = 0.4  # of exchanged ones, where a list, a table or a text can have another shape
_SURE = frozenset({NUMBER, TEXT, TRUTH, TURNED})
_KEPT = frozenset({NOTED, SUBJECT, VARIED, *SHAPES})  # what a repetition asks again as it is
_FURTHER = (False, True, False, True)  # forms: whether they ask for other shapes
_FIRST = (61, 67, 71, 73, 79)  # rows are asked last: primes, so that a list of fewer begins elsewhere
_MESSAGES = 10**9  # of tests that note: who copies another's has not failed at its own end
_MESSAGE = re.compile(rf"{ALL_HELD} \d+(?:{EACH_TIME})?".encode())
Edit = tuple[Alteration, bytes]  # a place, and what stands there instead
_SHARES = (0.2, 0.5, 0.5)  # of the tests are altered in the first form of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A problem's project with altered tests.

    `names` are expected tests whose names show that they are altered, `sure` those of them in which a
    constant was exchanged or the assertion turned. `unnamed` are names that no source shows, where all tests
    of computed names are altered as well, so that each is one of them. `edits` are the places by the number
    of their test, `inside` the altered tests of sources by path; `spent` are texts that stood in these
    places before. `held` are the messages with which tests that note what they compare have to fail.
    `is_own`: it asks for what a solution has answered.
    """

    project: Project
    names: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()
    unnamed: frozenset[str] = frozenset()
    edits: Mapping[int, Edit] = field(default_factory=dict, repr=False)
    spent: frozenset[bytes] = frozenset()
    inside: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    held: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_own: bool = False

    @property
    def is_noting(self) -> bool:
        """Whether its tests ask what they do as they are."""
        return any(place.kind == NOTED for place, _ in self.edits.values())

    @property
    def asks_kinds(self) -> bool:
        """Whether its tests ask for other kinds of errors, of which one error may have two."""
        return all(place.kind == RAISED for place, _ in self.edits.values())

    def over(self, changed: Changed) -> Changed:
        """A solution's files, in which the tests inside of sources are altered as in the project's."""
        return dict(changed) | {
            path: with_staying(path, text, content)
            for path, text in self.inside.items()
            if (content := changed.get(path)) is not None
        }


class Forms:
    """The altered forms of one problem's tests; `names` are all expected tests, `alterable` by name.

    The n-th form is the same for every solution, so that the reference is run against it once.
    """

    def __init__(self, project: Project, policy: PathPolicy, expected: Sequence[ExpectedTest]) -> None:
        self.ordinary = Form(project=project)
        self._expected, self._survey = expected, survey(policy)
        self._files, self._inside = policy.files, self._survey.files.keys() - policy.tests
        self._tests = [(path, test) for path, each in self._survey.files.items() for test in each]
        # Tests that share a name are altered together, and so are all of computed names.
        self._groups: dict[str, list[int]] = {}
        for number, (_, test) in enumerate(self._tests):
            if test.is_alterable:
                self._groups.setdefault(test.titles[0] if test.titles else "", []).append(number)
        self._substitutes = Substitutes(
            self._survey.sources, ((path, each) for path, test in self._tests for each in test.alterations)
        )
        counts = Counter(clean_name(test.name) for test in expected)
        self.names = frozenset(counts)
        held = held_titles(
            self.names, (clean_name(title) for _, test in self._tests for title in test.titles)
        )
        self._held = {name: titles for name, titles in held.items() if counts[name] == 1}
        self._by_title: dict[str, list[str]] = {}
        for name, titles in self._held.items():
            for title in titles:
                self._by_title.setdefault(title, []).append(name)
        self._all_unnamed = all(test.alterations for _, test in self._tests if not test.titles)
        self.unknown = self.names - held.keys()  # by no title in a source
        self.alterable = self._named([test for _, test in self._tests if test.is_alterable])

    def drawn(self, rng: random.Random) -> list[Form]:
        """Part of the tests altered, the rest, all in the other manner, all by further constants; else none.

        Where all are altered, code that looks for a test which it honestly passes knows that it is tried. Who
        is lenient for another constant may be honest where the assertion is turned round, and the reverse.
        Further forms alter the tests in which constants are left that no form before them has exchanged: who
        is lenient in one assertion bends that alone. Every other one asks for other shapes where it can.
        Before these come the forms in which tests note what they compare; in the second of them those with
        rows, in another order: code may repeat what it said first to whoever asks from the same place.
        """
        able = [title for title, numbers in self._groups.items() if self._asked(numbers)]
        some = set(rng.sample(able, min(len(able), max(1, round(rng.choice(_SHARES) * len(able))))))
        parts = [each for each in able if each in some], [each for each in able if each not in some]
        halves = [self._form(part, rng) for part in parts if part]
        forms = [*halves, self._form(able, rng, before=halves)] if able else []
        noting = self._noting(rng), self._noting(rng, rng.choice(_FIRST))
        forms += [form for form in noting if form.edits]
        for shaped in _FURTHER:
            left = [
                title
                for title in able
                if any(self._constants(at, edited(at, forms)) for at in self._asked(self._groups[title]))
            ]
            forms += [self._form(left, rng, before=forms, shaped=shaped)] if left else []
        return forms

    def altering(self, names: frozenset[str], rng: random.Random) -> Form | None:
        """A form in which these tests are altered; None where none of them can be."""
        able = [
            title
            for title, numbers in self._groups.items()
            if any(self._is(self._tests[number][1], names) for number in self._asked(numbers))
        ]
        return self._form(able, rng) if able else None

    def _form(
        self, groups: Iterable[str], rng: random.Random, before: Sequence[Form] = (), *, shaped: bool = False
    ) -> Form:
        """These tests altered, each in another place than in the forms `before`, and in the other manner."""
        chosen = sorted(number for title in groups for number in self._asked(self._groups[title]))
        return self._made(
            {each: self._drawn(each, rng, edited(each, before), shaped=shaped) for each in chosen}
        )

    def _asked(self, numbers: Iterable[int]) -> list[int]:
        """Those of these tests that can ask for something else."""
        return [number for number in numbers if self._tests[number][1].alterations]

    def _noting(self, rng: random.Random, first: int = 0) -> Form:
        """All tests that can note what they compare do, and need some of it not to hold.

        With a number for the first, those do whose rows can begin with another one.
        """
        edits = dict[int, Edit]()
        variables = {path: self._survey.new_name(path, rng) for path in self._survey.files}
        for group in self._groups.values():
            noted = [(path, test.noted) for path, test in (self._tests[number] for number in group)]
            titles = {clean_name(title) for number in group for title in self._tests[number][1].titles}
            names = {name for title in titles for name in self._by_title.get(title, ())}
            has_rows = len(group) > 1 or len(names) != 1
            held = f"{ALL_HELD} {rng.randrange(_MESSAGES)}{EACH_TIME if has_rows else ''}".encode()
            places = [each.by_name(variables[path], held, first) for path, each in noted if each]
            is_asked = not first or any(each and each.has_rows for _, each in noted)
            if len(places) == len(group) and is_asked:
                edits |= {at: (each, each.others[0]) for at, each in zip(group, places, strict=True)}
        return self._made(edits)

    def _made(self, drawn: Mapping[int, Edit]) -> Form:
        # A name without another stays as it is: then the test is not altered.
        edits = {number: edit for number, edit in drawn.items() if self._is_other(number, *edit)}
        altered = [self._tests[number][1] for number in edits]
        project, inside = self._written(edits)
        noted: dict[bytes, list[DeclaredTest]] = {}
        for number, (place, text) in edits.items():
            if place.kind == NOTED and (said := _MESSAGE.search(text)):
                noted.setdefault(said[0], []).append(self._tests[number][1])
        is_unnamed = self._all_unnamed and any(not test.titles for test in altered)
        return Form(
            project=project,
            names=self._named(altered),
            sure=self._named([self._tests[at][1] for at, (place, _) in edits.items() if place.kind in _SURE]),
            # Invariant: a name that no title shows counts only where no test that is not altered may have it.
            unnamed=self.unknown if is_unnamed else frozenset(),
            edits=edits,
            inside=inside,
            held={name: said.decode() for said, tests in noted.items() for name in self._named(tests)},
        )

    def _is_other(self, number: int, place: Alteration, text: bytes) -> bool:
        return self._survey.sources[self._tests[number][0]][place.begin : place.end] != text

    def alone(self, form: Form, name: str) -> Form:
        """The form with this test altered as it is, and no other test."""
        names = frozenset({name})
        edits = {at: edit for at, edit in form.edits.items() if self._is(self._tests[at][1], names)}
        return replace(self._made(edits), is_own=form.is_own, spent=form.spent)

    def narrowed(self, form: Form, name: str, rng: random.Random) -> Form:
        """The form with this test altered in its place, to something else again, and no other test.

        Who honestly passes two forms (an error of two kinds does) hardly passes a third. A solution's own
        answer stays as it is, as nothing else shows it: what may be another way to write the right one is
        never asked for. So does what no honest answer passes in one form alone: what is asked about, an
        order, a spelling, a constant of what is written out.
        """
        alone = self.alone(form, name)
        if form.is_own:
            return alone
        spent = form.spent | {text for _, text in alone.edits.values()}
        anew = {
            at: (place, self._substitutes.other(self._tests[at][0], place, rng, but=spent))
            for at, (place, text) in alone.edits.items()
            if place.kind not in _KEPT and not self._substitutes.is_spelling(self._tests[at][0], place, text)
        }
        return replace(self._made({**alone.edits, **anew}), spent=spent)

    def outcomes(self, report: TestReport) -> tuple[dict[str, set[str]], dict[str, str]]:
        """Expected tests by name, with what a report says of each of their occurrences, and messages."""
        tests = grade(report, self._expected).tests
        return by_name(tests), {clean_name(test.name): test.message for test in tests if test.message}

    def _is(self, test: DeclaredTest, names: frozenset[str]) -> bool:
        """Whether a test may be one of these names."""
        if not test.titles:
            return bool(names & self.unknown)
        titles = {clean_name(title) for title in test.titles}
        return any(titles & self._held.get(name, frozenset()) for name in names)

    def _named(self, altered: Iterable[DeclaredTest]) -> frozenset[str]:
        """Expected tests that are these for certain: all titles that the name holds are theirs alone."""
        chosen = {id(test) for test in altered}
        others = {
            clean_name(title) for _, test in self._tests if id(test) not in chosen for title in test.titles
        }
        return frozenset(name for name, titles in self._held.items() if not titles & others)

    def _constants(self, number: int, before: Iterable[Edit] = ()) -> list[Alteration]:
        """The constants of a test that were not asked yet, or once alone where there are several ways."""
        asked = Counter(place for place, _ in before)
        alterations = self._tests[number][1].alterations
        return [each for each in alterations if each.kind != TURNED and asked[each] < _times(each)]

    def _drawn(self, number: int, rng: random.Random, before: Sequence[Edit], *, shaped: bool) -> Edit:
        path, test = self._tests[number]
        source = self._survey.sources[path]
        constants = self._constants(number, before) or self._constants(number)
        # A title that names what is expected would tell who reads it that this is another.
        titles = " ".join(test.titles).encode(errors="replace").split()
        quiet = [each for each in constants if source[each.begin : each.end].strip() not in titles]
        turned = [each for each in test.alterations if each.kind == TURNED]
        exchanged = any(each.kind == TURNED for each, _ in before) if before else rng.random() < _EXCHANGED
        places = (quiet or constants) if constants and (exchanged or shaped or not turned) else turned
        shapes = [each for each in places if each.kind in {*SHAPES, *KEYS}]
        if shapes and (shaped or rng.random() < _SHAPED):
            places = shapes
        elif len(shapes) < len(places):
            places = [each for each in places if each not in shapes]
        if before and not any(each.rows for each, _ in before):  # code may end a loop, or repeat a row
            places = [each for each in constants if each.rows] or places
        # First a line that no form before has asked: who bends one assertion may bend all of its constants.
        lines = {each: self._survey.line(path, each.begin) for each in places}
        asked = {self._survey.line(path, each.begin) for each, _ in before}
        line = rng.choice(sorted(set(lines.values()) - asked or set(lines.values())))
        places = [each for each in places if lines[each] == line]
        (drawn,) = rng.choices(places, [1 + (each.kind in {ORDER, VARIED}) for each in places])
        return self._edit(number, drawn, rng, before)

    def _edit(self, number: int, place: Alteration, rng: random.Random, before: Sequence[Edit] = ()) -> Edit:
        """The place of a test, in a loop for a row that is drawn, and what stands there instead."""
        asked = [(each, text) for each, text in before if each == place]
        if place.rows:
            rows = set(range(len(place.rows.places)))
            left = sorted(rows - {each.rows.altered for each, _ in asked if each.rows} or rows)
            # Code may be right in the first row alone, or in all others.
            (row,) = rng.choices(left, [1 + (each > 0) for each in left])
            name = self._survey.new_name(self._tests[number][0], rng)
            place = replace(place, rows=replace(place.rows, altered=row)).by_name(name)
        but = {text for _, text in asked}
        return place, self._substitutes.other(self._tests[number][0], place, rng, but)

    def _written(self, edits: Mapping[int, Edit]) -> tuple[Project, dict[str, bytes]]:
        """The project with these places written differently, and the tests among them inside of sources.

        The project's files keep their dates.
        """
        by_path: dict[str, list[Edit]] = {}
        for number, edit in edits.items():
            by_path.setdefault(self._tests[number][0], []).append(edit)
        contents = {path: self._survey.written(path, each) for path, each in by_path.items()}
        inside = {path: contents.pop(path) for path in self._inside & contents.keys()}
        contents |= {
            path: with_staying(path, text, self._files[path].content) for path, text in inside.items()
        }
        files = tuple(
            replace(file, content=contents[file.path]) if file.path in contents else file
            for file in self.ordinary.project.files
        )
        return replace(self.ordinary.project, files=files), inside


def _times(place: Alteration) -> int:
    """How often a place is asked: for each of its rows, what can be several things twice, else once."""
    return len(place.rows.places) if place.rows else 1 + (place.kind in {SUBJECT, VARIED})


def edited(number: int, forms: Iterable[Form]) -> list[Edit]:
    """What forms alter in this test."""
    return [form.edits[number] for form in forms if number in form.edits]


def by_name(tests: Iterable[NamedOutcome]) -> dict[str, set[str]]:
    """Outcomes by the names by which altered tests are known."""
    found: dict[str, set[str]] = {}
    for test in tests:
        found.setdefault(clean_name(test.name), set()).add(test.outcome)
    return found
