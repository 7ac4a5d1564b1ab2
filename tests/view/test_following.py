"""Logs read on while others write them, who is said to run, and what an answer changed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.asking.prompt import build_prompt
from astra_async.overlay import anchored, integrate, path_policy
from astra_async.running.directory import RunDirectory
from astra_async.running.spool import owner_of
from astra_async.types import Integrated, Problem, Project, ProjectFile, Solution
from astra_async.view.following import Following, is_running
from astra_async.view.logs import Regrown, Tail
from astra_async.view.replay import MOST_LINES, replayed
from made_runs import Made, made_problems, run_json, write_run
from waiting import cpu_within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read_all(tail: Tail) -> list[bytes]:
    found: list[bytes] = []
    while lines := tail.read():
        found += [content for _, _, content in lines]
    return found


@settings(deadline=None)
@given(content=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_a_file_read_while_it_grows_gives_the_lines_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "log"
    tail, found, done = Tail(path), [], 0
    for cut in [*sorted(cuts), len(content)]:
        with path.open("ab") as stream:
            stream.write(content[done : max(cut, done)])
        done = max(cut, done)
        found += read_all(tail)
    whole = content.split(b"\n")[:-1]
    assert found == [line for line in whole if line]
    assert tail.lines == len(whole)


def test_a_line_longer_than_many_blocks_comes_whole_and_only_when_it_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert tail.read() == []
    path.write_bytes(b"short\n" + b"x" * 5_000_000)
    assert read_all(tail) == [b"short"]
    assert read_all(tail) == []
    with path.open("ab") as stream:
        stream.write(b"y\nlast\n")
    assert [len(line) for line in read_all(tail)] == [5_000_001, 4]
    assert tail.read() == []


def test_another_file_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    for content in (b"one\n", b"one\nTWO\nthree\n"):
        tail = Tail(path)
        path.write_bytes(b"one\ntwo\n")
        assert read_all(tail) == [b"one", b"two"]
        path.write_bytes(content)
        with pytest.raises(Regrown):
            tail.read()
    path.unlink()
    with pytest.raises(Regrown):
        tail.read()


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def test_who_runs_is_told_by_live_json_while_it_is_fresh(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here: dict[str, Any] = {"pid": os.getpid(), "host": socket.gethostname(), "at": ago(1), "ended": False}
    assert is_running(tmp_path, here)
    assert not is_running(tmp_path, here | {"ended": True})
    assert not is_running(tmp_path, here | {"at": ago(60)})
    assert not is_running(tmp_path, here | {"pid": ended.pid})
    assert is_running(tmp_path, here | {"pid": ended.pid, "host": "another machine"})
    assert not is_running(tmp_path, None)


def test_a_run_without_live_json_is_known_by_its_lock_which_is_not_touched(tmp_path: Path) -> None:
    directory = RunDirectory.open(tmp_path / "run")
    try:
        assert owner_of(directory.path) == os.getpid()
        assert is_running(directory.path, None)
    finally:
        directory.close()
    assert owner_of(directory.path) is None
    looking = True

    def look() -> None:
        while looking:
            owner_of(directory.path)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(150):  # each opening takes the lock, and is refused where somebody else tries it
            RunDirectory.open(directory.path).close()
    finally:
        looking = False
        thread.join()


@pytest.mark.parametrize(
    "name", ["run.json", "results.jsonl", "completions.jsonl", "events.jsonl", "calls.jsonl"]
)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_log_that_is_no_file_is_named_and_blocks_nothing(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    directory = write_run(tmp_path / "run", Made(skill={"m": 0.5}, problems=made_problems(2), samples=2))
    (directory / name).unlink(missing_ok=True)
    make(directory / name)
    followed = Following(directory)
    followed.look()
    assert "not a regular file" in followed.trouble
    for command in ("status", "report") if name != "calls.jsonl" else ():
        program = [sys.executable, "-m", "astra_async", command, directory]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
        assert f"{name}: not a regular file; " in done.stderr
        assert done.returncode in (2, 3)


def test_damaged_lines_of_every_log_are_named(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made(skill={"m": 0.5}, problems=made_problems(2), samples=2))
    logs = ("results", "completions", "outputs", "turns", "turn_results", "events", "calls")
    for name in logs:
        with (directory / f"{name}.jsonl").open("ab") as stream:
            stream.write(b'{"model": "m", \n')
    followed = Following(directory)
    while followed.look():
        pass
    assert followed.trouble == ""
    for name in logs:
        assert [line.startswith(f"{name}.jsonl line") for line in followed.warnings()].count(True) == 1


def test_a_plan_too_large_to_be_shown_is_one_line(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    made = run_json(Made(problems=made_problems(3)))
    (directory / "run.json").write_bytes(orjson.dumps(made | {"samples": 10**12}))
    run = Following(directory)
    run.look()
    assert run.plan == 0
    assert len(run.warnings()) == 1
    assert "the limit" in run.warnings()[0]
    (directory / "run.json").write_bytes(orjson.dumps(made))
    run.look()
    assert run.warnings() == []


def test_looking_on_while_a_thread_writes_ends_with_what_is_there(tmp_path: Path) -> None:
    made = Made(problems=made_problems(5), samples=20)
    whole = write_run(tmp_path / "whole", made)
    directory = write_run(tmp_path / "run", replace(made, problems=made_problems(5)))
    content = (whole / "results.jsonl").read_bytes()
    (directory / "results.jsonl").write_bytes(b"")

    def write() -> None:
        with (directory / "results.jsonl").open("ab", buffering=0) as stream:
            for at in range(0, len(content), 997):
                stream.write(content[at : at + 997])
                time.sleep(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    run = Following(directory)
    while writer.is_alive():
        run.look()
    writer.join()
    while run.look():
        pass
    assert bool(run.logs.columns.places["present"].all())
    assert run.warnings() == []


PRISTINE = {
    "src/app.js": "".join(f"line {number}\n" for number in range(40)),
    "package.json": '{"name": "x", "dependencies": {"a": "1.0.0"}, "scripts": {"test": "jest"}}\n',
    "test/app.test.js": "test('it', () => {})\n",
    "empty.txt": "",
    "no-end.txt": "a\nb",
}


def applied(answer: dict[str, str]) -> tuple[Integrated, str, Solution]:
    """What a real integration makes of an answer, with the real rules; and the prompt."""
    problem = Problem(id="p", statement="Do it.", project="p", test_command="npx jest")
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(PRISTINE.items()))
    project = Project(files=files, sha256="")
    policy, solution = path_policy(problem, project), Solution(files=answer)
    integrated = integrate(project, anchored(solution, project), policy)
    assert isinstance(integrated, Integrated)
    return integrated, build_prompt(problem, project, "xml", policy=policy).text, solution


def as_line(integrated: Integrated) -> dict[str, Any]:
    dropped = [{"path": each.path, "reason": each.reason} for each in integrated.dropped]
    return {"dropped": dropped, "solution_sha256": integrated.sha256}


def test_what_an_answer_changed_is_made_again_from_the_record_alone() -> None:
    answer = {
        "project/src/app.js": PRISTINE["src/app.js"].replace("line 20\n", "line twenty\nand more\n"),
        "project/package.json": '{"name": "y", "dependencies": {"a": "2.0.0"}, "scripts": {"test": "true"}}',
        "project/test/app.test.js": "cheat()",
        "project/new/file.js": "new\n",
        "project/empty.txt": "no longer\n",
        "project/no-end.txt": "a\nb",
        "project/.env": "PORT=1\nNODE_OPTIONS=--require evil\n",
    }
    integrated, prompt, solution = applied(answer)
    assert {each.path for each in integrated.dropped} >= {"test/app.test.js"}
    found = replayed([solution], prompt, as_line(integrated))
    assert found.note == ""
    assert {file.path: file.kind for file in found.files} == {
        "src/app.js": "changed",
        "package.json": "changed",
        "new/file.js": "new",
        "empty.txt": "changed",
        ".env": "new",
    }
    texts = {file.path: file.unified for file in found.files}
    assert texts["src/app.js"].splitlines() == [
        "@@ -18,7 +18,8 @@",
        *(" line 17", " line 18", " line 19", "-line 20", "+line twenty", "+and more"),
        *(" line 21", " line 22", " line 23"),
    ]
    assert texts["new/file.js"].splitlines() == ["@@ -0,0 +1 @@", "+new"]
    assert "NODE_OPTIONS" not in texts[".env"]
    assert '+    "test": "jest"' in texts["package.json"].splitlines()
    assert '+    "a": "2.0.0"' in texts["package.json"].splitlines()


def test_what_is_not_what_was_tested_is_said() -> None:
    integrated, prompt, solution = applied({"src/app.js": "changed\n"})
    other = Solution(files={"src/app.js": "something else\n"})
    assert "not exactly" in replayed([other], prompt, as_line(integrated)).note
    assert "not stored" in replayed([solution], None, as_line(integrated) | {"solution_sha256": "x"}).note
    earlier = Solution(files={"new.js": "kept\n", "src/app.js": "first\n"})
    whole, prompt, _ = applied({"new.js": "kept\n", "src/app.js": "changed\n"})
    assert replayed([earlier, solution], prompt, as_line(whole)).note == ""


def test_the_worst_files_cost_little() -> None:
    before = "".join(f"{number % 11}\n" for number in range(MOST_LINES))
    after = "".join(f"{number % 13}\n" for number in range(MOST_LINES))
    huge = "".join(f"{number}\n" for number in range(100_000)) + "z" * 1_000_000
    many = {f"many/{number}.txt": huge[:300_000] for number in range(15)}
    prompt = build_prompt(
        Problem(id="p", statement="s", project="p"),
        Project(files=(ProjectFile(path="a.txt", content=before.encode()),), sha256=""),
        "xml",
    ).text
    with cpu_within(5):
        found = replayed([Solution(files={"a.txt": after, "b.txt": huge, **many})], prompt, {})
    cut = {file.path: file.cut for file in found.files}
    assert (cut["a.txt"], cut["b.txt"], cut["many/0.txt"], cut["many/9.txt"]) == (False, True, False, True)
    assert sum(len(file.unified) for file in found.files) <= 4_000_000
    assert max(len(file.unified) for file in found.files) <= 400_000
