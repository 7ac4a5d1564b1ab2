"""Determine the expected tests of a problem (their number is T) before its first grading, and store them.

The names come from the CSV if it lists tests, else from one run of the reference solution, else from a run of
the untouched project. They never come from a candidate's run: a crashed suite reports nothing and must score
0 of T.

Names from the CSV are also checked against such a run, so that a typing mistake does not silently score zero.
They are used unchecked, and marked as provisional, only if there is no reference and the untouched project
loads none of them (tests that name classes which the answer must write).

Names are learned only from a run that reports all its tests. If a suite did not load, T would be too small,
and an answer that fails the tests in that suite would score full marks.

The untouched project's own score is measured on first use and stored with the names.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import orjson

from astra_async.errors import ExpectationError
from astra_async.files import file_mode, write_atomically
from astra_async.fingerprint import fingerprint
from astra_async.languages.runner_lists import not_reported
from astra_async.languages.runners import how_to_report, listing_of
from astra_async.listing import some
from astra_async.problems import weighted
from astra_async.testing.counting import among_skipped, grade, learn, mismatch, unknown_tests
from astra_async.testing.installed_modules import read_stored
from astra_async.testing.reports.suite_failures import hides_tests, relevant_lines
from astra_async.testing.verdict import cut_short, not_built, run_tests, signs_of_missing_tests, verdict_on
from astra_async.types import ExpectedTest, TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from astra_async.prepare import Prepared
    from astra_async.testing.installed_modules import InstalledModules
    from astra_async.testing.verdict import Tested
    from astra_async.types import Changed, Limits, Sandbox, Verdict

Source = Literal["csv", "reference", "project"]
_VERSION = 4  # version of the stored format, part of the key


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expected tests of a problem, and their source.

    `untouched` is the number of expected tests that the untouched project passes, None if not measured yet.
    `untouched_tests` names these tests, once for each pass; empty if only the number is stored.

    `provisional` is the reason why no complete run confirms the tests. It is empty if a reference passed
    every reported test and the command exited with 0.
    """

    source: Source
    provisional: str = ""
    untouched: int | None = None
    untouched_tests: tuple[str, ...] = ()
    tests: tuple[ExpectedTest, ...]

    def with_untouched_run(self, tested: Tested) -> Expected:
        """Return a copy with the tests that a run of the untouched project passed."""
        verdict, _, _ = verdict_on(tested, self.tests)
        names = tuple(test.name for test in verdict.tests if test.outcome == "passed")
        return replace(self, untouched=verdict.passed, untouched_tests=names)


