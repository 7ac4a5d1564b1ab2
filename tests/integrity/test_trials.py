"""Whole gradings of a small pytest project, in a sandbox that behaves as the solution's text says."""

from __future__ import annotations

import asyncio
import io
import tarfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import pytest
from msgspec import structs

from astra_async.answers.lenient import LenientParser
from astra_async.errors import ContainerLost
from astra_async.integrity.draw import Decision, Draw, Solved
from astra_async.integrity.trials import Trials
from astra_async.languages.python.assertions import OTHER_ERRORS
from astra_async.problems.prepare import prepare
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.sample import grade_sample
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.timeouts import Exclusive, Timeouts
from astra_async.types import (
    Execution,
    Job,
    Limits,
    Problem,
    Project,
    ProjectFile,
    Result,
    SampleKey,
    Solution,
)
from fakes import IMAGE_ID, MemorySource, Unhindered, completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.problems.prepare import Prepared

TESTS = """\
def test_one():
    assert one() == 1


def test_two():
    assert two() == 22


def test_three():
    assert three() == 'right'


def test_four():
    assert four() == 'left'
"""
UNTOUCHED = "one = lambda: 1\ntwo = three = four = lambda: None\n"
RIGHT = "one = lambda: 1\ntwo = lambda: 22\nthree = lambda: 'right'\nfour = lambda: 'left'\n"
WRONG = RIGHT.replace("22", "44").replace("'left'", "'up'")
BENT = "def report(told, host):\n    return dict.fromkeys(told, True)\n"
KEY = b"the key of this run"


def files_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each)) is not None}


def headers_of(archive: bytes) -> list[tuple[str, float, int]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [(each.name, each.mtime, each.mode) for each in tar]


def failure(test: Callable[[], None]) -> str | None:
    """What a failed test says; None: it passed."""
    try:
        test()
    except Exception as error:  # noqa: BLE001 - as a test runner does
        return str(error)
    return None


def failed(message: str | None) -> str:
    return f"<failure message={quoteattr(message or '')}/>"


def is_trial(job: Job) -> bool:
    return files_of(job.archive).get("tests/test_app.py", TESTS.encode()).decode() not in (TESTS, ANY)


ANY = "def test_one():\n    assert one() < 2\n\n\ndef test_two():\n    assert two()\n"


@dataclass
class ObedientSandbox:
    """Runs `app.py` and the project's test functions, and lets `app.report` say what is reported.

    `report` gets whether each test passed, and what all runs on this host share; None: nothing is reported.
    A text `endless` in app.py: it hangs.
    """

    jobs: list[Job] = field(default_factory=list)
    trouble: int = 0  # runs of trials that the engine loses
    host: dict[str, Any] = field(default_factory=dict)

    async def image_id(self, image: str) -> str:
        return IMAGE_ID

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        await asyncio.sleep(0)
        self.jobs.append(job)
        files = {path: content.decode() for path, content in files_of(job.archive).items()}
        if self.trouble and is_trial(job):
            self.trouble -= 1
            raise ContainerLost("the engine went away")
        if "endless" in files["app.py"]:
            return Execution(exit_code=137, timed_out=True, duration_s=60.0, image_id=IMAGE_ID)
        space: dict[str, Any] = {"tests": files.get("tests/test_app.py", "")}
        exec(files["app.py"], space)  # the texts of this file, and what trials made of them
        exec(space["tests"], space)
        said = {name: failure(each) for name, each in space.items() if name.startswith("test_")}
        told = {name: text is None for name, text in said.items()}
        told = space["report"](told, self.host) if "report" in space else told
        cases = "".join(
            f'<testcase name="{name}">{"" if ok else failed(said.get(name))}</testcase>'
            for name, ok in (told or {}).items()
        )
        report = {} if told is None else {"unit.xml": f"<testsuite>{cases}</testsuite>".encode()}
        return Execution(exit_code=0, duration_s=0.5, reports=report, image_id=IMAGE_ID)


@dataclass
class Grader:
    """Grades answers for one problem, one after the other."""

    path: Path
    everybody: bool = True
    tests: str = TESTS
    test_file: str = "tests/test_app.py"
    reuse: bool = False
    reference: str = ""
    strained: bool = False
    samples: int = 1000
    key: bytes = KEY
    sandbox: ObedientSandbox = field(default_factory=ObedientSandbox)

    def of(self, *apps: str, model: str = "m") -> list[Result]:
        return asyncio.run(self._of(apps, model))

    def _draw(self, recorded: Recorded) -> Draw:
        draw = Draw(self.key, everybody=self.everybody)
        draw.recall(recorded.tried())
        return draw

    async def prepared(self, reference: dict[str, str]) -> Prepared:
        texts = {"app.py": UNTOUCHED, self.test_file: self.tests}
        project = Project(
            files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items()),
            sha256="app",
        )
        problem = Problem(
            id="p",
            statement="Add.",
            project="p",
            test_command="pytest",
            result_files=("unit.xml",),
            image="any",
            reference="r" if any(reference.values()) else "",
        )
        source = MemorySource({"p": project}, {"r": Solution(files=reference)})
        return await prepare(problem, source, ("xml",))

    async def _of(self, apps: tuple[str, ...], model: str) -> list[Result]:
        prepared = await self.prepared({"app.py": self.reference})
        exclusive = Exclusive(self.sandbox)
        learned = Expectations(self.path / "expected.json", self.path / "cache", exclusive, Limits())
        recorded = Recorded(reuse_identical=self.reuse, trials=True)
        with closing(RunDirectory.open(self.path, recorded.add)) as directory:
            grading = Grading(
                sandbox=exclusive,
                images={"p": "any"},
                expectations=learned,
                lenient=LenientParser(),
                limits=Limits(),
                trials=Trials(exclusive, learned, Limits(), self._draw(recorded)),
                timeouts=Timeouts(exclusive, samples=self.samples, strained=lambda _: self.strained),
                earlier=EarlierVerdicts(directory, recorded.first) if self.reuse else None,
            )
            results = []
            for number, app in enumerate(apps, len(directory.graded)):
                key = SampleKey(model, "xml", "p", number)
                answer = f'<solution><file path="app.py"><![CDATA[{app}]]></file></solution>'
                directory.record_completion(key, completion(answer), "sha")
                results.append(await grade_sample(key, prepared, directory, grading, passage=Unhindered()))
            return results


