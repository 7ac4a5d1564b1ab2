"""What OpenAI's Responses say between their steps (`phase: commentary`) is no part of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from provider_calls import Watch, call, request, settings
from test_odd_servers import answered
from wire_server import Reply, named, serving

from astra_async.types.agents import Dialogue
from astra_async.types.agents import Message as Said

if TYPE_CHECKING:
    from collections.abc import Sequence

SPEC = "openai-responses/toy"


def message(number: int, text: str, phase: str | None = None, kind: str = "output_text") -> dict[str, Any]:
    field = "text" if kind == "output_text" else "refusal"
    item = {"type": "message", "id": f"msg_{number}", "content": [{"type": kind, field: text}]}
    return item if phase is None else {**item, "phase": phase}


ITEMS = [
    {"type": "reasoning", "id": "rs_0", "summary": []},
    message(1, "First I draft.", "commentary"),
    message(2, "<solution>", "final_answer"),
    message(3, "Nearly done.", "commentary"),
    message(4, "</solution>"),
]


def streamed(items: Sequence[dict[str, Any]], *, told: str = "added", place: str = "item_id") -> bytes:
    """All events of a response; `told` says which of them name the phase."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"status": "in_progress"}}]
    for index, item in enumerate(items):
        bare = {name: value for name, value in item.items() if name != "phase"}
        first = item if told == "added" else bare
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**first, "content": []}}
        )
        at = {"item_id": item["id"]} if place == "item_id" else {"output_index": index}
        texts = (part.get("text", "") for part in item.get("content", ()))
        events += [{"type": "response.output_text.delta", "delta": text, **at} for text in texts]
        done = bare if told == "end" else item
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
    output = list(items) if told == "end" else []
    ended = {"model": "toy-1", "status": "completed", "output": output}
    return named(*events, {"type": "response.completed", "response": ended})


@pytest.mark.parametrize("told", ["added", "done", "end"])
@pytest.mark.parametrize("place", ["item_id", "output_index"])
def test_commentary_in_a_stream_is_no_part_of_the_answer(told: str, place: str) -> None:
    watch = Watch()
    completion = answered(SPEC, streamed(ITEMS, told=told, place=place), watch=watch)
    assert (completion.text, completion.finish_reason) == ("<solution></solution>", "stop")
    assert watch.first_tokens == 1


def test_commentary_of_a_whole_answer_is_no_part_of_it() -> None:
    whole = {"object": "response", "status": "completed", "model": "toy-1", "output": ITEMS}
    completion = answered(SPEC, orjson.dumps(whole), headers={"Content-Type": "application/json"})
    assert completion.text == "<solution></solution>"


@pytest.mark.parametrize("told", ["added", "done", "end"])
def test_an_answer_of_commentary_alone_is_empty(told: str) -> None:
    assert answered(SPEC, streamed(ITEMS[:2], told=told)).text == ""


def test_a_refusal_in_commentary_refuses_nothing() -> None:
    items = [message(1, "I should not.", "commentary", "refusal"), message(2, "ok", "final_answer")]
    completion = answered(SPEC, streamed(items, told="end"))
    assert (completion.text, completion.finish_reason) == ("ok", "stop")


async def test_an_agent_gets_commentary_too() -> None:
    async def run() -> Any:
        async with serving(Reply(pieces=(streamed(ITEMS),))) as server:
            dialogue = Dialogue(system="", tools=(), messages=(Said(role="user", text="Go."),))
            return await call(settings(SPEC, base_url=server.base_url), request("", dialogue=dialogue))

    completion = await run()
    assert completion.text == "First I draft.<solution>Nearly done.</solution>"
    assert completion.native is not None
    assert completion.native["output"] == ITEMS
