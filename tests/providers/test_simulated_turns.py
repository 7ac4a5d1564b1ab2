"""What simulated models make of feedback: as often as their tables say, and seen in every wire format."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from provider_calls import call, request, settings

from astra_async.answers import parse_strictly
from astra_async.bundled import load_answers
from astra_async.simulate.draws import SampleName
from astra_async.simulate.formatting import xml
from astra_async.simulate.model_answers import draw_answer
from astra_async.simulate.profiles import PROFILES, Profile, TurnHabits, try_rate
from astra_async.simulate.server import SimulatedServer
from astra_async.types import Exchange, Solution
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from astra_async.simulate.model_answers import SimulatedAnswer
    from astra_async.types import Completion, Format

QUIET = SimulationSettings(speed=0, faults=False)
SHOP = load_answers("product-api")
assert SHOP is not None
WRONG = xml(SHOP.faulty[1].files)


def chance_at(profile: Profile, problem_id: str, fmt: Format, turn: int) -> float:
    """The chance that a sample whose answers so far were all wrong is solved in this turn (0: at once).

    Solved by turn r is then 1 - prod over t <= r of (1 - chance_at(t)), and by one of r + 1 blind samples
    1 - (1 - chance_at(0))^(r + 1).
    """
    whole = (1 - profile.refusal) * (1 - profile.unreadable[fmt]) * (1 - profile.truncation)
    return whole * try_rate(profile, problem_id, turn) * (profile.turns.tries if turn else 1.0)


def turned(
    profile: Profile, sample: int, turn: int = 1, earlier: tuple[str, ...] = (WRONG,)
) -> SimulatedAnswer:
    return draw_answer(profile, SampleName("7", "xml", "product-api", sample, turn), SHOP, earlier)


@pytest.mark.long
@pytest.mark.first(name=lambda name, **_: name, turn=lambda turn, **_: turn)
@pytest.mark.parametrize("name", ["mender", "guesser", "muddler"])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_model_solves_as_often_as_its_table_says(name: str, turn: int) -> None:
    profile, n = PROFILES[name], 3000
    solved = sum(turned(profile, each, turn, (WRONG,) * turn).solution == "reference" for each in range(n))
    expected = chance_at(profile, "product-api", "xml", turn)
    assert abs(solved / n - expected) < 4 * (expected * (1 - expected) / n) ** 0.5


def test_feedback_helps_one_model_not_another_and_harms_the_third() -> None:
    blind, mender, guesser, muddler = (
        chance_at(PROFILES[name], "product-api", "xml", turn)
        for name, turn in (("guesser", 0), ("mender", 1), ("guesser", 1), ("muddler", 1))
    )
    assert mender > blind == guesser > muddler


def test_each_habit_is_seen_as_often_as_it_was_set() -> None:
    habits = TurnHabits(repeats=0.2, oscillates=0.2, breaks=0.2, gives_up=0.2)
    profile = Profile(
        name="habits",
        skill=0.5,
        spread=0.1,
        habit=0.5,
        nearness=0,
        unreadable={"xml": 0, "json": 0},
        malformed={"xml": 0, "json": 0},
        turns=habits,
    )
    seen: Counter[str] = Counter()
    for sample in range(2000):
        answer = turned(profile, sample, 2, ("the first", "the second"))
        solution = parse_strictly(answer.text, "xml", "stop")
        if answer.text in ("the first", "the second"):
            seen[answer.text] += 1
        elif isinstance(solution, Solution):
            seen["a try" if answer.solution != "unclosed-function" else "the worst"] += 1
        else:
            seen["gives up"] += 1
    assert all(abs(seen[what] / 2000 - 0.2) < 0.05 for what in ("the first", "the second", "gives up"))
    assert seen["the worst"] / 2000 > 0.15


def test_the_same_turn_is_answered_alike_and_another_turn_anew() -> None:
    profile = PROFILES["guesser"]
    answers = [turned(profile, 3, turn, (WRONG,) * turn).text for turn in (1, 1, 2, 3, 4, 5)]
    assert answers[0] == answers[1]
    assert len(set(answers)) > 1


def test_a_wrong_answer_of_a_further_turn_lets_nothing_of_an_earlier_one_show_through() -> None:
    assert SHOP is not None
    profile = PROFILES["guesser"]
    for sample in range(200):
        found = parse_strictly(turned(profile, sample).text, "xml", "stop")
        assert isinstance(found, Solution)
        assert set(found.files) >= set(SHOP.reference)


SPECS = (
    *("openai/guesser", "openai-responses/guesser", "azure/guesser", "anthropic/guesser"),
    *("gemini/guesser", "bedrock/guesser", "openai-compatible/guesser"),
)


def asked(spec: str, sample: str, answers: tuple[str, ...]) -> Completion:
    """A turn of a sample in a provider's own form, as a simulated server answers it."""

    async def run() -> Completion:
        server = await SimulatedServer.start(settings=QUIET)
        try:
            earlier = tuple(Exchange(answer=text, feedback="No.", sha256=text) for text in answers)
            model = settings(spec, base_url=server.base_url, max_tokens=9000)
            return await call(model, request("x" * 9000, earlier=earlier, sample_header=sample, cache=True))
        finally:
            await server.stop()

    return asyncio.run(run())


@pytest.mark.parametrize("spec", SPECS)
def test_a_conversation_is_understood_in_every_wire_format(spec: str) -> None:
    answers = [asked(spec, "7/xml/product-api/3@2", ("first", WRONG)).text for _ in range(2)]
    assert answers[0] == answers[1] == turned(PROFILES["guesser"], 3, 2, ("first", WRONG)).text


@pytest.mark.parametrize("spec", SPECS)
def test_a_turn_that_is_not_what_its_header_says_is_refused(spec: str) -> None:
    with pytest.raises(Exception, match="the input holds 1 answers"):
        asked(spec, "7/xml/product-api/3@2", (WRONG,))


async def test_a_conversation_reads_what_its_earlier_request_left_in_the_cache() -> None:
    server = await SimulatedServer.start(settings=QUIET)
    model = settings("anthropic/guesser", base_url=server.base_url, max_tokens=9000)
    prompt, seen = "x" * 9000, []
    earlier: tuple[Exchange, ...] = ()
    try:
        for turn in range(3):
            sample = "7/xml/product-api/3" + (f"@{turn}" if turn else "")
            done = await call(
                model, request(prompt, earlier=earlier, sample_header=sample, cache=True, goes_on=True)
            )
            seen.append((done.usage.input_tokens, done.usage.cached_tokens))
            earlier += (Exchange(answer=done.text, feedback="No." * 100, sha256=str(turn)),)
    finally:
        await server.stop()
    (first, none), (second, read), (_, more) = seen
    assert none == 0
    assert first is not None
    assert second is not None
    assert read == first // 128 * 128
    assert more == second // 128 * 128
