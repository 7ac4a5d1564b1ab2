"""`astra show`: outcome first, a diff of what was changed, the prompt last, nothing that a terminal obeys."""

from __future__ import annotations

import unicodedata
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pyte
import pytest
from click.testing import CliRunner
from msgspec import structs

from astra_async.asking.prompt import build_prompt
from astra_async.cli.console import harmless, open_console
from astra_async.cli.show import show
from astra_async.running.directory import RunDirectory
from astra_async.running.evidence import Evidence
from astra_async.running.recorded import store_prompts
from astra_async.types import (
    AgentWork,
    Completion,
    Dropped,
    FileChange,
    NamedOutcome,
    Problem,
    Project,
    ProjectFile,
    Result,
    SampleKey,
    Usage,
)
from waiting import cpu_within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY = SampleKey("m", "xml", "p", 0)
PROJECT = Project(
    files=(
        ProjectFile(path="src/a.js", content=b"one\ntwo\nthree\n"),
        ProjectFile(path="t.js", content=b"t\n"),
    ),
    sha256="0" * 64,
)
PROMPT = build_prompt(Problem(id="p", statement="Do it.", project="/p"), PROJECT, "xml")
ANSWER = (
    '<solution><file path="src/a.js"><![CDATA[one\n2\nthree\n]]></file>'
    '<file path="src/new.js"><![CDATA[new\n]]></file><file path="t.js"><![CDATA[x\n]]></file></solution>'
)
COMPLETION = Completion(
    text=ANSWER,
    finish_reason="stop",
    usage=Usage(output_tokens=9),
    returned_model="m",
    ttft_s=0.1,
    latency_s=1,
)
RESULT = Result(
    schema=1,
    model="m",
    format="xml",
    problem_id="p",
    sample=0,
    status="scored",
    failure="tests_failed",
    passed=1,
    total=2,
    score=0.5,
    tests=(NamedOutcome(name="works", outcome="passed"), NamedOutcome(name="fails", outcome="failed")),
    dropped=(Dropped(path="t.js", reason="test file"),),
    changes=(
        FileChange(path="src/a.js", added=1, removed=1, kind="changed"),
        FileChange(path="src/new.js", added=1, removed=0, kind="new"),
    ),
    prompt_sha256=PROMPT.sha256,
    output_tail="the tail",
)
HOSTILE = (
    "\x1b]0;owned\x07\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\\x1b[2J\x1b[H\x1b[1;31mred\x1b[0m"
    "\u202egnp.exe\u202c \u2066a\u2069 \x9b2J \x08\x08 \rover \x7f\u2028"
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path, COMPLETION, RESULT)
    return tmp_path


def write(
    path: Path, completion: Completion, result: Result, outputs: Sequence[tuple[Result, str]] = ()
) -> None:
    with closing(RunDirectory.open(path)) as directory:
        store_prompts(directory.path, [PROMPT])
        directory.record_completion(KEY, completion, PROMPT.sha256)
        for of, output in outputs:
            directory.record_output(of, Evidence(tests=(), output=output, output_bytes=1000))
        directory.record_result(result)
        directory.record_event("rate_limited", KEY, detail=result.note)
        directory.save()


