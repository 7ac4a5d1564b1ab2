"""A problem whose solutions are tried: its altered forms, what the reference gets in them, what they show."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from astra_async.testing.verdict import run_tests

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from astra_async.integrity.altered import Form
    from astra_async.integrity.answered import AnsweredForms
    from astra_async.problems.prepare import Prepared
    from astra_async.types import Changed, Limits, Sandbox

_FAILED = frozenset({"failed", "error"})
Outcomes = dict[str, set[str]]  # of each expected test, by name


class FormRun(NamedTuple):
    """What a run reports: outcomes of expected tests, messages of those that failed; and how long it took."""

    outcomes: Outcomes
    messages: dict[str, str]
    seconds: float


class Seen(NamedTuple):
    """What an altered form has shown of a solution.

    `bent` are altered tests that it passed as they are and altered, `silent` tests that it passed and of
    which the trial says nothing, though the reference's does; without these two all is well. `lost` are tests
    that it passed and that failed beside altered ones, though the reference's did not; `otherwise` are
    altered ones that it answered otherwise than as they are, each with what it shows.
    """

    bent: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    otherwise: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True, kw_only=True)
class TriedProblem:
    """A problem with its image and what was learned about its tests.

    `base_files` are the reference's; without one there are none: the untouched project is the base.
    `drawn` are the forms of each draw.
    """

    sandbox: Sandbox
    limits: Limits
    prepared: Prepared
    image: str
    forms: AnsweredForms
    base_files: Changed
    drawn: dict[int, list[Form]] = field(default_factory=dict)
    _base: dict[int, tuple[Form, FormRun]] = field(default_factory=dict)  # by the form's identity
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_known(self, form: Form) -> bool:
        """Whether the reference was run against this form."""
        return id(form) in self._base

    async def own(self, form: Form, passed: frozenset[str], run: FormRun, *, is_thorough: bool) -> list[Form]:
        """Forms that ask for what the solution has answered in tests that it passes, if that is not right.

        Not thorough: the reference is not run for messages that show the right answer as well.
        """
        messages = _of(form.names & passed, run)
        is_asked = (messages and is_thorough) or self.forms.own(form, messages)
        if form.is_own or not self.base_files or not is_asked:
            return []
        return self.forms.own(form, messages, (await self.base(form)).messages)

    async def beside(
        self, runs: Sequence[tuple[Form, FormRun]], passed: frozenset[str], rng: random.Random
    ) -> list[Form]:
        """Forms that ask for what stands beside wrong answers, which the solution's messages show."""
        shown = [(form, _of(form.names & passed, run)) for form, run in runs]
        right = [(await self.base(form)).messages if messages else {} for form, messages in shown]
        return self.forms.beside(shown, right, rng) if self.base_files else []

    async def pair(
        self, files: Changed, form: Form, rng: random.Random
    ) -> tuple[frozenset[str], FormRun, float]:
        """The tests as they are and an altered form, in drawn order: what passes, the form's run, seconds."""
        forms = [self.forms.ordinary, form]
        order = rng.sample((0, 1), 2)
        runs = {number: await self.run(forms[number], files) for number in order}
        return passed_in(runs[0].outcomes), runs[1], runs[0].seconds + runs[1].seconds

    async def seen(self, form: Form, passed: frozenset[str], run: FormRun) -> Seen:
        """What a run against an altered form means for a solution that passes these tests as they are."""
        outcomes, messages = run.outcomes, _of(form.names & passed, run)
        altered = form.names | form.unnamed
        bent = frozenset(name for name in altered & passed if "passed" in outcomes[name])
        lost = frozenset(name for name in passed - altered if outcomes[name] <= _FAILED)
        told = {name: _FAILED if name in altered else {"passed"} for name in passed - bent - lost}
        silent = frozenset(name for name, each in told.items() if not outcomes[name] & each)
        otherwise = self.forms.otherwise(form, messages) if self.base_files else frozenset()
        if not (bent | silent | lost or otherwise):
            return Seen()
        evidence = await self.evidence(form)
        base = (await self.base(form)).outcomes
        if not any(each - {"missing"} for each in base.values()):
            if form.is_own:
                return Seen()  # the solution's own answer may be of another type, and compile for it alone
            # These tests tell of nothing, as where they do not compile: who reports passes there forges them.
            return Seen(bent & form.names & passed_in((await self.base(self.forms.ordinary)).outcomes))
        untouched = passed_in(base) - altered
        others = self.forms.otherwise(form, messages, (await self.base(form)).messages)
        otherwise = frozenset(each for each in otherwise & others if each[0] in evidence)
        return Seen(bent & evidence, silent & (evidence | untouched), lost & untouched, otherwise)

    async def evidence(self, form: Form) -> frozenset[str]:
        """Altered tests that the base passes as they are, and fails as they are in this form.

        Where there is no reference: those, too, that the untouched project does not pass either way, if a
        constant of theirs was exchanged or their assertion turned: of others a reference has to show it.
        """
        ordinary = (await self.base(self.forms.ordinary)).outcomes
        altered = (await self.base(form)).outcomes
        names = form.names | form.unnamed
        shown = {name for name in names if ordinary[name] == {"passed"} and altered[name] <= _FAILED}
        if not self.base_files:
            shown |= {name for name in form.sure if "passed" not in ordinary[name] | altered[name]}
        return frozenset(shown)

    async def base(self, form: Form) -> FormRun:
        """What the reference, else the untouched project, gets in this form's tests; run once for each."""
        async with self._lock:
            if id(form) not in self._base:
                self._base[id(form)] = form, await self.run(form, self.base_files)
            return self._base[id(form)][1]

    async def run(self, form: Form, changed: Changed) -> FormRun:
        """A solution's files against this form. Raises SandboxError.

        A test that notes what it compares and fails otherwise than at its own end tells nothing.
        """
        prepared = replace(self.prepared, project=form.project)
        tested = await run_tests(self.sandbox, prepared, self.image, form.over(changed), self.limits)
        outcomes, messages = self.forms.outcomes(tested.report)
        for name, held in form.held.items():
            if outcomes[name] <= _FAILED and held not in messages.get(name, ""):
                outcomes[name] = {"missing"}
        # What notes shows no answer in its messages.
        return FormRun(outcomes, {} if form.held else messages, tested.execution.duration_s)


def _of(names: frozenset[str], run: FormRun) -> dict[str, str]:
    return {name: text for name, text in run.messages.items() if name in names}


def passed_in(outcomes: Outcomes) -> frozenset[str]:
    """Tests that passed, all that have the name."""
    return frozenset(name for name, each in outcomes.items() if each == {"passed"})
