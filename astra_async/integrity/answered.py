"""Altered tests that earlier trials lead to: what a solution answered, what stands beside that, what it lost.

A test that is altered fails honestly for most solutions, and its message shows what the solution gave. Who
passes the test as it is with another answer than the reference's is lenient somewhere in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from astra_async.integrity.altered import Edit, Form, Forms, edited
from astra_async.integrity.shown import Shown, answers, differing, is_alike, otherwise
from astra_async.languages import language_of
from astra_async.languages.altering import (
    KEY,
    KEYS,
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    TURNED,
    Alteration,
)
from astra_async.testing.reports.report_text import clean_name

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.languages.language import Language

_SHOWN = frozenset({NUMBER, TEXT, TRUTH, NOTHING, *KEYS})  # what a message shows as the source writes it
_MOST_BESIDE = 8  # forms for what stands beside wrong answers
_MOST_PLACES = 8  # in which tests are altered one by one
_TIMES = 2  # is a place asked there, in different ways


class AnsweredForms(Forms):
    """The altered forms of one problem's tests, also those that its trials lead to."""

    def own(
        self, form: Form, messages: Mapping[str, str], right: Mapping[str, str] | None = None
    ) -> list[Form]:
        """Forms that ask for what a solution itself has answered, as messages of altered tests show.

        `messages` are those of tests that failed honestly, by name, `right` the reference's; without these it
        is a first look, at messages that do not show the right answer at all.
        """
        asked: list[dict[int, Edit]] = []
        for number, shown in self._shown(form, messages, right):
            place, (path, test) = form.edits[number][0], self._tests[number]
            # What else is wrong in what is compared there is shown as well.
            more = (each for each in test.alterations if shown.right and each.rows is None and each != place)
            edits = [
                (each.whole(), answer.encode())
                for each in (place, *more)
                for answer in self._answers(path, each, shown, is_altered=each is place)
            ]
            for at, edit in enumerate(edits):
                asked += [{}] if at == len(asked) else []
                asked[at][number] = edit
        return [replace(self._made(edits), is_own=True) for edits in asked]

    def otherwise(
        self, form: Form, messages: Mapping[str, str], right: Mapping[str, str] | None = None
    ) -> frozenset[tuple[str, str]]:
        """Altered tests that a solution answers otherwise than as they are, which it passes; and with what.

        `right` are the reference's messages; without these it is a first look.
        """
        found = set[tuple[str, str]]()
        for number, shown in self._shown(form, messages, right):
            language, asked = self._constant(self._tests[number][0], form.edits[number][0])
            if language:
                others = otherwise(asked, shown, own_equality=language.own_equality)
                found |= {(self._shown_as(number, messages), each) for each in others}
        return frozenset(found)

    def beside(
        self,
        shown: Sequence[tuple[Form, Mapping[str, str]]],
        right: Sequence[Mapping[str, str]],
        rng: random.Random,
    ) -> list[Form]:
        """Forms that ask for what stands beside wrong answers, and was not asked for yet.

        `shown` are forms with messages of their tests, by name, `right` the reference's. One part of an
        expected value may be forgiven alone. First come parts whose names stand before what differs in the
        messages, then others of the altered lines.
        """
        keys, lines = defaultdict[int, set[str]](set), defaultdict[int, set[int]](set)
        for (form, messages), known in zip(shown, right, strict=True):
            for number, (place, _) in form.edits.items():
                name = self._shown_as(number, messages)
                found = differing(messages[name], known.get(name, "")) if name else None
                if found is not None:
                    keys[number] |= found
                    lines[number].add(self._survey.line(self._tests[number][0], place.begin))
        asked: list[dict[int, Edit]] = [{} for _ in range(_MOST_BESIDE)]
        for number, names in keys.items():
            edits = edited(number, (form for form, _ in shown))
            known_edits = len(edits)
            for place in self._near(number, names, lines[number], rng) * _TIMES:
                edits.append(self._edit(number, place, rng, edits))
            for places, edit in zip(asked, dict.fromkeys(edits[known_edits:]), strict=False):
                places[number] = edit
        return [self._made(edits) for edits in asked if edits]

    def at_the_end(self, form: Form, rng: random.Random) -> Form:
        """The same tests, each altered in its last place: nothing that they do is left undone then."""
        if form.is_noting:
            return form
        last = {at: max(self._tests[at][1].alterations, key=attrgetter("begin")) for at in form.edits}
        return self._made({at: self._edit(at, place, rng) for at, place in last.items()})

    def one_by_one(self, names: frozenset[str], rng: random.Random) -> list[Form]:
        """Each of these tests altered alone in one place, for places that are drawn.

        No form of tests of computed names: which of them is altered would be known by nobody.
        """
        places = [
            (number, place)
            for number, (_, test) in enumerate(self._tests)
            if test.titles and self._is(test, names)
            for place in test.alterations
            if place.kind != TURNED
        ]
        drawn = rng.sample(places, min(_MOST_PLACES, len(places)))
        return [self._made({number: self._edit(number, place, rng)}) for number, place in drawn]

    def _shown(
        self, form: Form, messages: Mapping[str, str], right: Mapping[str, str] | None
    ) -> Iterator[tuple[int, Shown]]:
        """What is shown of each altered test that these messages are of, by its number."""
        for number, (place, other) in form.edits.items():
            if name := self._shown_as(number, messages):
                whole, source = place.whole(), self._survey.sources[self._tests[number][0]]
                altered = source[whole.begin : place.begin] + other + source[place.end : whole.end]
                known = None if right is None else right.get(name, "")
                yield number, Shown(altered.decode(errors="replace"), messages[name], known)

    def _near(self, number: int, names: set[str], lines: set[int], rng: random.Random) -> list[Alteration]:
        """The places of a test beside one of these names, then those in one of these lines, each drawn."""
        path, test = self._tests[number]
        places = [each for each in test.alterations if each.kind != TURNED]
        rng.shuffle(places)
        named = [each for each in places if each.asked in names]
        line = [each for each in places if self._survey.line(path, each.begin) in lines]
        return list(dict.fromkeys([*named, *line]))

    def _shown_as(self, number: int, messages: Mapping[str, str]) -> str:
        """Under which of these names a test is reported; nothing where it is none of them."""
        titles = self._tests[number][1].titles
        names = {name for title in titles for name in self._by_title.get(clean_name(title), ())}
        return min(names & messages.keys(), default="")

    def _answers(self, path: str, place: Alteration, shown: Shown, *, is_altered: bool) -> list[str]:
        """What a solution has given for the constant that stands in a place."""
        language, asked = self._constant(path, place)
        if language is None:
            return []
        found = answers(asked, shown, own_equality=language.own_equality, is_altered=is_altered)
        if path.rpartition(".")[2] in language.typed:
            found = [each for each in found if is_alike(asked, each)]
        return found if place.kind != KEY else [each[1:-1] for each in found if each[1:-1].isidentifier()]

    def _constant(self, path: str, place: Alteration) -> tuple[Language | None, str]:
        """The language and the constant of a place, with quotes; neither where messages do not show it so."""
        whole, is_far = place.whole(), place.others and place.kind not in {TRUTH, NOTHING}
        if place.kind not in _SHOWN or is_far:
            return None, ""
        asked = self._survey.sources[path][whole.begin : whole.end].decode(errors="replace")
        return language_of(path), f"'{asked}'" if place.kind == KEY else asked
