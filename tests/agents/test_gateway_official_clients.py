"""The vendors' own clients (extra `sdks`) work through the gateway with a simulated model, until it is done.

Each runs the calls of its model as an agent would, streamed: with a model of the same interface, whose
answers pass through, and with one of another, where everything is translated.
"""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest
from gateway_clients import Straight, behind

from astra_async.asking.providers import open_provider
from astra_async.bundled import load_answers, read_statement
from astra_async.simulate.server import SimulatedServer
from astra_async.types import ModelSettings
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours

REASON = "the vendors' clients are an extra: pip install 'astra_async[sdks]'; scripts/long does"
PROBLEM = "task-api"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
ABOUT = {"name": "bash", "description": "Runs a command."}
KEYS = {
    "OPENAI_API_KEY": "sk-test-0123456789abcdef",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef",
    "GEMINI_API_KEY": "AIzaTest0123456789abcdef",
}


LIBRARIES = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google.genai",
}


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=REASON)


@pytest.fixture(autouse=True)
def _installed(spec: str) -> None:
    """Skip before anything is opened."""
    library(LIBRARIES[spec.partition("/")[0]])


def ran(folder: Path, arguments: dict[str, Any]) -> str:
    done = subprocess.run(
        ["bash", "-c", arguments["command"]], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def openai_chat(url: str, token: str, folder: Path) -> None:
    client = library("openai").OpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0)
    said: list[Any] = [{"role": "user", "content": read_statement(PROBLEM)}]
    tools = [{"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}]
    while True:
        with client.chat.completions.stream(model="real", messages=said, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        said.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            output = ran(folder, orjson.loads(call.function.arguments))
            said.append({"role": "tool", "tool_call_id": call.id, "content": output})


def openai_responses(url: str, token: str, folder: Path) -> None:
    client = library("openai").OpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0)
    said: list[Any] = [{"role": "user", "content": read_statement(PROBLEM)}]
    tools = [{"type": "function", **ABOUT, "parameters": SCHEMA, "strict": False}]
    while True:
        with client.responses.stream(model="real", input=said, tools=tools, store=False) as stream:
            response = stream.get_final_response()
        said += [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return
        for call in calls:
            output = ran(folder, orjson.loads(call.arguments))
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


def anthropic(url: str, token: str, folder: Path) -> None:
    client = library("anthropic").Anthropic(base_url=url, api_key=token, max_retries=0)
    said: list[Any] = [{"role": "user", "content": read_statement(PROBLEM)}]
    tools = [{**ABOUT, "input_schema": SCHEMA}]
    assert client.messages.count_tokens(model="real", messages=said).input_tokens > 100
    while True:
        with client.messages.stream(model="real", max_tokens=20_000, messages=said, tools=tools) as stream:
            message = stream.get_final_message()
        said.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            assert message.stop_reason == "end_turn"
            return
        assert message.stop_reason == "tool_use"
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": ran(folder, call.input)}
            for call in calls
        ]
        said.append({"role": "user", "content": results})


def google(url: str, token: str, folder: Path) -> None:
    genai = library("google.genai")
    client = genai.Client(api_key=token, http_options={"base_url": url})
    types = genai.types
    said: list[Any] = [types.Content(role="user", parts=[types.Part(text=read_statement(PROBLEM))])]
    functions = [types.FunctionDeclaration(**ABOUT, parameters_json_schema=SCHEMA)]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=functions)])
    while True:
        parts: list[Any] = []
        for chunk in client.models.generate_content_stream(model="real", contents=said, config=config):
            parts += chunk.candidates[0].content.parts or [] if chunk.candidates else []
        said.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return
        results = [
            types.FunctionResponse(id=call.id, name=call.name, response={"output": ran(folder, call.args)})
            for call in calls
        ]
        said.append(
            types.Content(role="user", parts=[types.Part(function_response=each) for each in results])
        )


CLIENTS = {
    "openai/steady": openai_chat,
    "openai-responses/steady": openai_responses,
    "anthropic/steady": anthropic,
    "gemini/steady": google,
}
OTHERS = {
    "openai/steady": "anthropic/steady",
    "openai-responses/steady": "gemini/steady",
    "anthropic/steady": "openai-responses/steady",
    "gemini/steady": "openai/steady",
}


@asynccontextmanager
async def port_of(socket: Path) -> AsyncIterator[str]:
    """An address that leads to a unix socket, for clients that know none."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_unix_connection(str(socket))
        await asyncio.gather(forward(reader, there), forward(back, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def worked(folder: Path, client: Callable[[str, str, Path], None], spec: str) -> bool:
    """Let it work; returns whether everything was translated."""
    project = folder / "project"
    project.mkdir()
    simulated = await SimulatedServer.start(settings=SimulationSettings(speed=0, faults=False))
    provider, _, model = spec.partition("/")
    settings = ModelSettings(
        name=spec, spec=spec, provider=provider, model=model, base_url=simulated.base_url
    )
    async with aiohttp.ClientSession() as session:
        pool = Straight(open_provider(settings, session=session, environ=KEYS))
        header = f"7/shell/{PROBLEM}/0"
        async with behind(folder, pool, spec=spec, sample_header=header) as there:
            async with port_of(there.gateway.socket) as url:
                await asyncio.to_thread(client, url, there.calls.token, project)
            assert there.calls.steps > 1
            translated = there.calls.translated
    await simulated.stop()
    left = {str(path.relative_to(project)): path.read_text() for path in project.rglob("*") if path.is_file()}
    known = load_answers(PROBLEM)
    assert known is not None
    assert left in [dict(known.reference), *(dict(one.files) for one in known.faulty)]
    return translated


@pytest.mark.parametrize("spec", CLIENTS)
async def test_a_vendors_client_works_with_a_model_of_its_own_interface(tmp_path: Path, spec: str) -> None:
    assert not (await worked(tmp_path, CLIENTS[spec], spec))


@pytest.mark.parametrize("spec", CLIENTS)
async def test_a_vendors_client_works_with_a_model_of_another(tmp_path: Path, spec: str) -> None:
    assert await worked(tmp_path, CLIENTS[spec], OTHERS[spec])
