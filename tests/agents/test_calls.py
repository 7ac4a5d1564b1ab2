"""One sample's calls: recorded before they are given, found again, joined, and limited."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from scripted import KEY, Scripted, answered, asking, call, calls_of

from astra_async.agents.call_log import Asked, CallLog, difference, rebuilt
from astra_async.agents.model_calls import BodyRefused, ContextFull, SampleEnds
from astra_async.errors import ProviderError, RequestRejected, StorageError, TransientError
from astra_async.running.directory import RunDirectory
from astra_async.running.recorded import spent
from astra_async.types.agents import AgentLimits, Dialogue, Message, NativeBody, ToolCall, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.agents.model_calls import AgentCalls
    from astra_async.types import Completion, ModelRequest


def numbered(number: int, _: ModelRequest) -> Completion:
    return answered(f"answer {number}")


async def test_an_answer_is_on_disk_before_it_is_given_and_found_again(tmp_path: Path) -> None:
    async def session(pool: Scripted) -> tuple[list[str], Any]:
        calls = calls_of(tmp_path, pool)
        said = ["first"]
        texts = []
        for _ in range(3):
            text = (await calls.answer(asking(*said))).text
            assert text in (tmp_path / "calls.jsonl").read_text()
            texts.append(text)
            said += [text, "go on"]
        return texts, calls

    first, second = Scripted(numbered), Scripted(lambda n, _: answered(f"other {n}"))
    texts, calls = await session(first)
    assert (calls.steps, calls.replayed) == (3, 0)
    assert calls.cost_usd == pytest.approx(0.03)
    again, repeated = await session(second)
    assert again == texts
    assert second.asked == []
    assert (repeated.steps, repeated.replayed) == (3, 3)
    assert repeated.cost_usd == pytest.approx(0.03)
    assert repeated.repeated_usd == 0
    assert repeated.usage.input_tokens == 300


async def test_where_a_replay_goes_another_way_it_goes_on_live_and_says_what_was_paid_twice(
    tmp_path: Path,
) -> None:
    pool = Scripted(numbered)
    calls = calls_of(tmp_path, pool)
    await calls.answer(asking("first"))
    await calls.answer(asking("first", "answer 0", "this way"))
    again = calls_of(tmp_path, pool)
    assert (await again.answer(asking("first"))).text == "answer 0"
    assert (await again.answer(asking("first", "answer 0", "that way"))).text == "answer 2"
    assert (again.steps, again.replayed) == (2, 1)
    assert again.repeated_usd == pytest.approx(0.01)
    assert again.cost_usd == pytest.approx(0.03)
    assert spent(tmp_path)["m"].cost_usd == pytest.approx(0.03)


async def test_what_tools_gave_out_does_not_part_a_replay_from_its_record(tmp_path: Path) -> None:
    def dialogue(output: str) -> Dialogue:
        made = call(0, "date")
        said = (
            Message(role="user", text="Fix it."),
            Message(role="assistant", calls=(made,)),
            Message(role="user", results=(ToolResult(call=made, text=output),)),
        )
        return Dialogue(messages=said)

    pool = Scripted(numbered)
    await calls_of(tmp_path, pool).answer(dialogue("12:00"))
    assert (await calls_of(tmp_path, pool).answer(dialogue("12:01"))).text == "answer 0"
    assert len(pool.asked) == 1


@pytest.mark.parametrize("native", [False, True])
async def test_ids_that_a_client_makes_do_not_part_a_replay_from_its_record(
    tmp_path: Path, *, native: bool
) -> None:
    def asked(number: str) -> Dialogue | NativeBody:
        made = ToolCall(id=f"glob_{number}", name="glob", arguments="{}")
        if not native:
            return Dialogue(messages=(
                Message(role="user", text="Fix it."),
                Message(role="assistant", calls=(made,)),
                Message(role="user", results=(ToolResult(call=made, text="a.py"),)),
            ))  # fmt: skip
        call = {"id": made.id, "name": "glob", "args": {}}
        answer = {"id": made.id, "name": "glob", "response": {"output": "a.py"}}
        return NativeBody(fields={"contents": [
            {"role": "user", "parts": [{"text": "Fix it."}]},
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": answer}]},
        ]})  # fmt: skip

    pool = Scripted(numbered)
    await calls_of(tmp_path, pool).answer(asked("1764331200123"))
    assert (await calls_of(tmp_path, pool).answer(asked("1764331200999"))).text == "answer 0"
    assert len(pool.asked) == 1


async def test_a_repeated_request_joins_the_call_under_way_even_when_its_client_has_gone(
    tmp_path: Path,
) -> None:
    pool = Scripted(numbered)
    pool.may_answer.clear()
    calls = calls_of(tmp_path, pool)
    gone = asyncio.create_task(calls.answer(asking("first")))
    await asyncio.sleep(0)
    gone.cancel()
    waiting = [asyncio.create_task(calls.answer(asking("first"))) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert calls._asking
    pool.may_answer.set()
    assert {one.text for one in await asyncio.gather(*waiting)} == {"answer 0"}
    assert (len(pool.asked), calls.steps) == (1, 1)
    assert not calls._asking


async def test_an_answer_that_nobody_received_is_given_to_the_next_that_asks_the_same(tmp_path: Path) -> None:
    pool = Scripted(numbered)
    calls = calls_of(tmp_path, pool)
    step = await calls.step(asking("first"))
    calls.give_back(step)
    assert (await calls.answer(asking("first"))).text == "answer 0"
    assert calls.steps == 1
    assert calls.cost_usd == pytest.approx(0.01)
    assert (await calls.answer(asking("first"))).text == "answer 1"  # asked again on purpose


@pytest.mark.parametrize(
    ("limits", "end"), [(AgentLimits(steps=2), "steps"), (AgentLimits(usd=0.02, steps=None), "cost")]
)
async def test_a_limit_ends_the_sample(tmp_path: Path, limits: AgentLimits, end: str) -> None:
    pool = Scripted(numbered)
    calls = calls_of(tmp_path, pool, limits=limits)
    await calls.answer(asking("a"))
    await calls.answer(asking("b"))
    for _ in range(2):
        with pytest.raises(SampleEnds, match="limit"):
            await calls.answer(asking("c"))
    assert (calls.end, calls.ended.is_set(), len(pool.asked)) == (end, True, 2)


async def test_a_full_context_ends_the_sample_unless_the_agent_shortens_it(tmp_path: Path) -> None:
    calls = calls_of(tmp_path, Scripted(lambda *_: answered(finish_reason="context_exceeded")))
    for text in ("a long conversation", "a shorter one", "short"):
        with pytest.raises(ContextFull):
            await calls.answer(asking(text))
        assert calls.end is None
    with pytest.raises(SampleEnds):
        await calls.answer(asking("as short as before"))
    assert calls.end == "context"


async def test_a_context_may_fill_up_again_after_the_agent_has_shortened_it(tmp_path: Path) -> None:
    def full(number: int, _: object) -> Completion:
        return answered(finish_reason="stop" if number == 1 else "context_exceeded")

    calls = calls_of(tmp_path, Scripted(full))
    for text in ("a long conversation", "a summary", "a conversation that is long again"):
        with nullcontext() if text == "a summary" else pytest.raises(ContextFull):
            await calls.answer(asking(text))
        assert (calls.too_long is None, calls.end) == (text == "a summary", None)


async def test_trouble_ends_the_sample_and_what_it_cost_is_recorded(tmp_path: Path) -> None:
    def lost(*_: object) -> Completion:
        error = TransientError("m: the connection failed")
        error.cost_usd = 0.05
        raise error

    calls = calls_of(tmp_path, Scripted(lost))
    for _ in range(2):
        with pytest.raises(TransientError):
            await calls.answer(asking("a"))
    assert calls.trouble is not None
    assert calls.cost_usd == pytest.approx(0.05)
    log = CallLog.open(tmp_path / "calls.jsonl")
    assert (log.of(KEY), spent(tmp_path)["m"].cost_usd) == ([], 0.05)


async def test_an_unexpected_exception_ends_the_sample(tmp_path: Path) -> None:
    def wrong(*_: object) -> Completion:
        raise KeyError("role")

    pool = Scripted(wrong)
    calls = calls_of(tmp_path, pool)
    for _ in range(2):
        with pytest.raises(KeyError, match="role"):
            await calls.answer(asking("a"))
    assert calls.ended.is_set()
    assert len(pool.asked) == 1


def refusal(said: str = "messages.2: a tool_use has no id") -> RequestRejected:
    error = RequestRejected(f"m: HTTP 400: {said}", status=400)
    error.reply = said
    return error


async def test_a_body_that_the_provider_refuses_is_told_and_recorded_and_never_sent_again(
    tmp_path: Path,
) -> None:
    def answer(number: int, _: ModelRequest) -> Completion:
        if number == 1:
            raise refusal()
        return answered(f"answer {number}")

    async def session(pool: Scripted) -> Any:
        calls = calls_of(tmp_path, pool)
        first = (await calls.answer(asking("first"))).text
        for _ in range(2):  # an agent may ask the same again
            with pytest.raises(BodyRefused, match="a tool_use has no id"):
                await calls.answer(asking("first", first, "broken"))
        assert not calls.ended.is_set()
        assert (await calls.answer(asking("first", first, "repaired"))).text == "answer 2"
        return calls

    pool, later = Scripted(answer), Scripted(answer)
    calls = await session(pool)
    assert (len(pool.asked), calls.steps, calls.trouble) == (3, 2, None)
    again = await session(later)
    assert (later.asked, again.steps, again.replayed) == ([], 2, 2)


async def test_what_was_refused_with_other_outputs_of_tools_is_asked(tmp_path: Path) -> None:
    """An agent that was refused may leave out what a tool gave: only the same body is known to be refused."""

    def answer(number: int, _: ModelRequest) -> Completion:
        if number == 1:
            raise refusal()
        return answered("", call(0, "ls")) if number == 0 else answered("well")

    def after(output: str) -> Dialogue:
        results = (ToolResult(call=call(0, "ls"), text=output),)
        opening = asking("first").messages
        spoken = Message(role="assistant", calls=(call(0, "ls"),))
        messages = (*opening, spoken, Message(role="user", results=results))
        return replace(asking("first"), messages=messages)

    async def session(pool: Scripted) -> None:
        calls = calls_of(tmp_path, pool)
        await calls.answer(asking("first"))
        with pytest.raises(BodyRefused):
            await calls.answer(after("\x00" * 9))
        assert (await calls.answer(after("cut"))).text == "well"

    later = Scripted(answer)
    await session(Scripted(answer))
    await session(later)
    assert later.asked == []


@pytest.mark.parametrize("of", ["the first", "all"])
async def test_a_refusal_that_is_not_of_the_agents_doing_is_trouble(tmp_path: Path, of: str) -> None:
    """Where nothing was answered yet, or the refusal says of itself that it meets every request."""

    def answer(number: int, _: ModelRequest) -> Completion:
        if number == 0 and of != "the first":
            return answered("yes")
        error = refusal()
        error.meets_all = of == "all"
        raise error

    calls = calls_of(tmp_path, Scripted(answer))
    if of != "the first":
        await calls.answer(asking("first"))
    with pytest.raises(ProviderError):
        await calls.answer(asking("first", "yes", "second"))
    assert isinstance(calls.trouble, RequestRejected)


async def test_a_torn_last_line_is_cut_and_its_call_asked_again(tmp_path: Path) -> None:
    pool = Scripted(numbered)
    calls = calls_of(tmp_path, pool)
    await calls.answer(asking("a"))
    await calls.answer(asking("a", "answer 0", "b"))
    file = tmp_path / "calls.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    again = calls_of(tmp_path, pool)
    assert (await again.answer(asking("a"))).text == "answer 0"
    assert (await again.answer(asking("a", "answer 0", "b"))).text == "answer 2"


async def test_a_call_that_the_disk_refuses_is_held_and_found_by_the_next_process(tmp_path: Path) -> None:
    def session(pool: Scripted, directory: RunDirectory) -> AgentCalls:
        log = CallLog(directory.calls.path, directory.calls, directory.keep)
        return calls_of(tmp_path, pool, log=log)

    opened = partial(RunDirectory.open, tmp_path / "run", spare=tmp_path / "spare", agents=True)
    directory = opened()
    directory.save()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, directory.calls._descriptor)
    os.close(full)
    with pytest.raises(StorageError):
        await session(Scripted(numbered), directory).answer(asking("first"))
    assert directory.spool.exhausted is not None
    with pytest.raises(StorageError, match="paid answers that could not be written are in"):
        directory.close()
    directory, later = opened(), Scripted(numbered)
    assert "recovered lines" in directory.warnings[0]
    assert directory.earlier["m"].cost_usd == pytest.approx(0.01)
    calls = session(later, directory)
    assert (await calls.answer(asking("first"))).text == "answer 0"
    assert (later.asked, calls.replayed) == ([], 1)
    directory.close()


async def test_whole_requests_are_read_back_from_what_was_recorded_of_them(tmp_path: Path) -> None:
    calls = calls_of(tmp_path, Scripted(numbered))
    said = ["a" * 5_000]
    for number in range(6):
        said += [(await calls.answer(asking(*said))).text, f"more {number}"]
    requests: dict[int | None, dict[str, Any]] = {None: {}}
    for made in CallLog(tmp_path / "calls.jsonl").of(KEY):
        requests[made.step] = rebuilt(requests[made.since], made.request)
    del requests[None]
    assert [len(request["messages"]) for request in requests.values()] == [1, 3, 5, 7, 9, 11]
    assert [each["text"] for each in requests[5]["messages"]] == said[:11]
    assert (tmp_path / "calls.jsonl").stat().st_size < 12_000


async def test_the_pool_is_told_what_is_new_and_what_a_cache_may_hold(tmp_path: Path) -> None:
    pool = Scripted(numbered)
    calls = calls_of(tmp_path, pool)
    await calls.answer(asking("a" * 10_000))
    await calls.answer(asking("a" * 10_000, "answer 0", "b"))
    first, second = pool.asked
    assert second.begun_sha256 == first.sha256
    assert second.input_bytes > 10_000
    assert second.fresh_bytes < 500
    assert first.fresh_bytes == first.input_bytes


CALL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "messages": (
        {
            "metadata": {"user_id": "one"},
            "system": [{"type": "text", "text": "Today is 2026-11-23."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Fix"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "12 s"}]},
            ],
        },
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Fix"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "13 s"}]},
            ],
            "system": [{"type": "text", "text": "Today is 2026-11-24."}],
            "metadata": {"user_id": "two"},
        },
    ),
    "responses": (
        {
            "prompt_cache_key": "a",
            "client_metadata": {"s": 1},
            "input": [
                {"type": "message", "id": "m1", "role": "user", "content": "It is Mon Nov 23 2026"},
                {"type": "function_call", "id": "f1", "call_id": "c", "name": "shell", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "Chunk 1, wall time 2 s"},
            ],
        },
        {
            "prompt_cache_key": "b",
            "input": [
                {"type": "message", "id": "m2", "role": "user", "content": "It is Tue Nov 24 2026"},
                {"type": "function_call", "id": "f2", "call_id": "c", "name": "shell", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "Chunk 2, wall time 9 s"},
            ],
        },
    ),
    "gemini": (
        {
            "systemInstruction": {"parts": [{"text": "Skills:\nbeta\nalpha\n"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Today is Monday, November 23, 2026"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"o": "1"}}}]},
            ],
        },
        {
            "systemInstruction": {"parts": [{"text": "Skills:\nalpha\nbeta\n"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Today is Tuesday, November 24, 2026"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"o": "2"}}}]},
            ],
        },
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_two_runs_of_an_agent_ask_the_same_but_for_their_session(name: str) -> None:
    one, other = (NativeBody(fields=orjson.loads(orjson.dumps(body))) for body in BODIES[name])
    assert Asked.of(one).sha256 == Asked.of(other).sha256
    assert Asked.of(one).exact != Asked.of(other).exact


def test_another_answer_of_the_model_parts_them() -> None:
    body = BODIES["messages"][0]
    other = orjson.loads(orjson.dumps(body).replace(b'"Bash"', b'"Read"'))
    assert Asked.of(NativeBody(fields=body)).sha256 != Asked.of(NativeBody(fields=other)).sha256


def test_a_difference_is_put_together_again() -> None:
    before = {"a": 1, "b": [1, 2, 3], "c": {"d": 1}, "gone": 1}
    now = {"a": 2, "b": [1, 2, 4, 5], "c": {"d": 1}, "new": []}
    made = difference(before, now)
    assert made == {"set": {"a": 2, "new": []}, "grown": {"b": [2, [4, 5]]}, "gone": ["gone"]}
    assert rebuilt(before, made) == now
    assert rebuilt({}, difference({}, now)) == now


async def test_signatures_come_back_in_a_translated_dialogue(tmp_path: Path) -> None:
    made = call(0, "ls")
    native = {"content": [{"type": "thinking", "signature": "s"}]}

    pool = Scripted(lambda *_: answered("", made, native=native))
    calls = calls_of(tmp_path, pool)
    await calls.answer(asking("first"))
    said = (*asking("first").messages, Message(role="assistant", calls=(made,)))
    await calls.answer(replace(asking(), messages=said))
    dialogue = pool.asked[-1].dialogue
    assert dialogue is not None
    assert dialogue.messages[-1].native == native