def shown(path: Path, *words: str) -> str:
    done = CliRunner().invoke(show, [str(path), "m", "p", "0", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_outcome_comes_first_and_the_prompt_last(run: Path) -> None:
    text = shown(run)
    titles = [line.strip("- ") for line in text.splitlines() if line.startswith("--- ")]
    assert titles[0] == "result: 1 of 2 tests passed, scored (tests_failed)"
    assert titles[1] == "end of the output (the rest was not kept)"
    assert titles[-1] == f"prompt {PROMPT.sha256[:12]}"
    assert text.index("failed  fails") < text.index("passed  works") < text.index("the tail")


def test_changed_files_are_shown_as_a_diff_of_what_the_prompt_showed(run: Path) -> None:
    text = shown(run, "--part", "changes")
    assert "--- src/a.js ---\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" in text
    assert "--- src/new.js (new) ---\n@@ -0,0 +1 @@\n+new\n" in text
    assert "--- t.js (dropped: test file) ---\nx\n" in text


def test_messages_changes_and_the_kept_output_are_shown(tmp_path: Path) -> None:
    tests = (
        RESULT.tests[0],
        structs.replace(RESULT.tests[1], message="expected 2 to equal 3\n    at t.js:1:1"),
    )
    result = structs.replace(RESULT, tests=tests, finished_at="2026-01-01T00:00:00.000Z")
    outputs = [
        (
            structs.replace(result, finished_at="2025-12-31T23:59:59.000Z"),
            "of a grading that was broken off",
        ),
        (structs.replace(result, sample=1), "of another sample"),
        (result, "\x1b[31mall of it\x1b[0m\x1b]0;owned\x07"),
    ]
    write(tmp_path, COMPLETION, result, outputs)
    text = shown(tmp_path)
    assert "  failed  fails\n            expected 2 to equal 3\n                at t.js:1:1\n" in text
    assert "  src/a.js (changed): +1 -1 lines\n" in text
    assert "--- output, 1,000 bytes ---\nall of it" in text
    assert "end of the output" not in text
    assert "broken off" not in text
    assert "another sample" not in text
    assert shown(tmp_path, "--part", "output").startswith("--- output, 1,000 bytes ---\n")


def test_the_end_of_an_agents_work_is_named(tmp_path: Path) -> None:
    left_out = ("venv/: venv/a", "venv/: 300 more", "a symbolic link: etc")
    work = AgentWork(
        agent="own", version="1", end="crashed", exit_code=1, output_tail="no such file", left_out=left_out
    )
    write(tmp_path, COMPLETION, structs.replace(RESULT, agent=work))
    text = shown(tmp_path)
    assert "\nown 1: crashed\n" in text
    assert "--- end of the agent's output ---\nno such file\n" in text
    listed = "\n".join(("--- files that are not part of the answer, by reason ---", *left_out, ""))
    assert listed in text


def test_a_change_of_a_million_lines_is_shown_at_once(tmp_path: Path) -> None:
    lines = "\n".join(f"{number % 97}" for number in range(400_000))
    write(tmp_path, replace(COMPLETION, text=ANSWER.replace("one\n2\nthree\n", lines)), RESULT)
    with cpu_within(5):
        assert "--- src/a.js (cut) ---" in shown(tmp_path, "--part", "changes")


def test_nothing_that_a_terminal_obeys_is_printed(tmp_path: Path) -> None:
    completion = replace(
        COMPLETION, text=ANSWER.replace("src/new.js", f"src/{HOSTILE[:20]}.js").replace("2\n", HOSTILE)
    )
    outcome = NamedOutcome(name=HOSTILE, outcome="failed")
    hostile = structs.replace(
        RESULT,
        output_tail=HOSTILE,
        note=HOSTILE,
        tests=(outcome,),
        dropped=(Dropped(path=HOSTILE, reason="x"),),
    )
    write(tmp_path, completion, hostile)
    text = shown(tmp_path)
    assert "red" in text
    assert not {unicodedata.category(each) for each in text.replace("\n", "")} & {
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    }


@pytest.mark.parametrize("text", [HOSTILE, "\ud800", "\x1b", "\x1b[", "\x1bP1$r\x1b\\"])
def test_a_terminal_that_gets_harmless_text_only_prints(text: str) -> None:
    screen = pyte.Screen(200, 3)
    pyte.Stream(screen).feed(harmless(text))
    assert screen.title == ""
    assert screen.cursor.y == 0
    assert screen.display[0].rstrip() == harmless(text)


def test_a_console_makes_tables_and_lines_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    console = open_console()
    table = Table("model")
    table.add_row(HOSTILE + "[bold]markup[/bold]")
    console.print(table)
    console.print(HOSTILE)
    out = capsys.readouterr().out
    assert "[bold]markup[/bold]" in out
    assert not {unicodedata.category(each) for each in out.replace("\n", "")} & {"Cc", "Cf", "Cs"}
