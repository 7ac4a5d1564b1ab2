"""The whole program against a server that does everything wrong: nothing lost, nothing asked twice."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from nasty_server import (
    NastyServer,
    answers,
    cuts,
    falls_silent,
    never_ends,
    refuses,
    resets,
    resets_at_once,
    says_nothing,
    trickles,
)
from small_problems import write_problems
from waiting import awaited
from whole_runs import Run, finished

if TYPE_CHECKING:
    from pathlib import Path

    from nasty_server import Behaviour

IDS = ("p", "q", "r")


def a_run(folder: Path, server: NastyServer, **settings: float) -> Run:
    return Run(
        folder=folder,
        problems=write_problems(folder, IDS, "any"),
        problem_ids=IDS,
        base_url=server.base_url,
        options=("--generate-only",),
        settings={"timeout_s": 20.0, **settings},
    )


LOST = {"reset": resets, "reset at once": resets_at_once, "cut": cuts} | {
    str(status): refuses(status) for status in (500, 502, 503)
}
STUCK = {falls_silent: 3.0, says_nothing: 3.0, trickles: 1.0}  # s of silence; an attempt has six times that


@pytest.mark.parametrize("trouble", LOST.values(), ids=LOST)
def test_a_lost_attempt_is_repeated_and_no_answer_is_asked_for_again(
    tmp_path: Path, trouble: Behaviour
) -> None:
    with NastyServer(lambda _, attempt: trouble if attempt == 1 else answers()) as server:
        run = a_run(tmp_path, server)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.answered.values()) == {1}
        assert set(server.asked.values()) == {2}
        assert {line["attempts"] for line in run.lines("completions.jsonl")} == {2}


@pytest.mark.parametrize(("trouble", "silence_s"), STUCK.items())
def test_a_stream_that_stalls_or_trickles_is_given_up_in_time_and_repeated(
    tmp_path: Path, trouble: Behaviour, silence_s: float
) -> None:
    with NastyServer(lambda _, attempt: trouble if attempt == 1 else answers()) as server:
        run = a_run(tmp_path, server, timeout_s=silence_s)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.answered.values()) == {1}
        assert "retry" in run.kinds()


def test_a_stream_that_never_ends_is_cut_off_at_a_size_that_no_answer_has(tmp_path: Path) -> None:
    def script(sample: str, attempt: int) -> Behaviour:
        return never_ends if (sample, attempt) == ("q/1", 1) else answers()

    with NastyServer(script) as server:
        run = a_run(tmp_path, server)
        run.finish()
        run.check_end(of="completions.jsonl")
        repeated = [event for event in run.lines("events.jsonl") if event["kind"] == "retry"]
        assert ["the answer is longer than" in event["detail"] for event in repeated] == [True]


def test_a_storm_of_429_is_waited_out(tmp_path: Path) -> None:
    begun_at: list[float] = []  # when the first request came

    def script(_: str, __: int) -> Behaviour:
        begun_at.append(time.monotonic())
        return answers() if begun_at[-1] > begun_at[0] + 5 else refuses(429, retry_after="1")

    with NastyServer(script) as server:
        run = a_run(tmp_path, server)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.answered.values()) == {1}
        assert server.asked.total() - len(server.answered) < 40, "asked and asked into the storm"
        assert {"rate_limited", "paused", "resumed"} <= run.kinds()


def test_requests_that_are_rejected_are_missing_and_named_and_a_resume_completes(tmp_path: Path) -> None:
    with NastyServer(lambda _, __: refuses(400)) as server:
        run = a_run(tmp_path, server)
        run.finish(code=1)
        run.check_end(missing=12, of="completions.jsonl")
        server.script = lambda _, __: answers()
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.answered.values()) == {1}


def test_a_provider_that_stalls_does_not_hold_up_another(tmp_path: Path) -> None:
    with NastyServer(lambda _, __: says_nothing) as stalled, NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server)
        config = tmp_path / "two.toml"
        config.write_text(
            f'[[models]]\nspec = "simulated/weak"\nbase_url = "{stalled.base_url}"\n'
            f'[[models]]\nspec = "simulated/steady"\nbase_url = "{server.base_url}"\n'
        )
        run.options = (*run.options, "--config", str(config))
        process = run.start()
        try:
            run.await_lines("completions.jsonl", 12)
        finally:
            process.kill()
            process.communicate()
        run.check_end(of="completions.jsonl")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives the program an /etc/hosts of its own")
def test_a_name_that_does_not_resolve_for_a_while_is_waited_out(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server)
        run.base_url = f"http://models.invalid:{server.port}/v1"
        run.before = ("unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts; exec "$@"', "sh")
        process = run.start()
        awaited(lambda: "retry" in run.kinds(), "a failed attempt")
        with hosts.open("a") as stream:
            stream.write("127.0.0.1 models.invalid\n")
        finished(process, 0)
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}
        assert any("DNS" in event.get("detail", "") for event in run.lines("events.jsonl"))