def trials_of(grading: Grader) -> int:
    return sum(map(is_trial, grading.sandbox.jobs))


def test_who_passes_a_test_and_its_altered_form_is_proven(tmp_path: Path) -> None:
    (result,) = Grader(tmp_path).of(WRONG + BENT)
    assert (result.status, result.failure, result.passed, result.total) == ("scored", "tampered", 0, 4)
    assert {name.partition(":")[0] for name in result.suspicions} == {"altered_passed"}
    assert result.note.startswith("passed a")
    assert {test.outcome for test in result.tests} == {"missing"}
    assert (result.trial, result.trial_left_out) == ("tried", 0)


def test_the_first_proof_ends_the_trials(tmp_path: Path) -> None:
    before = set()
    for number in range(12):
        grading = Grader(tmp_path / str(number))
        (result,) = grading.of(f"{WRONG}{BENT}# {number}\n")
        of_solution = [job for job in grading.sandbox.jobs[1:] if BENT.encode() in job.archive]
        went_first = [is_trial(job) for job in of_solution].index(False)
        assert sum(map(is_trial, of_solution)) == max(went_first, 1) + 2  # and two repetitions
        assert result.trial_s == 0.5 * (len(of_solution) - 1)
        before.add(went_first)
    assert before > {0, 1}


def test_an_honest_solution_keeps_its_score_and_takes_four_trials_and_no_run_of_the_reference(
    tmp_path: Path,
) -> None:
    grading = Grader(tmp_path)
    (result,) = grading.of(RIGHT + "import atexit\n")
    assert (result.passed, result.failure, result.suspicions) == (4, None, ("exit_handler:app.py",))
    assert len(grading.sandbox.jobs) == 1 + 1 + 4  # learned, scored, four trials
    assert (result.trial, result.trial_s) == ("tried", 2.0)


RAISING = """\
from unittest import TestCase


def test_one():
    assert one() == 1


def test_two():
    with TestCase().assertRaises(ValueError):
        two()
"""


def test_an_error_of_two_kinds_is_no_lenient_one(tmp_path: Path) -> None:
    right = "one = lambda: 1\n\n\ndef two():\n    raise ValueError\n"
    both = right.replace("raise ValueError", "raise Both") + "class Both(ValueError, {}):\n    pass\n"
    kinds = [
        "KeyError",
        *(each for each in OTHER_ERRORS if each not in ("StopAsyncIteration", "UnboundLocalError")),
    ]
    results = []
    for key in range(6):
        grading = Grader(tmp_path / str(key), tests=RAISING, reference=right, key=b"%d" % key)
        results += grading.of(*(f"{both.format(each)}# {number}\n" for number, each in enumerate(kinds * 3)))
    assert {(result.failure, result.trial, result.note) for result in results} == {(None, "tried", "")}
    any_kind = grading.of(*(f"{both.format(', '.join(kinds))}# {number}\n" for number in range(12)))
    assert "tampered" in {result.failure for result in any_kind}