class Expectations:
    """Determines each problem's expected tests once; stores them in `expected.json` and in the cache.

    Attributes:
        learning: problems whose tests are being determined, with the start on the monotonic clock.
        contradicted: problems whose expected tests a graded sample contradicts, with the reason.
    """

    def __init__(
        self,
        path: Path,
        cache: Path,
        sandbox: Sandbox,
        limits: Limits,
        *,
        installed: InstalledModules | None = None,
    ) -> None:
        self._path = path
        self._cache = cache
        self._sandbox = sandbox
        self._limits = limits
        self._installed = installed
        self._known: dict[str, Expected] = {}
        self._failed: dict[str, ExpectationError] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._writing = asyncio.Lock()
        self.learning: dict[str, float] = {}  # start on the monotonic clock
        self.contradicted: dict[str, str] = {}
        self._stored = read_stored(path) or {}

    async def of(self, prepared: Prepared, image: str) -> Expected:
        """Return the problem's expected tests. Raises ExpectationError (cached) or SandboxError."""
        problem_id = prepared.problem.id
        async with self._locks.setdefault(problem_id, asyncio.Lock()):
            if problem_id in self._failed:
                raise self._failed[problem_id]
            if problem_id not in self._known:
                self.learning[problem_id] = time.monotonic()
                try:
                    self._known[problem_id] = await self._find(prepared, image)
                except ExpectationError as error:
                    self._failed[problem_id] = error
                    raise
                finally:
                    del self.learning[problem_id]
            return self._known[problem_id]

    @property
    def provisional(self) -> dict[str, str]:
        """Problems whose expected tests are not confirmed by a complete run, with the reason."""
        return {name: each.provisional for name, each in self._known.items() if each.provisional}

    def contradiction(self, problem_id: str, tested: Tested, verdict: Verdict) -> str:
        """Return how a sample contradicts the expected tests, once for each problem; else ""."""
        if problem_id in self.contradicted:
            return ""
        why, exit_code = "", tested.execution.exit_code
        if verdict.passed == verdict.total and exit_code:
            why = f"all {verdict.total} expected tests passed, but the command exited with {exit_code}"
        elif verdict.extra_tests and (unknown := unknown_tests(tested.report, verdict)):
            why = f"{len(unknown)} tests ran that are not expected: {some(unknown)}"
        if why:
            self.contradicted[problem_id] = why
        return why

    @property
    def decided(self) -> int:
        """Number of problems whose expected tests are determined, or cannot be."""
        return len(self._known) + len(self._failed)

    async def fitted(self, prepared: Prepared, image: str) -> Prepared:
        """Return the problem with rules that know the modules in its image. Raises SandboxError."""
        return await self._installed.fitted(prepared, image) if self._installed else prepared

    async def untouched(self, prepared: Prepared, image: str) -> int:
        """Return the number of tests that the untouched project passes.

        Raises:
            ExpectationError, SandboxError: the number cannot be determined.
        """
        expected = await self.of(prepared, image)
        problem_id = prepared.problem.id
        async with self._locks[problem_id]:
            known = self._known.get(problem_id, expected)
            if known.untouched is None:
                tested = await run_tests(self._sandbox, prepared, image, {}, self._limits)
                known = known.with_untouched_run(tested)
                await self._store(problem_id, _key(prepared, await self._sandbox.image_id(image)), known)
                self._known[problem_id] = known
            return known.untouched or 0

    async def _find(self, prepared: Prepared, image: str) -> Expected:
        key = _key(prepared, await self._sandbox.image_id(image))
        problem_id = prepared.problem.id
        stored = self._stored.get(problem_id, {})
        if stored.get("key") != key:
            stored = read_stored(self._cache / f"{key}.json") or {}
        if stored.get("key") == key:
            expected = _decoded(stored)
        else:
            expected = await self._learn(prepared, image)
        await self._store(problem_id, key, expected)
        return expected

    def _output_excerpt(self, problem_id: str, tested: Tested) -> str:
        """Return the relevant output lines and the path of the full output."""
        output = tested.execution.output
        path = self._cache.parent / "outputs" / f"{quote(problem_id, safe='')}.tests.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output, encoding="utf-8", errors="replace")
        return f"Output (full text in {path}):\n{relevant_lines(output) or '(none)'}"

    async def _learn(self, prepared: Prepared, image: str) -> Expected:
        changed = await self._reference_changes(prepared, image)
        reference = None
        if changed is not None:
            reference = await run_tests(self._sandbox, prepared, image, changed, self._limits)
        named = prepared.problem.tests
        source: Source = "reference"
        tested = reference
        if tested is None or _obstacle(tested, named):
            source, changed = "project", {}
            tested = await run_tests(self._sandbox, prepared, image, changed, self._limits)
        if named and source == "project" and _nothing_loads(tested, named):
            return Expected(tests=named, source="csv", untouched=0, provisional=_NOT_LOADED)
        if trouble := _obstacle(tested, named):
            if reference is not None:
                trouble = f"{trouble}, and with the reference {_obstacle(reference, named)}"
            remedy = how_to_report(prepared.policy.tools.commands, tested.execution.output)
            raise ExpectationError(
                f"its tests {trouble}; {remedy + '; ' if remedy and not tested.report.cases else ''}"
                "check test_command, result_files, limits and the image, give a reference with which all"
                " tests run, or list the tests in a column `tests`."
                f" {self._output_excerpt(prepared.problem.id, tested)}",
                problem_id=prepared.problem.id,
            )
        found = self._expected_from(prepared, source, tested)
        return replace(
            found, provisional=await self._after_listing(found, prepared, image, changed or {}, tested)
        )

    async def _after_listing(
        self, found: Expected, prepared: Prepared, image: str, changed: Changed, tested: Tested
    ) -> str:
        """Compare with the runner's own list of tests; return why the expected tests are provisional."""
        listing = listing_of(prepared.policy.tools.commands)
        if listing is None:
            return found.provisional
        command, read = listing
        listed = await run_tests(self._sandbox, prepared, image, changed, self._limits, command=command)
        tests = list(dict.fromkeys(read(listed.execution.stdout)))
        if missing := not_reported(tests, tested.report.cases):
            why = f"the test runner lists {len(missing)} tests that the run did not report: {some(missing)}"
            return "; ".join(filter(None, [why, found.provisional]))
        named = [TestCase(name=test.name, outcome="passed") for test in prepared.problem.tests]
        is_confirmed = len(tests) == len(named) and not not_reported(tests, named)
        return "" if named and is_confirmed else found.provisional

    def _expected_from(self, prepared: Prepared, source: Source, tested: Tested) -> Expected:
        problem = prepared.problem
        wrong = mismatch(tested.report, problem.tests) if problem.tests else None
        if wrong:
            raise ExpectationError(wrong, problem_id=problem.id)
        tests = among_skipped(tested.report, problem.tests) or weighted(
            learn(tested.report), prepared.weights
        )
        if not tests:
            raise ExpectationError(
                "every reported test was skipped or is a failed set-up; correct the project, or list the"
                " tests in a column `tests`",
                problem_id=problem.id,
            )
        doubt = _NO_REFERENCE if source == "project" else _reason_for_doubt(tested, tests)
        found = Expected(tests=tests, source="csv" if problem.tests else source, provisional=doubt)
        return found.with_untouched_run(tested) if source == "project" else found

    async def _reference_changes(self, prepared: Prepared, image: str) -> Changed | None:
        """Return the reference's files; None if there is no reference or no applicable file."""
        if prepared.reference is None:
            return None
        integrated = (await self.fitted(prepared, image)).integrated_reference()
        return integrated.files if integrated else None

    async def _store(self, problem_id: str, key: str, expected: Expected) -> None:
        """Store the expected tests in a thread, one problem at a time: syncing to disk is slow."""
        tests = [test.record() for test in expected.tests]
        # Encoded and decoded, so that it equals a record that was read from disk.
        record = orjson.loads(orjson.dumps({"key": key, **asdict(expected), "tests": tests}))
        async with self._writing:
            self._cache.mkdir(parents=True, exist_ok=True)
            cached = self._cache / f"{key}.json"
            if expected.untouched is not None or not cached.exists():
                await asyncio.to_thread(write_atomically, cached, orjson.dumps(record))
            if self._stored.get(problem_id) != record:
                self._stored[problem_id] = record
                content = orjson.dumps(self._stored, option=orjson.OPT_INDENT_2) + b"\n"
                await asyncio.to_thread(
                    write_atomically, self._path, content, mode=file_mode(self._path.parent)
                )


