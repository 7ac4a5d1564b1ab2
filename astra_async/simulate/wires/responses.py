"""OpenAI Responses: POST /v1/responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.asked import BadAsk
from astra_async.simulate.wires.chat import OpenAI
from astra_async.simulate.wires.wire import Detail, Reply, Tokens, event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types.agents import ToolCall

_OPENING_EVENTS = 4


class Responses(OpenAI):
    """The stream ends with response.completed or response.incomplete; there is no `[DONE]`, and no seed."""

    messages, system, call = "input", "instructions", "function_call"
    most_tokens = ("max_output_tokens",)

    def messages_of(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The input may be a message's text alone."""
        question = body.get("input")
        return [{"content": question}] if isinstance(question, str) else super().messages_of(body)

    def system_of(self, body: Mapping[str, Any]) -> str:
        """Instructions are text."""
        if not isinstance(body.get("instructions") or "", str):
            raise BadAsk("instructions must be a string")
        return super().system_of(body)

    def is_own(self, message: Mapping[str, Any]) -> bool:
        """Calls and reasoning are items of their own."""
        return super().is_own(message) or message.get("type") in {"function_call", "reasoning"}

    def opening(self, reply: Reply) -> bytes:
        """The response, its one message and the message's one part begin."""
        begun = _response(reply, "in_progress", with_output=False)
        item = _item(reply) | {"status": "in_progress", "content": []}
        where = {"output_index": 0, "content_index": 0, "item_id": _item_id(reply)}
        return (
            _event("response.created", 0, {"response": begun})
            + _event("response.in_progress", 1, {"response": begun})
            + _event("response.output_item.added", 2, {"output_index": 0, "item": item})
            + _event("response.content_part.added", 3, where | {"part": _part(reply, "")})
        )

    def events(self, reply: Reply) -> list[bytes]:
        """One delta for each piece; only the number and the text are encoded anew."""
        kind = f"response.{_kind(reply)}.delta".encode()
        where = {"item_id": _item_id(reply), "output_index": 0, "content_index": 0}
        head = b"event: " + kind + b'\ndata: {"type":"' + kind + b'","sequence_number":%d,'
        head += orjson.dumps(where)[1:-1] + b',"delta":%b}\n\n'
        return [
            head % (number, orjson.dumps(piece)) for number, piece in enumerate(reply.pieces, _OPENING_EVENTS)
        ]

    def closing(self, reply: Reply) -> bytes:
        """Part, item and response end, the last with the whole text and the usage."""
        number = _OPENING_EVENTS + len(reply.pieces)
        where = {"item_id": _item_id(reply), "output_index": 0, "content_index": 0}
        field = "refusal" if reply.finish == "refusal" else "text"
        status = _status(reply)
        done = {"output_index": 0, "item": _item(reply)}
        return (
            _event(f"response.{_kind(reply)}.done", number, where | {field: reply.text})
            + _event("response.content_part.done", number + 1, where | {"part": _part(reply, reply.text)})
            + _event("response.output_item.done", number + 2, done)
            + _calls(reply, number + 3)
            + _event(
                f"response.{status}",
                number + 3 + 3 * len(reply.calls),
                {"response": _response(reply, status)},
            )
        )

    def whole(self, reply: Reply) -> bytes:
        """A response object."""
        return orjson.dumps(_response(reply, _status(reply)))

    def stream_error(self, detail: Detail) -> bytes:
        """The `error` event, whose fields stand beside its type."""
        error = self.error("stream_error", detail)["error"]
        fields = {name: error[name] for name in ("code", "message", "param")}
        return event({"type": "error", "sequence_number": 0} | fields, "error")


def _event(kind: str, number: int, fields: Mapping[str, Any]) -> bytes:
    return event({"type": kind, "sequence_number": number, **fields}, kind)


def _kind(reply: Reply) -> str:
    return "refusal" if reply.finish == "refusal" else "output_text"


def _status(reply: Reply) -> str:
    return "completed" if reply.finish in ("stop", "refusal") else "incomplete"


def _item_id(reply: Reply) -> str:
    return f"msg_{reply.id}"


def _part(reply: Reply, text: str) -> dict[str, Any]:
    if reply.finish == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": []}


def _item(reply: Reply) -> dict[str, Any]:
    return {
        "id": _item_id(reply),
        "type": "message",
        "status": _status(reply),
        "role": "assistant",
        "content": [_part(reply, reply.text)],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    head = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "status": "completed"}
    return {**head, "name": call.name, "arguments": call.arguments}


def _calls(reply: Reply, number: int) -> bytes:
    """Each call begins, its arguments come, it ends."""
    made = b""
    for at, call in enumerate(reply.calls):
        item, first = _call(call), number + 3 * at
        where = {"output_index": at + 1, "item_id": item["id"]}
        begins = {"output_index": at + 1, "item": {**item, "arguments": "", "status": "in_progress"}}
        made += _event("response.output_item.added", first, begins)
        made += _event("response.function_call_arguments.delta", first + 1, where | {"delta": call.arguments})
        made += _event("response.output_item.done", first + 2, {"output_index": at + 1, "item": item})
    return made


def _response(reply: Reply, status: str, *, with_output: bool = True) -> dict[str, Any]:
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reasons[reply.finish]} if status == "incomplete" else None,
        "model": reply.model,
        "output": [_item(reply), *map(_call, reply.calls)] if with_output else [],
        "usage": _usage(reply.tokens) if with_output else None,
    }


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.output,
    }
