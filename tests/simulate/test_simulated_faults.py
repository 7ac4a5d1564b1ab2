from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import aiohttp
import orjson
import pytest
from simulated_client import Heard, chat, running

from astra_async.errors import ConfigError
from astra_async.simulate.delivery import IN_STREAM, MOST_FAULTS, fault_of
from astra_async.types import checked_table
from astra_async.types.simulation import FAULT_KINDS, FaultKind, SimulationSettings

if TYPE_CHECKING:
    from astra_async.simulate.server import SimulatedServer

ALWAYS = SimulationSettings(speed=0, fault_rate=1, stall_s=0.01)


def always(kind: FaultKind, stall_s: float = 0.01) -> SimulationSettings:
    return SimulationSettings(speed=0, fault_rate=1, fault_kinds=(kind,), stall_s=stall_s)


async def attempt(
    place: tuple[SimulatedServer, aiohttp.ClientSession], sample: str, **body: object
) -> Heard | aiohttp.ClientError:
    try:
        return await chat(place, sample, **body)
    except aiohttp.ClientError as error:
        return error


async def test_the_faults_of_a_sample_are_the_same_after_a_restart() -> None:
    async def seen() -> list[str]:
        async with running(ALWAYS) as place:
            for number in range(40):
                for _ in range(MOST_FAULTS):
                    await attempt(place, f"7/xml/shop/{number}")
            return sorted(place[0].counters.faults.elements())

    first = await seen()
    assert await seen() == first
    assert set(first) == set(FAULT_KINDS)
    assert len(first) == 80


def test_the_third_attempt_is_never_faulty_and_at_most_one_answer_breaks_off() -> None:
    samples = [f"steady/7/xml/shop/{number}" for number in range(500)]
    for sample in samples:
        faults = [fault_of(ALWAYS, sample, number) for number in range(6)]
        assert None not in faults[:2]
        assert faults[2:] == [None] * 4
        assert sum(fault in IN_STREAM for fault in faults) <= 1


def test_faults_are_as_frequent_as_promised() -> None:
    settings = SimulationSettings(fault_rate=0.1)
    faults = [fault_of(settings, f"steady/7/xml/shop/{number}", 0) for number in range(4000)]
    assert 0.085 < sum(fault is not None for fault in faults) / 4000 < 0.115


def test_without_faults_there_are_none() -> None:
    settings = SimulationSettings(faults=False, fault_rate=1)
    assert not any(fault_of(settings, f"sample {number}", 0) for number in range(100))


async def test_an_answer_after_faults_is_the_answer_without_them() -> None:
    async with running() as place:
        expected = await chat(place, "7/xml/shop/3", model="erratic")
    async with running(ALWAYS) as place:
        for _ in range(MOST_FAULTS):
            await attempt(place, "7/xml/shop/3", model="erratic")
        heard = await chat(place, "7/xml/shop/3", model="erratic")
        assert heard.text == expected.text
        assert sum(place[0].counters.faults.values()) == MOST_FAULTS


async def test_an_answered_sample_that_is_asked_again_meets_the_same_faults() -> None:
    async with running(ALWAYS) as place:
        statuses = [await attempt(place, "7/xml/shop/1") for _ in range(6)]
    done = [isinstance(one, Heard) and one.done for one in statuses]
    assert done == [False, False, True, False, False, True]


async def test_faults_keep_the_samples_of_clients_without_a_header() -> None:
    async def texts(settings: SimulationSettings) -> list[str]:
        async with running(settings) as place:
            answers: list[str] = []
            while len(answers) < 10:
                try:
                    heard = await chat(place, None, model="erratic")
                except aiohttp.ClientError:
                    continue
                if heard.done:
                    answers.append(heard.text)
            return sorted(answers)

    clean = await texts(SimulationSettings(speed=0, faults=False))
    assert await texts(SimulationSettings(speed=0, fault_rate=0.6, stall_s=0)) == clean


@pytest.mark.parametrize(
    ("kind", "status"),
    [("rate_limit", 429), ("server_error", 500), ("unavailable", 503), ("overloaded", 503)],
)
async def test_a_fault_before_the_answer_is_an_error_response(kind: FaultKind, status: int) -> None:
    async with running(always(kind)) as place:
        heard = await chat(place)
    assert heard.status == status
    assert ("retry-after" in heard.headers) == (kind == "rate_limit")
    assert (b"<html>" in heard.body) == (kind == "unavailable")


async def test_an_injected_rate_limit_is_no_rejection() -> None:
    async with running(always("rate_limit")) as place:
        heard = await chat(place)
        assert place[0].counters.rejected == 0
    assert orjson.loads(heard.body)["error"]["code"] == "rate_limit_exceeded"


async def test_a_cut_stream_ends_cleanly_without_its_marker() -> None:
    async with running() as place:
        whole = await chat(place)
    async with running(always("cut")) as place:
        heard = await chat(place)
    assert (heard.status, heard.done, heard.finish) == (200, False, None)
    assert whole.text.startswith(heard.text)
    assert len(heard.text) < len(whole.text)


async def test_an_error_event_comes_after_http_200() -> None:
    async with running(always("stream_error")) as place:
        heard = await chat(place)
    assert (heard.status, heard.done) == (200, False)
    assert heard.error is not None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["reset", "stall"])
async def test_a_reset_connection_is_a_client_error(kind: FaultKind, *, stream: bool) -> None:
    async with running(always(kind)) as place:
        with pytest.raises(aiohttp.ClientError):
            await chat(place, stream=stream)
        assert place[0].counters.faults == {kind: 1}


async def test_a_stall_is_silence_that_a_client_can_time_out_on() -> None:
    async with running(always("stall", stall_s=30)) as place:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await chat(place)


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": -1.0},
        {"fault_rate": 2.0},
        {"burst_s": 0.0},
        {"requests_per_minute": 0.0},
        {"chunk_characters": 0},
        {"fault_kinds": ("earthquake",)},
        {"speed": "fast"},
        {"stall_s": float("nan")},
        {"tokens_per_minute": True},
        {"faults": "no"},
        {"chunk_characters": 60.0},
        {"denied": {"weak": "lost"}},
        {"denied": "weak"},
        {"fault_kinds": "cut"},
        {"fault_kinds": [["cut"]]},
        {"seed": "one"},
    ],
)
def test_settings_that_mean_nothing_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        checked_table(SimulationSettings, wrong, "[simulation]")


def test_more_faults_come_with_a_higher_rate_at_the_same_places() -> None:
    rates = [SimulationSettings(fault_rate=rate) for rate in (0.1, 0.3, 0.6, 1)]
    hit = [{n for n in range(300) if fault_of(rate, f"sample {n}", 0)} for rate in rates]
    assert all(fewer < more for fewer, more in pairwise(hit))