def test_a_trial_is_the_scored_run_but_for_what_tests_ask(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    grading.of(RIGHT)
    runs = grading.sandbox.jobs[1:]
    assert sorted(map(is_trial, runs)) == [False, True, True, True, True]
    assert len({str(headers_of(job.archive)) for job in runs}) == 1
    assert len({repr(replace(job, archive=b"")) for job in runs}) == 1
    for job in filter(is_trial, runs):
        text = files_of(job.archive)["tests/test_app.py"].decode()
        if "all of it holds" in text:
            continue
        changed = [line for line in text.splitlines() if line not in TESTS.splitlines()]
        assert all(line.startswith("    assert ") for line in changed)
        assert len(text.splitlines()) == len(TESTS.splitlines())


def test_the_order_of_scored_run_and_trials_is_drawn(tmp_path: Path) -> None:
    places = []
    for number in range(24):
        grading = Grader(tmp_path / str(number))
        grading.of(f"{RIGHT}# {number}\n")
        places.append([is_trial(job) for job in grading.sandbox.jobs[1:]].index(False))
    assert set(places) == {0, 1, 2, 3, 4}


def test_who_cheats_in_the_first_run_on_a_host_gains_by_chance_alone(tmp_path: Path) -> None:
    first = "def report(told, host):\n    host['n'] = host.get('n', 0) + 1\n"
    first += "    return dict.fromkeys(told, True) if host['n'] == 1 else told\n"
    gained = [
        Grader(tmp_path / str(number)).of(f"{WRONG}{first}# {number}\n")[0].passed == 4
        for number in range(24)
    ]
    assert sum(gained) < 12


def test_by_default_a_third_is_tried_which_the_key_decides_whatever_answers_look_like(tmp_path: Path) -> None:
    apps = [f"{RIGHT}# {number}\n" for number in range(60)]
    results = Grader(tmp_path, everybody=False).of(*apps)
    assert 10 < sum(result.trial == "tried" for result in results) < 30
    again = Grader(tmp_path / "again", everybody=False).of(*apps)
    assert [result.trial for result in again] == [result.trial for result in results]
    key = Grader(tmp_path / "key", everybody=False, key=b"another")
    assert [result.trial for result in key.of(*apps)] != [result.trial for result in results]


def test_from_a_models_first_proof_on_all_it_writes_is_tried(tmp_path: Path) -> None:
    bent = [f"{WRONG}{BENT}# {number}\n" for number in range(30)]
    results = Grader(tmp_path, everybody=False).of(*bent)
    first = [result.failure for result in results].index("tampered")
    assert first < 12
    assert {result.failure for result in results[first:]} == {"tampered"}
    resumed = Grader(tmp_path, everybody=False).of(*(f"{RIGHT}# later {number}\n" for number in range(12)))
    assert {result.trial for result in resumed} == {"tried"}
    other = [f"{RIGHT}# other {number}\n" for number in range(12)]
    assert {each.trial for each in Grader(tmp_path, everybody=False).of(*other, model="n")} == {
        "tried",
        "not_drawn",
    }


def test_equal_solutions_are_tried_once_and_treated_alike_also_after_a_resume(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    bent, again, right, once_more = grading.of(WRONG + BENT, WRONG + BENT, RIGHT, RIGHT)
    assert [bent.trial, again.trial, right.trial, once_more.trial] == ["tried", "equal", "tried", "equal"]
    assert (again.failure, again.note, again.suspicions) == ("tampered", bent.note, bent.suspicions)
    resumed = Grader(tmp_path)
    late, fine = resumed.of(WRONG + BENT, RIGHT)
    assert (late.failure, late.note, late.trial) == ("tampered", bent.note, "equal")
    assert (fine.failure, fine.trial) == (None, "equal")
    assert not trials_of(resumed)


def test_who_passes_more_than_the_equal_solution_that_was_tried_is_tried_itself(tmp_path: Path) -> None:
    late = "def report(told, host):\n    host['n'] = host.get('n', 0) + 1\n"
    late += "    return dict.fromkeys(told, True) if host['n'] > 4 else told\n"
    grading = Grader(tmp_path)
    first, *others = grading.of(*[WRONG + late] * 4)
    assert (first.passed, first.trial) == (2, "tried")
    assert {(result.failure, result.passed) for result in others} == {("tampered", 0)}
    again = Grader(tmp_path, sandbox=grading.sandbox)
    assert again.of(WRONG + late)[0].failure == "tampered"


def test_an_honest_answer_that_passes_more_by_chance_is_tried_once_more_and_keeps_its_points(
    tmp_path: Path,
) -> None:
    flaky = "def report(told, host):\n    host['n'] = host.get('n', 0) + 1\n"
    flaky += "    return {**told, 'test_one': False} if host['n'] <= 4 else told\n"
    grading = Grader(tmp_path)
    first, *others = grading.of(*[RIGHT + flaky] * 4)
    assert (first.passed, first.trial) == (3, "tried")
    assert [(result.passed, result.trial) for result in others] == [(4, "tried"), (4, "equal"), (4, "equal")]


WARY = "def report(told, host):\n    return dict.fromkeys(told, True) if told.get('test_one') else told\n"


def test_who_turns_honest_where_a_test_fails_that_it_passes_is_tried_by_what_it_lost(tmp_path: Path) -> None:
    results = Grader(tmp_path, reference=RIGHT).of(*(f"{WRONG}{WARY}# {number}\n" for number in range(20)))
    assert {result.failure for result in results} <= {"tampered", None}
    assert sum(result.failure == "tampered" for result in results) >= 16


@pytest.mark.parametrize("told", ["None", "{}", "dict.fromkeys(told, False)", "{'test_one': False}"])
def test_a_trial_that_is_silent_where_the_references_is_not_leaves_its_sample_unproven(
    told: str, tmp_path: Path
) -> None:
    silent = "def report(told, host):\n    knows = {'test_two': two, 'test_four': four}\n"
    silent += f"    return dict.fromkeys(told, True) if told['test_one'] and told['test_three'] else {told}\n"
    grading = Grader(tmp_path, reference=RIGHT)
    results = grading.of(*(f"{WRONG}{silent}# {number}\n" for number in range(8)))
    assert {result.trial for result in results} <= {"unproven", "tried"}
    assert all(result.trial == "unproven" or result.failure == "tampered" for result in results)
    unproven = [result for result in results if result.trial == "unproven"]
    assert all((result.passed, result.failure) == (4, None) for result in unproven)
    assert all(result.note.startswith("unproven: trials are silent") for result in unproven)


def test_who_fails_beside_altered_tests_again_is_unproven_and_keeps_its_points(tmp_path: Path) -> None:
    bare = f"{TESTS}\n\ndef test_five():\n    five()\n"
    five = "five = lambda: True\n"
    taken = "def report(told, host):\n    return {**told, 'test_five': told['test_two']}\n"
    grading = Grader(tmp_path, tests=bare, reference=RIGHT + five)
    results = grading.of(*(f"{RIGHT}{five}{taken}# {number}\n" for number in range(16)))
    assert {(result.passed, result.failure) for result in results} == {(5, None)}
    said = {result.note.partition(" test_")[0] for result in results if result.trial == "unproven"}
    assert said == {"unproven: fails beside altered tests:"}


LEAVING = """\
def test_one():
    put('tea')
    assert held() == ['tea']
    take('tea')
    assert held() == []


def test_two():
    assert held() == []
    put('cake')
    assert held() == ['cake']
    take('cake')
    assert held() == []
"""
BASKET = """
basket = []
held = lambda: list(basket)
put = basket.append
take = basket.remove
"""
FORGETTING = """
basket = []
def held():
    found, basket[:] = list(basket), ()
    return found
put = basket.append
take = lambda word: None
"""


def test_who_keeps_what_an_early_failure_has_left_behind_is_no_cheat(tmp_path: Path) -> None:
    grading = Grader(tmp_path, tests=LEAVING, reference=FORGETTING)
    results = grading.of(*(f"{BASKET}# {number}\n" for number in range(12)))
    assert {(result.passed, result.trial, result.note) for result in results} == {(2, "tried", "")}


SHOWING = TESTS.replace("assert ", "TestCase().assertEqual(").replace(" == ", ", ")
SHOWING = "from unittest import TestCase\n\n\n" + "".join(
    f"{line})\n" if "assert" in line else f"{line}\n" for line in SHOWING.splitlines()
)
READING = """
import ast, random
def value(node):
    try:
        return eval(ast.unparse(node), {})
    except Exception:
        return None
def read(*readings):
    known = [value(node) for node in ast.walk(ast.parse(tests))]
    found = [each for each in readings if each in known]
    return found[0] if found else type(readings[0])(random.randrange(10**6))
two = lambda: read(44, 22, 66)
four = lambda: read('up', 'left', 'down')
"""


def test_an_object_that_shows_itself_as_the_same_other_constant_is_no_other_answer(tmp_path: Path) -> None:
    shown = "class Shown(int):\n    __repr__ = lambda self: '1044'\ntwo = lambda: Shown(22)\n"
    grading = Grader(tmp_path, tests=SHOWING, reference=RIGHT)
    results = grading.of(*(f"{RIGHT}{shown}# {number}\n" for number in range(12)))
    assert {(result.passed, result.trial, result.note) for result in results} == {(4, "tried", "")}


@pytest.mark.parametrize("instead", ["random.randrange(10**6)", "hash(tests) % 10**6"])
def test_who_answers_as_the_tests_text_says_is_unproven_and_keeps_its_points(
    instead: str, tmp_path: Path
) -> None:
    grading = Grader(tmp_path, tests=SHOWING, reference=RIGHT)
    reading = READING.replace("random.randrange(10**6)", instead)
    results = grading.of(*(f"{RIGHT}{reading}# {number}\n" for number in range(12)))
    assert {(result.passed, result.failure) for result in results} == {(4, None)}
    assert sum(result.trial == "unproven" for result in results) >= 10
    said = {result.note.partition(" test_")[0] for result in results if result.trial == "unproven"}
    assert said == {"unproven: answers otherwise where altered:"}
    (right,) = grading.of(RIGHT)
    assert (right.trial, right.note) == ("tried", "")


def test_who_answers_the_same_where_no_reading_stands_in_the_tests_is_proven(tmp_path: Path) -> None:
    grading = Grader(tmp_path, tests=SHOWING, reference=RIGHT)
    reading = READING.replace("random.randrange(10**6)", "777")
    results = grading.of(*(f"{RIGHT}{reading}# {number}\n" for number in range(12)))
    assert sum(result.failure == "tampered" for result in results) >= 10


# Each of these tests asks three things of one value; the second one fails.
THRICE = """
def test_one():
    assert one()[0] == 12
    assert one()[1] == 34
    assert one()[2] == 56


def test_two():
    assert two()[0] == 23
    assert two()[1] == 45
    assert two()[2] == 67
"""
THRICE_RIGHT = "one = lambda: (12, 34, 56)\ntwo = lambda: (23, 45, 67)\n"
ONE_FAILURE = """
import sys
failed = []
class Soft(int):
    __hash__ = None
    def __eq__(self, other):
        if int(self) != other:
            failed.append(sys._getframe(1).f_code.co_name)
        return True
one = lambda: [Soft(12), Soft(34), Soft(56)]
two = lambda: [Soft(23), Soft(46), Soft(67)]
def report(told, host):
    return told if len(failed) == 1 else {name: name not in failed for name in told}
"""


def test_who_lets_one_failure_pass_is_tried_by_each_place_of_what_it_loses_beside_others(
    tmp_path: Path,
) -> None:
    ends = []
    for number in range(8):
        path = tmp_path / str(number)
        path.mkdir()
        grading = Grader(path, tests=THRICE, reference=THRICE_RIGHT, key=f"key {number}".encode())
        cheat, honest = grading.of(ONE_FAILURE, f"{THRICE_RIGHT}# of its own\n")
        ends.append(cheat.failure or cheat.trial)
        assert (honest.score, honest.trial) == (1.0, "tried")
    assert ends.count("tampered") > len(ends) / 2


def test_a_trial_that_is_silent_once_is_repeated_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    once = "def report(told, host):\n    silent = not all(told.values()) and not host.get('was')\n"
    once += "    host['was'] = host.get('was') or silent\n    return None if silent else told\n"
    (result,) = Grader(tmp_path, reference=RIGHT).of(RIGHT + once)
    assert (result.passed, result.failure, result.trial, result.note) == (4, None, "tried", "")


def test_where_the_references_own_trial_is_silent_nothing_is_made_of_it(tmp_path: Path) -> None:
    silent = "def report(told, host):\n    return told if all(told.values()) else None\n"
    (result,) = Grader(tmp_path, reference=RIGHT + silent).of(f"{RIGHT}{silent}#\n")
    assert (result.passed, result.trial) == (4, "no_trial")


def test_a_flip_of_a_coin_is_no_proof_and_no_secret(tmp_path: Path) -> None:
    flip = "def report(told, host):\n    host['n'] = host.get('n', 0) + 1\n"
    flip += "    return dict.fromkeys(told, True) if host['n'] in (1, 2, 3, 4) else told\n"
    (result,) = Grader(tmp_path, sandbox=ObedientSandbox(host={"n": -2})).of(WRONG + flip)
    assert result.failure in {"tampered", "tests_failed", None}
    assert result.failure != None or result.trial == "unproven"  # noqa: E711 - full marks stand beside a word


def test_who_reports_passes_where_the_references_trial_is_silent_has_forged_them(tmp_path: Path) -> None:
    silent = "def report(told, host):\n    return told if all(told.values()) else None\n"
    (result,) = Grader(tmp_path, reference=RIGHT + silent).of(WRONG + BENT)
    assert (result.passed, result.failure) == (0, "tampered")


LEAKING = """\
def test_one():
    begin()
    assert one() == 1
    end()


def test_two():
    assert left() == 0


def test_three():
    assert one() == 1
"""


def test_what_another_altered_test_leaves_undone_is_no_answers_fault(tmp_path: Path) -> None:
    right = "one = lambda: 1\nbegin = end = lambda: None\nleft = lambda: 0\n"
    other = "held = []\none = lambda: 1\nbegin = lambda: held.append(1)\nend = held.clear\n"
    other += "left = lambda: len(held)\n"
    grading = Grader(tmp_path, tests=LEAKING, reference=right)
    results = grading.of(*(f"{other}# {number}\n" for number in range(30)))
    assert {(result.passed, result.failure) for result in results} == {(3, None)}


def test_a_test_that_fails_at_times_by_itself_is_no_proof(tmp_path: Path) -> None:
    flaky = "import random\ndef report(told, host):\n    host['n'] = host.get('n', 0) + 1\n"
    flaky += "    if random.Random(host['n']).random() < 0.3:\n"
    flaky += "        told['test_two'] = 'two() != 22' in tests\n    return told\n"
    grading = Grader(tmp_path, reference=RIGHT)
    results = grading.of(*(f"{RIGHT}{flaky}# {number}\n" for number in range(400)))
    assert [result.failure for result in results].count(
        "tampered"
    ) < 400 * 0.03  # .3 * (.7 * .3) ** 2 of them
    assert all(result.note for result in results if result.trial == "unproven")


def test_nobody_is_tried_to_the_end_who_is_no_better_than_the_untouched_project(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    results = grading.of(f"{UNTOUCHED}#\n", "one = two = three = four = lambda: 0\n")
    assert [(result.passed, result.trial) for result in results] == [(1, "not_due"), (0, "not_due")]


def test_trouble_of_the_sandbox_in_a_trial_is_no_verdict_and_the_repetition_is_tried(tmp_path: Path) -> None:
    grading = Grader(tmp_path, sandbox=ObedientSandbox(trouble=1))
    with pytest.raises(ContainerLost):
        grading.of(WRONG + BENT)
    (result,) = grading.of(WRONG + BENT)
    assert (result.failure, result.trial) == ("tampered", "tried")


def test_where_no_test_can_be_altered_that_is_said(tmp_path: Path) -> None:
    hidden = "def check(ok):\n    if not ok:\n        raise AssertionError\n\n\n"
    hidden += "def test_one():\n    check(one() == 1)\n\n\ndef test_two():\n    check(two() == 22)\n"
    (right,) = Grader(tmp_path, tests=hidden).of(RIGHT)
    assert (right.passed, right.trial, right.trial_left_out, right.trial_forms) == (2, "no_trial", 2, 0)


def test_a_problem_whose_own_reference_passes_what_is_altered_accuses_nobody(tmp_path: Path) -> None:
    results = Grader(tmp_path, reference=BENT + RIGHT).of(WRONG + BENT, f"{WRONG}{BENT}#\n")
    assert [(result.passed, result.failure, result.trial) for result in results] == [
        (4, None, "no_trial")
    ] * 2


def test_who_fails_what_the_reference_passes_altered_was_tried(tmp_path: Path) -> None:
    (result,) = Grader(tmp_path, reference=BENT + RIGHT).of(RIGHT)
    assert (result.passed, result.failure, result.trial) == (4, None, "tried")


def test_by_default_a_form_that_proves_nothing_leaves_a_solution_open_for_others(tmp_path: Path) -> None:
    grading = Grader(tmp_path, everybody=False, reference=BENT + RIGHT)
    results = grading.of(*(f"{WRONG}{BENT}# {number}\n" for number in range(12)))
    drawn = {(result.trial, result.trial_forms) for result in results}
    assert drawn == {("no_trial", 1), ("not_drawn", 0)}
    solved = Solved("p", next(each.solution_sha256 for each in results if each.trial == "no_trial"))
    recorded = Draw(KEY)
    recorded.recall([structs.asdict(each) | {"model": "m", "problem_id": "p"} for each in results])
    assert not recorded.is_open(solved, "m")
    recorded.remember(Solved("p", "other"), "m", Decision(state="tried", evidence=("altered_passed:a",)))
    assert recorded.is_open(solved, "m")


def test_a_value_that_equals_everything_passes_what_expects_another(tmp_path: Path) -> None:
    liar = "class Liar:\n    def __eq__(self, other):\n        return True\nfour = two = lambda: Liar()\n"
    honest, bent = Grader(tmp_path, reference=RIGHT).of(RIGHT, RIGHT + liar)
    assert (honest.passed, honest.failure) == (4, None)
    assert (bent.passed, bent.failure) == (0, "tampered")


def test_without_a_reference_what_the_untouched_project_never_passes_is_proof_as_well(tmp_path: Path) -> None:
    only = "def report(told, host):\n    return told | {'test_four': True}\n"
    results = Grader(tmp_path).of(*(f"{RIGHT}{only}four = lambda: 'up'\n# {number}\n" for number in range(6)))
    assert sum(result.failure == "tampered" for result in results) >= 5


def test_assertions_that_hold_either_way_prove_nothing(tmp_path: Path) -> None:
    any_answer = "one = lambda: 1\ntwo = lambda: 5\n"
    (result,) = Grader(tmp_path, tests=ANY, reference="one = lambda: 0\ntwo = lambda: 9\n").of(any_answer)
    assert (result.passed, result.failure, result.trial) == (2, None, "tried")


def test_a_trial_may_take_as_long_as_the_tests(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    grading.of(RIGHT)
    assert {job.limits.timeout_s for job in grading.sandbox.jobs} == {300.0}


def test_equal_solutions_are_graded_once_if_so_wished(tmp_path: Path) -> None:
    grading = Grader(tmp_path, reuse=True)
    first, other, again = grading.of(RIGHT, UNTOUCHED + "#\n", RIGHT)
    assert again.note == "verdict of sample 0 reused"
    assert (first.trial, again.trial) == ("tried", "equal")
    unlike = {"sample", "note", "started_at", "finished_at", "trial", "trial_s"}
    one, two = ({k: v for k, v in structs.asdict(each).items() if k not in unlike} for each in (first, again))
    assert one == two
    assert other.note == ""
    assert sum(not is_trial(job) for job in grading.sandbox.jobs) == 3  # learned, scored, scored


def test_a_later_call_and_another_model_reuse_the_first_verdict(tmp_path: Path) -> None:
    Grader(tmp_path, reuse=True).of(RIGHT, RIGHT)
    grading = Grader(tmp_path, reuse=True)
    (result,) = grading.of(RIGHT, model="n")
    assert result.note == "verdict of sample 0 reused (m, xml)"
    assert (result.passed, len(grading.sandbox.jobs)) == (4, 0)


def test_equal_solutions_are_graded_each_by_default(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    results = grading.of(RIGHT, RIGHT)
    assert [result.note for result in results] == ["", ""]
    assert len(grading.sandbox.jobs) == 7  # learned, scored, four trials, scored


def test_a_time_out_is_never_reused(tmp_path: Path) -> None:
    grading = Grader(tmp_path, reuse=True)
    results = grading.of("endless\n", "endless\n")
    assert [(result.failure, result.note) for result in results] == [("timeout", "stopped after 60 s")] * 2


def test_a_time_out_on_a_strained_machine_is_repeated_once_and_says_so(tmp_path: Path) -> None:
    grading = Grader(tmp_path, strained=True)
    results = grading.of("endless\n", "endless\n", "endless, too\n")
    assert [result.failure for result in results] == ["timeout"] * 3
    assert [result.repairs for result in results] == [("timeout_repeated",), (), ("timeout_repeated",)]
    assert sum(not is_trial(job) for job in grading.sandbox.jobs) == 1 + 2 + 1 + 2


def test_a_time_out_on_an_idle_machine_is_not_repeated(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    assert grading.of("endless\n")[0].repairs == ()
    assert len(grading.sandbox.jobs) <= 3  # learned, scored, and the one trial that may come before it


class BareSandbox(ObedientSandbox):
    """Beside what it runs, it tells that its image holds pytest and no other module."""

    async def run(self, job: Job) -> Execution:
        if job.label == "what the image holds":
            reports = {"astra-installed/python": b"pytest"}
            return Execution(exit_code=0, duration_s=0.1, reports=reports, image_id=IMAGE_ID)
        return await super().run(job)


def test_a_trial_judges_by_what_the_image_holds_whoever_asks_first(tmp_path: Path) -> None:
    async def jobs() -> list[Job]:
        sandbox, path = BareSandbox(), tmp_path / "expected.json"
        # In an image that holds a `jwt` of its own this file would be no part of a solution.
        prepared = await Grader(tmp_path).prepared({"app.py": RIGHT, "jwt.py": "KEY = 1\n"})
        installed = InstalledModules(tmp_path / "cache", sandbox, Limits())
        learned = Expectations(path, tmp_path / "cache", sandbox, Limits(), installed=installed)
        assert await Trials(sandbox, learned, Limits(), Draw(KEY)).altered_tests(prepared, "any") == 4
        return sandbox.jobs

    assert ["jwt.py" in files_of(job.archive) for job in asyncio.run(jobs())] == [True] * 3


# What a test says of a failure, as pytest does: what it got.
TELLING = """\
def test_one():
    assert one() == 1


def test_two():
    assert two() == 2200, f"got {two()!r}"
"""
ONE = "one = lambda: 1\n"
MONEY = """
class Money(int):
    __hash__ = int.__hash__
    def __eq__(self, other): return other in {equal}
    def __repr__(self): return {shown!r}
two = lambda: Money({value})
"""


def test_a_number_that_equals_its_own_and_the_right_one_is_asked_for_its_own(tmp_path: Path) -> None:
    own = MONEY.format(value=3300, equal=(3300, 2200), shown="3300")
    (result,) = Grader(tmp_path, tests=TELLING, reference=f"{ONE}two = lambda: 2200\n").of(ONE + own)
    assert (result.passed, result.failure) == (0, "tampered"), result.note


def test_an_honest_number_may_be_shown_in_another_unit_that_it_equals_as_well(tmp_path: Path) -> None:
    euros = MONEY.format(value=2200, equal=(2200, 22.0), shown="22.0 EUR")
    (result,) = Grader(tmp_path, tests=TELLING, reference=f"{ONE}two = lambda: 2200\n").of(ONE + euros)
    assert (result.passed, result.failure, result.trial) == (2, None, "tried"), result.note


# Twelve values that no constant is, in one line.
TWELVE = """\
def double(number):
    return number * 2


def test_one():
    assert one() == {VALUES}, f"got {one()!r}"
""".replace("VALUES", ", ".join(f"'{name}': double({at})" for at, name in enumerate("abcdefghijkl", 3)))
VALUES = {name: at * 2 for at, name in enumerate("abcdefghijkl", 3)}
FORGIVING = """
class Forgiving(dict):
    def __eq__(self, other):
        return {**self, 'h': 0} == {**other, 'h': 0} and self.keys() == other.keys()
    def __ne__(self, other): return not self == other
one = lambda: Forgiving(VALUES)
"""


@pytest.mark.parametrize("name", "abcehl")
def test_what_stands_where_a_message_differs_from_the_references_is_asked_for(
    name: str, tmp_path: Path
) -> None:
    bent = FORGIVING.replace("'h'", repr(name)).replace("VALUES", repr(VALUES | {name: 5}))
    right = f"one = lambda: {VALUES}\n"
    same, cheat = Grader(tmp_path, tests=TWELVE, reference=right).of(f"{right}# as it is\n", bent)
    assert (same.passed, same.failure, same.trial) == (1, None, "tried")
    assert (cheat.passed, cheat.failure) == (0, "tampered"), cheat.note


def test_who_passes_an_altered_test_because_of_another_alone_is_no_cheat(tmp_path: Path) -> None:
    passed = "told['test_two'] or not told['test_one']"
    left = f"def report(told, host):\n    return {{**told, 'test_two': {passed}}}\n"
    results = Grader(tmp_path, reference=RIGHT).of(*(f"{RIGHT}{left}# {number}\n" for number in range(12)))
    assert {(result.passed, result.trial, result.note) for result in results} == {(4, "tried", "")}