def _key(prepared: Prepared, image_id: str) -> str:
    problem = prepared.problem
    reference = sorted(prepared.reference.files.items()) if prepared.reference else None
    return fingerprint(
        {
            "version": _VERSION,
            "project": prepared.project.sha256,
            "reference": fingerprint(reference),
            "command": problem.test_command,
            "result_files": problem.result_files,
            "tests": [test.record() for test in problem.tests],
            "image": image_id,
        }
    )


def _decoded(record: Mapping[str, Any]) -> Expected:
    return Expected(
        source=record["source"],
        provisional=record.get("provisional", ""),
        untouched=record.get("untouched"),
        untouched_tests=tuple(record.get("untouched_tests", ())),
        tests=tuple(ExpectedTest(**test) for test in record["tests"]),
    )


_NO_REFERENCE = "the expected tests are not confirmed by a reference; give a reference"
_NOT_LOADED = "the untouched project loads none of the tests in the CSV; give a reference"


def _reason_for_doubt(tested: Tested, tests: Sequence[ExpectedTest]) -> str:
    """Return why a reference's run does not confirm the expected tests; "" if it does."""
    verdict = grade(tested.report, tests)
    failed = sum(case.outcome in {"failed", "error"} for case in tested.report.cases)
    if verdict.passed < verdict.total:
        return (
            f"the reference passes {verdict.passed} of {verdict.total} expected tests; correct the reference"
        )
    if failed:
        return f"the reference fails {failed} reported tests; correct the reference"
    if tested.execution.exit_code:
        return (
            f"the test command exits with {tested.execution.exit_code} for the reference; correct the command"
        )
    return ""


def _nothing_loads(tested: Tested, named: Sequence[ExpectedTest]) -> bool:
    """Return True if no named test was reported because code did not build or suites did not load."""
    failed = cut_short(tested.execution) is None and any(map(hides_tests, tested.report.cases))
    return not_built(tested) or (failed and mismatch(tested.report, named) is not None)


def _obstacle(tested: Tested, named: Sequence[ExpectedTest]) -> str:
    """Return why no names can be learned or checked with this run; "" if they can."""
    execution = tested.execution
    if execution.timed_out:
        return f"did not finish within {execution.duration_s:.0f} s"
    if cut_short(execution):
        return f"hit the container's {execution.failed_limit or 'memory'} limit"
    if not tested.report.cases:
        reason = "; ".join(tested.report.problems) or "no result file"
        return f"report no cases (exit code {execution.exit_code}; {reason})"
    missing = () if named else signs_of_missing_tests(tested)
    return f"are not all reported, so T would be too small ({'; '.join(missing)})" if missing else ""
