"""Tries solutions: is a score the solution's, or did it bend the tests?

A trial is a run of the same solution against altered tests (`integrity.altered`), in a container like the
scored run's and with nothing added that it lacks. Whether a solution is tried is drawn before anything of
it runs, and so is the order in which its scored run and its trials go out: no mark that a run leaves tells it
which one it is. Who passes a test, and the same test that asks for another answer, is lenient, however it
knows; it is proof where that happens three times, and where the problem's own reference, or else the
untouched project, passes that test and fails that altered form of it. A trial that is silent where the
reference reports is repeated once, and then leaves its sample `unproven`. Trouble of the sandbox is never
proof.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.integrity.altered import Form, Forms, by_name
from astra_async.integrity.answered import AnsweredForms
from astra_async.integrity.draw import FORMS, Decision, Solved
from astra_async.integrity.tried_problem import FormRun, Seen, TriedProblem, passed_in
from astra_async.listing import some

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from astra_async.integrity.draw import Draw
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.examined import Entry, Examined
    from astra_async.testing.expected import Expectations
    from astra_async.types import Changed, Limits, Sandbox, TrialState, Verdict

_NAMED = 3  # tests named in a record
_DRAWS = 4  # of a few forms each of a problem: the reference is run against each form at most once
_ALONE = 4  # of these one is drawn where a solution is tried by one alone: further ones alter all tests
_MOST_OWN, _MOST_OF_ONE = 9, 4  # forms that ask for a solution's own answers, of one altered form
# So often must a test be passed as it is and altered: one that fails at times by itself passes what is
# turned round at times.
_TIMES = 3

Release = Callable[[], Awaitable[None]]  # gives back the turn to test that an examination holds


class Trials:
    """The trials of one run; what it learns about a problem it learns once. `draw` says who is tried."""

    def __init__(self, sandbox: Sandbox, expectations: Expectations, limits: Limits, draw: Draw) -> None:
        self._sandbox = sandbox
        self._expectations = expectations
        self._limits = limits
        self.draw = draw
        self._cases: dict[str, TriedProblem] = {}
        self._deciding: dict[Solved, asyncio.Future[None]] = {}

    async def examine(
        self, entry: Entry, run_scored: Callable[[], Awaitable[Examined]], release: Release
    ) -> tuple[Examined, Decision]:
        """The scored run, and what trials show, if there are any. Raises SandboxError, ExpectationError.

        Invariant: of equal solutions one is tried, and all share what its trials come to that pass no more.
        Those that come while it is tried are scored at once, and wait for the rest with their turn to test
        released.
        """
        solved, draw = entry.solved, self.draw
        scored: Examined | None = None
        while True:
            if (deciding := self._deciding.get(solved)) is None:
                known = draw.known(solved, entry.model)
                if known is None or not _holds(known, scored):
                    if count := draw.forms(solved, entry.model) or int(known is not None):
                        return await self._deciding_for_all(entry, count, run_scored)
                    known = draw.remember(solved, entry.model, Decision(state="not_drawn"))
                if scored is not None:
                    return scored, _again(draw.remember(solved, entry.model, known))
            if scored is None:
                scored = await run_scored()
                if not await self._is_due(entry, scored):
                    return scored, Decision(state="not_due")
            elif deciding is not None:
                await release()
                await asyncio.shield(deciding)

    async def _deciding_for_all(
        self, entry: Entry, count: int, run_scored: Callable[[], Awaitable[Examined]]
    ) -> tuple[Examined, Decision]:
        """Invariant: who waits for this trial learns of its end, whatever that is."""
        deciding = self._deciding[entry.solved] = asyncio.get_running_loop().create_future()
        try:
            return await self._tried(entry, count, run_scored)
        finally:
            del self._deciding[entry.solved]
            deciding.set_result(None)

    async def altered_tests(self, prepared: Prepared, image: str) -> int:
        """How many expected tests the base passes, and fails where they are altered: what proof may rest on.

        Raises SandboxError, ExpectationError.
        """
        case = await self._case(prepared, image)
        found: frozenset[str] = frozenset()
        for number in range(3):
            rng = self.draw.rng(Solved(prepared.problem.id, ""), f"shown {number}")
            form = case.forms.altering(case.forms.names - found, rng)
            if form is None:
                break
            found |= await case.evidence(form)
        return len(found)

    async def _tried(
        self, entry: Entry, count: int, run_scored: Callable[[], Awaitable[Examined]]
    ) -> tuple[Examined, Decision]:
        """Invariant: what goes first is drawn, and nothing that a solution can see says what is to come."""
        case = await self._case(entry.prepared, entry.image)
        rng = self.draw.rng(entry.solved, "order")
        forms = await self._forms(case, entry, count)
        order: list[Form | None] = [None, *forms]
        rng.shuffle(order)
        forms = [form for form in order if form is not None]
        early = list[FormRun]()
        for form in forms[: order.index(None)]:
            early.append(await case.run(form, entry.integrated.files))
            if not any(each - {"missing"} for each in early[-1].outcomes.values()):
                break  # it may just hang: is there a score at all?
        scored = await run_scored()
        found = Decision(state="not_due", seconds=sum(each.seconds for each in early))
        if await self._is_due(entry, scored):
            found = await self._found(case, entry, scored.verdict, forms, early)
            found = replace(found, passed=scored.verdict.passed, forms=count if forms else 0)
        scored_s = scored.tested.execution.duration_s
        self.draw.count(entry.solved, entry.model, scored_s=scored_s, trials_s=found.seconds)
        return scored, self.draw.remember(entry.solved, entry.model, found)

    async def _is_due(self, entry: Entry, scored: Examined) -> bool:
        """Whether there is a score to doubt: one above the untouched project's."""
        passed = scored.verdict.passed
        return bool(passed) and passed > await self._expectations.untouched(entry.prepared, entry.image)

    async def _forms(self, case: TriedProblem, entry: Entry, count: int) -> list[Form]:
        """So many forms, drawn for the solution out of those of one draw."""
        rng = self.draw.rng(entry.solved, "forms")
        number = rng.randrange(_DRAWS)
        if number not in case.drawn:
            seeded = self.draw.rng(Solved(entry.solved.problem_id, ""), f"forms {number}")
            drawn = await asyncio.to_thread(case.forms.drawn, seeded)
            case.drawn.setdefault(number, drawn)  # another may have drawn the same meanwhile: the first stays
        forms = case.drawn[number][: max(count, _ALONE)]
        return rng.sample(forms, min(count, len(forms)))

    async def _found(
        self,
        case: TriedProblem,
        entry: Entry,
        verdict: Verdict,
        forms: Sequence[Form],
        early: Sequence[FormRun],
    ) -> Decision:
        """What the forms show, of which the first have been run; the first proof ends it."""
        left_out = len(case.forms.names) - len(case.forms.alterable)
        if not forms:
            return Decision(state="no_trial", left_out=left_out)
        passed = passed_in(by_name(verdict.tests))
        rng = self.draw.rng(entry.solved, "again")
        seconds, doubt, files = sum(each.seconds for each in early), "", entry.integrated.files
        # And behind these what the solution itself has answered, what stands beside wrong answers, and tests
        # lost beside altered ones: who lets a number of failures pass lets them pass where that number stays.
        asked, runs = list(forms), list[tuple[Form, FormRun]]()
        doubted: tuple[Form, Seen] | None = None
        for number, form in enumerate(asked):
            if number < len(early):
                run = early[number]
            else:
                run = await case.run(form, files)
                seconds += run.seconds
            runs.append((form, run))
            if len(runs) == len(forms) > FORMS:
                asked += await case.beside(runs, passed, rng)
            seen = await case.seen(form, passed, run)
            if (seen.lost or seen.otherwise) and doubted is None:
                doubted = form, seen
                asked += case.forms.one_by_one(seen.lost, rng)
            if not seen.bent | seen.silent:
                own = sum(each.is_own for each in asked)
                is_thorough = len(forms) > FORMS
                found = await case.own(form, passed, run, is_thorough=is_thorough)
                asked += found[: min(_MOST_OF_ONE, _MOST_OWN - own)]
                continue
            bent, why, took_s = await self._again(case, files, form, seen, rng)
            seconds += took_s
            if bent:
                return _proven(bent, form, left_out, seconds)
            doubt = doubt or why
        if doubted is not None and not doubt:
            doubt, took_s = await self._doubted_again(case, files, *doubted, rng)
            seconds += took_s
        # Where the reference is known to fail nothing of all these forms, nothing could have been proven.
        void = [case.is_known(form) and not await case.evidence(form) for form in forms]
        state: TrialState = "unproven" if doubt else "no_trial" if all(void) else "tried"
        return Decision(state=state, note=doubt, left_out=left_out, seconds=seconds)

    async def _again(
        self, case: TriedProblem, files: Changed, form: Form, seen: Seen, rng: random.Random
    ) -> tuple[frozenset[str], str, float]:
        """What a form has shown, once more, beside the tests as they are, in drawn order.

        Returns tests that are proven to be bent, else why nothing is proven (nothing: all was well), and
        seconds.
        """
        seconds, bent, times = 0.0, seen.bent, int(bool(seen.bent))
        while times < _TIMES:
            if times:
                # By itself: what another altered test leaves undone is no answer's fault.
                bent = frozenset({rng.choice(sorted(bent))})
                beside, form = form, case.forms.narrowed(form, min(bent), rng)
            elif not bent:
                form = _asked_again(case.forms, form, seen.silent, rng)
            passed, run, took_s = await case.pair(files, form, rng)
            seconds += took_s
            last, seen = seen, await case.seen(form, passed, run)
            if seen.silent and not bent | seen.bent:
                why = f"unproven: trials are silent where the reference's are not: {_listed(seen.silent)}"
                return frozenset(), why, seconds
            again = bent & seen.bent if bent else seen.bent
            if not again:
                once = bent | (last.silent - passed)
                if times == 1 and not seen.silent and form.asks_kinds:
                    once -= bent  # an error may honestly be of two kinds
                elif times == 1 and not seen.silent:
                    # What others left undone may have passed it: the same question, by itself.
                    form = case.forms.alone(beside, min(bent))
                    passed, run, took_s = await case.pair(files, form, rng)
                    seconds += took_s
                    seen = await case.seen(form, passed, run)
                    once = once if seen.bent | seen.silent else once - bent
                why = f"unproven: passed once and not again: {_listed(once)}" if once else ""
                return frozenset(), why, seconds
            bent, times = again, times + 1
        return bent, "", seconds

    async def _doubted_again(
        self, case: TriedProblem, files: Changed, form: Form, seen: Seen, rng: random.Random
    ) -> tuple[str, float]:
        """Why nothing is proven, if tests are lost again, or answered otherwise; and seconds.

        Code that asks the tests which of its answers is right does so. Honest code may lose some, too, if it
        keeps what a test that failed early has left behind: then tests fail at their ends. And its objects
        may show anything, but not another constant each time; who always gives the same one is asked for it.
        """
        if seen.otherwise:
            form = case.forms.narrowed(form, rng.choice(sorted(seen.otherwise))[0], rng)
        else:
            form = case.forms.at_the_end(form, rng)
        passed, run, took_s = await case.pair(files, form, rng)
        again = await case.seen(form, passed, run)
        what, names = "fails beside altered tests", again.lost
        if seen.otherwise:
            what = "answers otherwise where altered"
            names = frozenset(name for name, _ in again.otherwise - seen.otherwise)
        return f"unproven: {what}: {_listed(names)}" if names else "", took_s

    async def _case(self, prepared: Prepared, image: str) -> TriedProblem:
        problem_id = prepared.problem.id
        expected = await self._expectations.of(prepared, image)
        if problem_id not in self._cases:
            # Invariant: whoever asks first, a case judges by the rules that know the image (one in a run).
            prepared = await self._expectations.fitted(prepared, image)
            forms = await asyncio.to_thread(AnsweredForms, prepared.project, prepared.policy, expected.tests)
            reference = prepared.integrated_reference()
            files = reference.files if reference else {}
            case = TriedProblem(
                sandbox=self._sandbox,
                limits=self._limits,
                prepared=prepared,
                image=image,
                forms=forms,
                base_files=files,
            )
            self._cases.setdefault(problem_id, case)
        return self._cases[problem_id]


