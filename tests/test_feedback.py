"""Feedback to a model: equal for equal failures, short, and without hidden content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.asking.feedback import (
    MAX_CHARACTERS,
    Secrets,
    build_feedback,
    conversation_sha256,
    mode_for,
)
from astra_async.asking.stable import shortened, stable
from astra_async.overlay import path_policy
from astra_async.types import ExpectedTest, Problem, Project, ProjectFile

SEEN = """\
def test_zero():
    total = count("")
    assert total == 0


def test_the_total(shop):
    assert shop.total() == 12
"""
HIDDEN = """\
import pytest


@pytest.mark.parametrize("bird", ["quetzal", "kakapo"])
def test_birds_are_counted(bird):
    assert count(f"two-{bird}s") == 2, "a marmoset is no bird"


def test_the_total_of_nothing():
    assert count("axolotl-and-ocelot") == 0
"""
SECRETS = (
    *("quetzal", "kakapo", "marmoset", "axolotl", "ocelot", "test_birds", "test_the_total_of_nothing"),
    *("test_hidden", "hidden/"),
)


def project(*files: tuple[str, str]) -> Project:
    return Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(files)), sha256="s"
    )


def secrets(*, hidden: bool = True) -> Secrets:
    files = [("src/shop.py", "def count(text):\n    return 1\n"), ("tests/test_seen.py", SEEN)]
    files += [("hidden/test_hidden.py", HIDDEN)] if hidden else []
    problem = Problem(
        id="p",
        statement="Count birds.",
        project="p",
        test_command="pytest",
        hidden_paths=("hidden/",) if hidden else (),
    )
    expected = [ExpectedTest(name=name) for name in NAMES if hidden or "seen" in name]
    return Secrets.of(path_policy(problem, project(*files)), expected)


NAMES = (
    "tests.test_seen.test_zero",
    "tests.test_seen.test_the_total",
    "hidden.test_hidden.test_birds_are_counted[quetzal]",
    "hidden.test_hidden.test_the_total_of_nothing",
)


def result(**fields: Any) -> dict[str, Any]:
    tests = [{"name": name, "outcome": "failed", "message": "assert 1 == 0"} for name in NAMES]
    return {
        "status": "scored",
        "failure": "tests_failed",
        "passed": 0,
        "total": len(tests),
        "tests": tests,
        "dropped": [],
        **fields,
    }


# --- stability ---------------------------------------------------------------------------------------------

digits = st.integers(0, 9).map(str)
hexes = st.text("0123456789abcdef", min_size=12, max_size=12).map(lambda text: f"a1{text}")
clock = st.builds("{:02}:{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
day = st.builds("{}-{:02}-{:02}".format, st.integers(2020, 2099), st.integers(1, 12), st.integers(1, 28))
number = st.integers(1, 99_999)
CHANGING = {
    "Ran 3 tests in {}s": st.floats(0.001, 900).map("{:.3f}".format),
    "Tests: 3 failed ({} ms)": number,
    "[INFO] Tests run: 3, Time elapsed: {} s": st.floats(0.001, 900).map("{:.2f}".format),
    "Finished in {} seconds (files took 0.1 seconds to load)": st.floats(0.001, 900).map("{:.5f}".format),
    "started at {}": clock,
    "{} INFO started": st.builds("{} {}".format, day, clock),
    '"at": "{}Z"': st.builds("{}T{}".format, day, clock),
    "due {}": day,
    "<Shop object at 0x{}>": hexes,
    "Shop@{}": st.text("0123456789abcdef", min_size=7, max_size=7).map(lambda text: text[:6] + "1"),
    "listening on http://127.0.0.1:{}": st.integers(1024, 65535),
    "connect ECONNREFUSED ::1 port {}": st.integers(1024, 65535),
    "see http://localhost:{}/api/items/5": st.integers(1024, 65535),
    "(node:{}) Warning": number,
    "worker pid {} died": number,
    'File "/tmp/pytest-{}/shop.py", line 3': number,
    "Randomized with seed {}": number,
    "Run options: --seed {}": number,
    "request {} failed": st.uuids().map(str),
    "container {}": hexes,
    "wrote /tmp/tmp{}": st.text("abcdefghijklmnop0123456789_", min_size=8, max_size=8),
    "timestamp {}": st.integers(1_600_000_000_000, 1_899_999_999_999),
}


@pytest.mark.parametrize("line", CHANGING)
@settings(max_examples=25)
@given(data=st.data())
def test_feedback_omits_what_differs_between_runs(line: str, data: st.DataObject) -> None:
    one, other = (line.format(data.draw(CHANGING[line])) for _ in range(2))
    assert stable(one) == stable(other)
    assert stable(stable(one)) == stable(one)


@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_stable_text_does_not_change_again(text: str) -> None:
    assert stable(stable(text)) == stable(text)
    assert "\x1b" not in stable(text)


KEPT = (
    "expected 404 to equal 200",
    "GET /api/products/5 gave 404",
    "src/app.js:12:30: TypeError",
    'File "tasks/api.py", line 70, in list_tasks',
    "expected '12.50' to be '12.5'",
    "AssertionError: assert [1, 2, 3] == [1, 2]",
    "Expected: 3 items",
    "at index 1, version 2.31.0",
    "isbn 9780306406157",
)


@pytest.mark.parametrize("line", KEPT)
def test_details_of_a_failure_are_kept(line: str) -> None:
    assert stable(line) == line


def test_project_paths_become_relative_and_other_paths_keep_only_their_name() -> None:
    told = stable('File "/projects/challenge/src/a.py"\nFile "/usr/lib/python3.11/json/decoder.py"')
    assert told == 'File "src/a.py"\nFile "<path>/decoder.py"'


def test_colors_titles_and_overwritten_progress_are_removed() -> None:
    assert stable("\x1b[31mred\x1b[0m\x1b]0;title\x07\n10 %\r100 %\r\nend  ") == "red\n100 %\nend"


@given(st.text("ab\n", max_size=300), st.integers(60, 200))
def test_a_shortened_text_keeps_its_head_and_its_tail(text: str, length: int) -> None:
    short = shortened(text, length)
    assert len(short) <= max(length, len("\n[... left out ...]\n"))
    if short != text:
        head, _, tail = short.partition("\n[... left out ...]\n")
        assert text.startswith(head)
        assert text.endswith(tail)


# --- what is hidden --------------------------------------------------------------------------------------

noise = st.sampled_from(
    [
        *HIDDEN.splitlines(),
        *NAMES,
        "hidden/test_hidden.py:6: AssertionError: a marmoset is no bird",
        "FAILED hidden/test_hidden.py::test_birds_are_counted[kakapo]",
        '>       assert count("axolotl-and-ocelot") == 0',
        "\x1b[31mtest_birds_are_\x1b[0mcounted",
        "expected 'two-quetzals' to be 2",
        "SyntaxError: invalid syntax",
        "tests/test_seen.py:3: AssertionError",
    ]
)


@given(
    lines=st.lists(noise, max_size=12),
    messages=st.lists(st.lists(noise, max_size=3), min_size=4, max_size=4),
    failure=st.sampled_from(["tests_failed", "no_report", "build_failure", "timeout"]),
    mode=st.sampled_from(["full", "names", "count"]),
)
def test_feedback_reveals_nothing_of_a_hidden_test(
    lines: list[str], messages: list[list[str]], failure: str, mode: Any
) -> None:
    tests = [
        {"name": name, "outcome": "failed", "message": "\n".join(said)}
        for name, said in zip(NAMES, messages, strict=True)
    ]
    dropped = [
        {"path": "hidden/test_hidden.py", "reason": "hidden"},
        {"path": "jest.config.js", "reason": "runner_configuration"},
    ]
    told = build_feedback(
        result(tests=tests, failure=failure, dropped=dropped), "\n".join(lines), SECRETS_OF, mode=mode
    )
    assert not [secret for secret in SECRETS if secret in told.text]
    assert "jest.config.js" in told.text
    assert ("test_zero (failed)" in told.text) == (mode != "count")


SECRETS_OF = secrets()


def test_a_test_is_hidden_unless_its_title_is_visible() -> None:
    assert set(NAMES[2:]) == SECRETS_OF.tests
    assert secrets(hidden=False).tests == frozenset()


# --- the text --------------------------------------------------------------------------------------------


@given(
    st.lists(st.text("abc \n`", max_size=600), max_size=30),
    st.text("xyz \n`", max_size=20_000),
    st.integers(0, 9),
)
def test_feedback_never_exceeds_its_maximum_length(messages: list[str], output: str, passed: int) -> None:
    tests = [{"name": f"t{n}", "outcome": "failed", "message": text} for n, text in enumerate(messages)]
    told = build_feedback(
        result(tests=tests, passed=passed, total=passed + len(tests)), output, Secrets(), mode="full"
    )
    assert len(told.text) <= MAX_CHARACTERS


def test_each_feedback_mode_has_its_content() -> None:
    plain = secrets(hidden=False)
    tests = result()["tests"][:2]
    texts = {
        mode: build_feedback(result(tests=tests, total=2), "printed here", plain, mode=mode).text
        for mode in ("full", "names", "count")
    }
    assert all("0 of 2 tests passed" in text for text in texts.values())
    assert ["test_zero" in texts[mode] for mode in ("full", "names", "count")] == [True, True, False]
    assert ["assert 1 == 0" in texts[mode] for mode in ("full", "names", "count")] == [True, False, False]
    assert ["printed here" in texts[mode] for mode in ("full", "names", "count")] == [True, False, False]
    assert all("Answer in the same format" in text for text in texts.values())


def test_feedback_on_an_unusable_answer_has_the_reason_and_the_valid_files() -> None:
    unusable = result(status="no_solution", failure="truncated", tests=result()["tests"])
    told = build_feedback(unusable, "", Secrets(), mode="full", standing={"passed": 3, "total": 4}).text
    assert "cut off before its end" in told
    assert "with them 3 of 4 tests passed" in told
    assert "test_zero" not in told


def test_the_default_mode_for_hidden_paths_is_count() -> None:
    assert mode_for((), None) == "full"
    assert mode_for(("hidden/",), None) == "count"
    assert mode_for(("hidden/",), "names") == "names"


def test_a_conversations_hash_covers_all_its_messages() -> None:
    hashes = {
        conversation_sha256(*said)
        for said in (("p", "a", "f"), ("p", "a", "g"), ("p", "af", ""), ("q", "a", "f"))
    }
    assert len(hashes) == 4
