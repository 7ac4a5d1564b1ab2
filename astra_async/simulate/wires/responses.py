"""OpenAI Responses: POST /v1/responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.served import ServedResponses
from astra_async.simulate.wires.asked import BadAsk
from astra_async.simulate.wires.chat import OpenAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.simulate.wires.wire import Detail


class Responses(ServedResponses, OpenAI):
    """The stream ends with response.completed or response.incomplete; there is no `[DONE]`, and no seed."""

    messages, system, call = "input", "instructions", "function_call"
    most_tokens = ("max_output_tokens",)
    tells_refusals = True
    opening = 4

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

    def stream_error(self, detail: Detail) -> bytes:
        """The `error` event, whose fields stand beside its type."""
        error = self.error("stream_error", detail)["error"]
        fields = {name: error[name] for name in ("code", "message", "param")}
        return self.encoded({"type": "error", "sequence_number": 0, **fields})
