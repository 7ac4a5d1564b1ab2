"""The whole program while containers, images and the Docker Engine itself are taken away from it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from astra_async.images.base_image import build_image
from astra_async.testing.sandbox.engine import Engine
from build_context import context
from machine import slowness
from nasty_server import NastyServer, answers
from private_engine import needs_own_engine, private_engine
from slow_engine import SlowEngine
from small_problems import solution, write_problems
from waiting import awaited
from whole_runs import Run, finished, key, once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nasty_server import Behaviour
    from private_engine import PrivateEngine

pytestmark = pytest.mark.docker
IMAGE = "endurance-test:1"
SAMPLES = 6
DETERMINED = ("status", "failure", "passed", "total", "score", "tests", "solution_sha256")


def by_sample(sample: str, _: int) -> Behaviour:
    """Sample n passes n of the tests, and never none: those of the untouched project do not sleep."""
    return answers(solution(1 + int(sample.partition("/")[2]) % 4))


def a_run(folder: Path, server: NastyServer, image: str, *, sleep_s: float, **fields: object) -> Run:
    folder.mkdir(exist_ok=True)
    slow = f'read -r answer < src/answer.txt; [ "$answer" = 0 ] || sleep {sleep_s}'
    known: dict[str, object] = {
        "samples": SAMPLES,
        "options": ("--sandboxes", "2"),
        **fields,
    }
    return Run(
        folder=folder,
        problems=write_problems(folder, ["p"], image, before=slow),
        base_url=server.base_url,
        **known,  # type: ignore[arg-type]
    )


def await_running_tests(run: Run) -> None:
    awaited(lambda: bool(run.lines("completions.jsonl")), "answers")
    awaited((run.out / "expected.json").exists, "the expected tests")
    awaited(lambda: len(run.containers(running_only=True)) == 2, "two running containers")


def executing(run: Run) -> list[str]:
    """Containers that do more than wait for their tests."""
    found = []
    for each in run.containers(running_only=True):
        with suppress(subprocess.CalledProcessError):  # removed since it was listed
            if run.docker("inspect", "-f", "{{len .ExecIDs}}", each) != ["0"]:
                found.append(each)
    return found


def check_scores(run: Run, server: NastyServer) -> None:
    """Whatever happened, every sample has the score of its answer, and was asked for once."""
    run.check_end()
    scores = {line["sample"]: line["passed"] for line in run.lines("results.jsonl")}
    assert scores == {sample: 1 + sample % 4 for sample in range(SAMPLES)}
    assert set(server.asked.values()) == {1}


def test_a_container_killed_from_outside_is_tested_again_and_never_scored(
    tmp_path: Path, tiny_image: str
) -> None:
    with NastyServer(by_sample) as server:
        run = a_run(tmp_path, server, tiny_image, sleep_s=6, options=("--sandboxes", str(SAMPLES)))
        process = run.start()
        awaited((run.out / "expected.json").exists, "the expected tests")
        awaited(lambda: len(executing(run)) >= 2, "two tests that run")
        run.docker("kill", *executing(run)[:2])
        finished(process, 0)
        check_scores(run, server)
        repeated = [event for event in run.lines("events.jsonl") if event["kind"] == "sandbox_retry"]
        assert len({key(event) for event in repeated}) == 2


@pytest.mark.first
def test_a_test_that_eats_all_cpu_neither_fails_nor_blocks_the_others(
    tmp_path: Path, tiny_image: str
) -> None:
    eater = "for ((n = 0; n < 32; n++)); do while :; do :; done & done; wait"
    work = "for ((n = 0; n < 200000; n++)); do :; done"  # half a second of CPU time
    before = f'read -r answer < src/answer.txt; if [ "$answer" = 9 ]; then {eater}; else {work}; fi'

    def script(sample: str, attempt: int) -> Behaviour:
        return answers(solution(9)) if sample == "p/0" else by_sample(sample, attempt)

    with NastyServer(script) as server:
        run = Run(
            folder=tmp_path,
            problems=write_problems(tmp_path, ["p"], tiny_image, before=before, named=True),
            base_url=server.base_url,
            samples=SAMPLES,
            options=("--sandboxes", "2"),
        )
        head, line = run.problems.read_text().splitlines()
        run.problems.write_text(f"{head},timeout_s\n{line},{round(6 * slowness())}\n")
        run.finish()
        run.check_end()
        results = {line["sample"]: line for line in run.lines("results.jsonl")}
        ate = results.pop(0)
        assert (ate["failure"], ate["passed"]) == ("timeout", 0)
        assert {n: line["passed"] for n, line in results.items()} == {n: 1 + n % 4 for n in range(1, SAMPLES)}
        assert min(line["finished_at"] for line in results.values()) < ate["finished_at"]


@pytest.fixture
def own_image(tiny_image: str) -> Iterator[str]:
    """An image that nothing else stands on."""
    name = f"astra-test/endurance:{uuid4().hex[:8]}"

    async def build() -> None:
        dockerfile = context(f"FROM {tiny_image}\nLABEL astra.test={name}\n")
        async with await Engine.open() as engine:
            await build_image(engine, dockerfile, tag=name, progress=print)

    asyncio.run(build())
    yield name
    subprocess.run(["docker", "rmi", "-f", name], check=True, capture_output=True)


@pytest.mark.first
def test_an_image_deleted_in_mid_run_leaves_the_rest_missing_until_it_is_back(
    tmp_path: Path, own_image: str
) -> None:
    deleted = threading.Event()

    def script(sample: str, attempt: int) -> Behaviour:
        first = by_sample(sample, attempt)
        return first if int(sample.partition("/")[2]) < SAMPLES // 2 else once(deleted, first)

    with NastyServer(script) as server:
        run = a_run(tmp_path, server, own_image, sleep_s=0.5, options=("--sandboxes", "1"))
        saved = tmp_path / "image.tar"
        run.docker("save", "-o", str(saved), own_image)
        image_id = run.docker("image", "inspect", "-f", "{{.Id}}", own_image)[0]
        process = run.start()
        run.await_lines("results.jsonl")
        # The engine refuses while a container of it runs.
        awaited(lambda: _deleted(image_id), "the deletion of the image")
        deleted.set()
        said = finished(process, 1)
        assert "samples missing: Image not found" in said
        missing = SAMPLES - len(run.lines("results.jsonl"))
        assert missing > 0
        run.check_end(missing=missing)
        run.docker("load", "-i", str(saved))
        run.finish()
        check_scores(run, server)


def _deleted(image_id: str) -> bool:
    done = subprocess.run(["docker", "rmi", "-f", image_id], capture_output=True, text=True, check=False)
    return done.returncode == 0 or "No such image" in done.stderr


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateEngine]:
    with private_engine(IMAGE, ("bash", "sleep", "rm", "mkdir")) as engine:
        yield engine


@pytest.mark.seconds(40)
@needs_own_engine
def test_an_engine_that_is_killed_and_started_again_changes_no_score(
    tmp_path: Path, private: PrivateEngine
) -> None:
    environ = {"DOCKER_HOST": private.host}
    with NastyServer(by_sample) as calm_server, NastyServer(by_sample) as server:
        calm = a_run(tmp_path / "calm", calm_server, IMAGE, sleep_s=1.5, environ=environ)
        calm.finish()
        run = a_run(tmp_path / "disturbed", server, IMAGE, sleep_s=1.5, environ=environ)
        process = run.start()
        await_running_tests(run)
        private.stop(signal.SIGKILL)
        private.start()
        finished(process, 0)
        check_scores(run, server)
        assert "sandbox_retry" in run.kinds()
        assert determined(run) == determined(calm)
        for table in ("problems.csv", "report/problems.csv"):
            assert (run.out / table).read_bytes() == (calm.out / table).read_bytes()


@dataclass(kw_only=True)
class SlowRun:
    """A run over a slow socket, begun when it is first asked for, so that others run beside it."""

    run: Run
    server: NastyServer
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def slow_run(tmp_path_factory: pytest.TempPathFactory, tiny_image: str) -> Iterator[SlowRun]:
    """Every answer of Docker comes 1 to 3 s late; a test takes 2 of the 8 s that it may take."""
    with NastyServer(by_sample) as server, SlowEngine(3.0) as engine:
        environ = {"DOCKER_HOST": engine.host}
        folder = tmp_path_factory.mktemp("slow")
        options = ("--sandboxes", str(SAMPLES))
        run = a_run(folder, server, tiny_image, sleep_s=2, environ=environ, options=options)
        head, line = run.problems.read_text().splitlines()
        run.problems.write_text(f"{head},timeout_s\n{line},8\n")
        process = run.start()
        try:
            yield SlowRun(run=run, server=server, process=process)
        finally:
            process.kill()
            process.communicate()


@pytest.mark.seconds(90)
@needs_own_engine
def test_an_engine_that_is_away_for_a_minute_is_waited_for(
    tmp_path: Path, private: PrivateEngine, slow_run: SlowRun
) -> None:
    with NastyServer(by_sample) as server:
        run = a_run(tmp_path, server, IMAGE, sleep_s=1.5, environ={"DOCKER_HOST": private.host})
        process = run.start()
        await_running_tests(run)
        private.stop()
        time.sleep(60)
        assert process.poll() is None
        assert len(run.lines("completions.jsonl")) == SAMPLES, "model calls do not wait for Docker"
        private.start()
        finished(process, 0)
        check_scores(run, server)


@pytest.mark.first
def test_a_slow_docker_holds_up_no_model_call_and_makes_no_test_time_out(slow_run: SlowRun) -> None:
    run = slow_run.run
    finished(slow_run.process, 0)
    check_scores(run, slow_run.server)
    results = run.lines("results.jsonl")
    assert not any(line["timed_out"] for line in results)
    last_answer = max(line["finished_at"] for line in run.lines("completions.jsonl"))
    first_answer = min(line["finished_at"] for line in run.lines("completions.jsonl"))
    assert seconds_between(first_answer, last_answer) < 40
    assert seconds_between(last_answer, min(line["finished_at"] for line in results)) > 5


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def determined(run: Run) -> dict[tuple[str, str, str, int], list[object]]:
    """What of each final line does not depend on when and how often it was tried."""
    return {key(line): [line[name] for name in DETERMINED] for line in run.lines("results.jsonl")}