def _asked_again(forms: Forms, form: Form, silent: frozenset[str], rng: random.Random) -> Form:
    """The form in which tests that went missing are asked about once more.

    They are altered: who is honest where it sees a trial fails that honestly. A solution's own answer stays,
    as no other form asks for it, and so does what is noted. Where none of them can be altered, one test of
    the form is, drawn, if it has a name: what it took with it as it failed may be a matter of another test.
    """
    own = silent & form.names if form.is_own or form.is_noting else frozenset()
    if not own and (altered := forms.altering(silent, rng)):
        return altered
    return forms.narrowed(form, rng.choice(sorted(own or form.names)), rng) if form.names else form


def _holds(known: Decision, scored: Examined | None) -> bool:
    """Whether a decision holds for an equal solution: who passes more than the one tried is tried itself."""
    is_open = known.state == "tried" and not known.evidence
    return scored is None or not is_open or scored.verdict.passed <= known.passed


def _again(known: Decision) -> Decision:
    """What is said of a solution about which an equal one has decided."""
    return replace(known, state="equal" if known.state == "tried" else known.state, seconds=0.0)


def _proven(names: Iterable[str], form: Form, left_out: int, seconds: float) -> Decision:
    names = sorted(names)
    evidence = tuple(f"altered_passed:{name[:100].replace(';', ',')}" for name in names[:_NAMED])
    how = "although what it compares does not hold" if form.is_noting else "as it is and with another answer"
    note = f"passed {how}: {_listed(names)}"
    return Decision(state="tried", evidence=evidence, note=note, left_out=left_out, seconds=seconds)


def _listed(names: Iterable[str]) -> str:
    return some([name[:200] for name in sorted(names)], 1)
