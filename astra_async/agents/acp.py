"""Agents that speak the Agent Client Protocol over standard input and output (https://agentclientprotocol.com).

This process is the client, with the public library `agent-client-protocol` (extra `acp`). It announces no
capabilities, so that files and commands are the agent's own work in its container, and it allows every tool
call, because the container is the sandbox.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from acp.schema import PermissionOption, RequestPermissionResponse

    from astra_async.testing.sandbox.execution import Dialog

_LINE_BYTES = 64 * 1024**2
_MOST_MESSAGES = 20_000  # the library starts a task for each request, also if the agent reads no reply
_DONE = "end_turn"


def require_library() -> None:
    """Raise ConfigError if the library is not installed."""
    if importlib.util.find_spec("acp") is None:
        raise ConfigError("an agent with `acp = true` needs a library: pip install 'astra_async[acp]'")


async def converse(dialog: Dialog, *, prompt: str, folder: str) -> str:
    """Send the prompt to an agent and wait for the end of its turn.

    `folder` is the working folder in the container. Returns "" if the agent has finished, else the reason of
    its end.
    """
    from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block

    agent = connect_to_agent(_Client(), _Lines(dialog))  # type: ignore[arg-type] # optional methods are missing
    try:
        speaks = (await agent.initialize(protocol_version=PROTOCOL_VERSION)).protocol_version
        if speaks != PROTOCOL_VERSION:
            return f"the agent speaks version {speaks} of the protocol, not {PROTOCOL_VERSION}"
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
    except (RequestError, ConnectionError, ValueError) as error:
        return f"the agent's turn failed: {' '.join(str(error).splitlines()[:2])}"
    finally:
        await agent.close()
    return "" if answer.stop_reason == _DONE else f"the agent stopped: {answer.stop_reason}"


class _Client:
    """The client's methods. The library answers requests for other methods with an error."""

    async def request_permission(
        self, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

        allowed = [each.option_id for each in options if each.kind.startswith("allow")]
        if not allowed:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allowed[0]))


class _Lines:
    """Messages as lines of JSON, the library's `Transport`.

    Other output is skipped, and so are notifications: they only describe the agent's work, which the session
    log contains anyway.
    """

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog
        self._buffer = bytearray()
        self._messages = 0

    async def send(self, message: dict[str, Any]) -> None:
        await self._dialog.write(orjson.dumps(message) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        while self._messages < _MOST_MESSAGES and (line := await self._line()) is not None:
            try:
                message = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(message, dict) and "id" in message:
                self._messages += 1
                return message
        return None

    async def close(self) -> None:
        """Keep the streams open: they end with the agent's process."""

    async def _line(self) -> bytes | None:
        """Return the next line, or None at the end of the output and after a line that is too long."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > _LINE_BYTES or not (content := await self._dialog.read()):
                return None
            self._buffer += content
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line
