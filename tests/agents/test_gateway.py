"""The gateway, asked over its socket: what an agent gets, and what it never hears of."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from gateway_clients import URL, behind
from scripted import Scripted, answered, call

from astra_async.agents.gateway import interface as interfaces
from astra_async.agents.gateway.gateway_server import INTERFACES, Gateway
from astra_async.asking.providers import open_provider
from astra_async.errors import RateLimited, RequestRejected
from astra_async.types import Completion, ModelRequest, ModelSettings, SampleKey
from astra_async.types.agents import AgentLimits, Dialogue, Message, Tool, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from gateway_clients import Behind

    from astra_async.types import AgentWire, RateLimits

TOOL = Tool(name="shell", description="Runs.", parameters={"type": "object", "properties": {}})
# Our own client of each interface: its readers were written from the providers' documents.
SPEAKERS = {
    "chat": ("openai/real-name", "OPENAI_API_KEY"),
    "responses": ("openai-responses/real-name", "OPENAI_API_KEY"),
    "messages": ("anthropic/real-name", "ANTHROPIC_API_KEY"),
    "gemini": ("gemini/real-name", "GEMINI_API_KEY"),
}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/real-name:generateContent",
}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Fix it."}]},
    "responses": {"input": "Fix it."},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "Fix it."}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Fix it."}]}]},
}
every_interface = pytest.mark.parametrize("speaks", PATHS)


class Deaf:
    def limits(self, limits: RateLimits) -> None: ...

    def first_token(self) -> None: ...

    def streamed(self, characters: int) -> None: ...


def two_calls(*_: object) -> Completion:
    return answered("I look.", call(0, "ls"), call(1, "cat"), native=None)


async def said_to(speaks: str, token: str, session: aiohttp.ClientSession, dialogue: Dialogue) -> Completion:
    spec, variable = SPEAKERS[speaks]
    provider, _, model = spec.partition("/")
    settings = ModelSettings(name=spec, spec=spec, provider=provider, model=model, base_url=URL)
    if speaks in {"chat", "responses"}:
        settings = ModelSettings(name=spec, spec=spec, provider=provider, model=model, base_url=f"{URL}/v1")
    request = ModelRequest(key=SampleKey("m", "xml", "p", 0), prompt="", prompt_sha256="", dialogue=dialogue)
    provided = open_provider(settings, session=session, environ={variable: token})
    return await provided.complete(request, Deaf())


@every_interface
async def test_an_agent_of_each_interface_works_with_a_model_of_another(tmp_path: Path, speaks: str) -> None:
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool, spec="bedrock/anthropic.claude") as there:
        opening = Dialogue(system="Work.", tools=(TOOL,), messages=(Message(role="user", text="Fix it."),))
        first = await said_to(speaks, there.calls.token, there.session, opening)
        assert (first.text, first.finish_reason) == ("I look.", "stop")
        assert [(one.name, orjson.loads(one.arguments)) for one in first.calls] == [
            ("shell", {"command": "ls"}),
            ("shell", {"command": "cat"}),
        ]
        assert (first.usage.input_tokens, first.usage.output_tokens) == (100, 10)
        results = tuple(ToolResult(call=one, text=f"out {one.id}") for one in first.calls)
        said = (
            *opening.messages,
            Message(role="assistant", text=first.text, calls=first.calls, native=first.native),
            Message(role="user", results=results, text="Go on."),
        )
        await said_to(speaks, there.calls.token, there.session, Dialogue(tools=(TOOL,), messages=said))
        opened, followed = (each.dialogue for each in pool.asked)
        assert opened is not None
        assert followed is not None
        assert (opened.system, [tool.name for tool in opened.tools]) == ("Work.", ["shell"])
        assert [message.role for message in followed.messages] == ["user", "assistant", "user"]
        assert [one.name for one in followed.messages[1].calls] == ["shell", "shell"]
        assert [one.text for one in followed.messages[2].results] == [f"out {one.id}" for one in first.calls]
        assert followed.messages[2].text == "Go on."
        assert there.calls.translated
        assert there.calls.steps == 2


DATA = "AAAA" * 4  # 12 bytes
IMAGE_URL = f"data:image/png;base64,{DATA}"
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": IMAGE_URL}}
INPUT_IMAGE = {"type": "input_image", "image_url": IMAGE_URL}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
INLINE = {"inlineData": {"mimeType": "image/png", "data": DATA}}
LOOK = {"name": "look", "id": "c"}
# By interface: a user's message that is only an image, a call, and its result, which is an image.
IMAGES: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"role": "user", "content": [CHAT_IMAGE]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [CHAT_IMAGE]},
    ],
    "responses": [
        {"role": "user", "content": [INPUT_IMAGE]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [INPUT_IMAGE]},
    ],
    "messages": [
        {"role": "user", "content": [IMAGE]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [IMAGE]}]},
    ],
    "gemini": [
        {"role": "user", "parts": [INLINE]},
        {"role": "model", "parts": [{"functionCall": LOOK}]},
        {"role": "user", "parts": [{"functionResponse": {**LOOK, "response": {}, "parts": [INLINE]}}]},
    ],
}


@every_interface
async def test_a_text_takes_the_place_of_an_image_that_cannot_be_translated(
    tmp_path: Path, speaks: str
) -> None:
    note = "[image/png, 12 bytes: not passed on to this model]"
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        at = INTERFACES[speaks].messages_at  # type: ignore[index]
        body = {**BODIES[speaks], at: IMAGES[speaks]}
        reply = await there.session.post(URL + PATHS[speaks], json=body, headers=there.headers())
        assert reply.status == 200, await reply.text()
        assert list(there.calls.removed) == ["image"]
        [asked] = pool.asked
        assert asked.dialogue
        opened, _, result = asked.dialogue.messages
        assert opened.text == note
        assert result.results[0].text.removeprefix("{}\n") == note


@pytest.mark.parametrize(
    ("speaks", "part", "kind", "text"),
    [
        ("chat", {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}, "audio", "[audio"),
        (
            "responses",
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"},
            "document",
            "[application/pdf, 12 bytes",
        ),
        ("messages", {"type": "search_result", "source": "x"}, "search_result", "[search_result"),
        ("gemini", {"inlineData": {"mimeType": "audio/mp3", "data": DATA}}, "audio", "[audio/mp3, 12 bytes"),
    ],
)
def test_parts_without_a_common_form_are_named(
    speaks: AgentWire, part: dict[str, Any], kind: str, text: str
) -> None:
    field = "parts" if speaks == "gemini" else "content"
    body = {INTERFACES[speaks].messages_at: [{"role": "user", field: [part]}]}
    assert INTERFACES[speaks].untranslated(body) == [kind]
    assert INTERFACES[speaks].read(body).messages[0].text == f"{text}: not passed on to this model]"


@every_interface
@pytest.mark.parametrize("text", [None, ""])
async def test_a_request_without_a_message_is_refused(tmp_path: Path, speaks: str, text: str | None) -> None:
    at = INTERFACES[speaks].messages_at  # type: ignore[index]
    field = {"parts": [{"text": text}]} if speaks == "gemini" else {"content": text}
    body = {**BODIES[speaks], at: [] if text is None else [{"role": "user", **field}]}
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        reply = await there.session.post(URL + PATHS[speaks], json=body, headers=there.headers())
        assert (reply.status, pool.asked, there.calls.trouble) == (400, [], None)
        assert "at least one message is required" in (await reply.json())["error"]["message"]


def test_a_system_message_between_others_keeps_its_place() -> None:
    messages = [{"role": "user", "content": "Fix it."}, {"role": "system", "content": "Be brief."}]
    read = INTERFACES["messages"].read({"messages": [*messages, {"role": "assistant", "content": "I look."}]})
    assert [(each.role, each.text) for each in read.messages] == [
        ("user", "Fix it.\n\nBe brief."),
        ("assistant", "I look."),
    ]


@every_interface
async def test_an_answer_without_stream_is_one_object(tmp_path: Path, speaks: str) -> None:
    async with behind(tmp_path, Scripted(two_calls), spec="bedrock/x") as there:
        reply = await there.session.post(URL + PATHS[speaks], json=BODIES[speaks], headers=there.headers())
        assert (reply.status, reply.content_type) == (200, "application/json")
        assert b"I look." in await reply.read()


async def test_a_model_of_the_same_interface_gets_the_agents_own_body_and_the_agent_its_own_answer(
    tmp_path: Path,
) -> None:
    native = {"id": "x", "object": "chat.completion", "odd": 1, "choices": [{"message": {"content": "hi"}}]}

    pool = Scripted(lambda *_: answered("hi", native=native))
    async with behind(tmp_path, pool) as there:
        body = {**BODIES["chat"], "odd": {"field": 1}, "temperature": 0.3}
        reply = await there.session.post(URL + PATHS["chat"], json=body, headers=there.headers())
        assert await reply.json() == native
        assert pool.asked[0].native is not None
        assert pool.asked[0].native.fields == body
        assert not there.calls.translated


@every_interface
async def test_a_limit_is_a_400_with_one_sentence(tmp_path: Path, speaks: str) -> None:
    limits = AgentLimits(steps=0)
    async with behind(tmp_path, Scripted(two_calls), limits=limits) as there:
        reply = await there.session.post(URL + PATHS[speaks], json=BODIES[speaks], headers=there.headers())
        assert reply.status == 400
        assert "This task is over: the limit of model calls" in await reply.text()
        assert there.calls.end == "steps"


@every_interface
async def test_what_the_provider_refuses_of_its_own_body_an_agent_hears_and_goes_on(
    tmp_path: Path, speaks: str
) -> None:
    def answer(number: int, _: ModelRequest) -> Completion:
        if number:
            error = RequestRejected("m: HTTP 400: set it in [[models]]: messages.3 has no id", status=400)
            error.reply = "messages.3 has no id"
            raise error
        return two_calls()

    async with behind(tmp_path, Scripted(answer)) as there:
        assert (await posted(there, speaks)).status == 200
        reply = await posted(there, speaks)
        assert (reply.status, "messages.3 has no id" in await reply.text()) == (400, True)
        assert "[[models]]" not in await reply.text()
        assert (there.calls.trouble, there.calls.end, there.calls.ended.is_set()) == (None, None, False)


@every_interface
async def test_no_agent_hears_of_a_rate_limit_even_when_the_pool_gives_up(
    tmp_path: Path, speaks: str
) -> None:
    def gone(*_: object) -> Completion:
        raise RateLimited("m: 429 sk-secret", status=429)

    async with behind(tmp_path, Scripted(gone)) as there:
        reply = await there.session.post(URL + PATHS[speaks], json=BODIES[speaks], headers=there.headers())
        text = await reply.text()
        assert reply.status == 400
        assert "429" not in text
        assert "over" in text
        assert isinstance(there.calls.trouble, RateLimited)


def posted(there: Behind, speaks: str) -> Awaitable[aiohttp.ClientResponse]:
    return there.session.post(URL + PATHS[speaks], json=BODIES[speaks], headers=there.headers())


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the interfaces, not their code: no test waits for seconds."""
    for each in INTERFACES.values():
        monkeypatch.setattr(type(each), "headers_after_s", 0.01)
        monkeypatch.setattr(type(each), "ping_after_s", 0.01)


@every_interface
async def test_a_client_is_kept_while_the_model_is_silent(
    tmp_path: Path, speaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)

    pool = Scripted(two_calls)
    pool.may_answer.clear()
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        path = PATHS[speaks].replace("generateContent", "streamGenerateContent")
        reply = await there.session.post(
            f"{URL}{path}", json={**BODIES[speaks], "stream": True}, headers=there.headers()
        )
        assert reply.status == 200
        ping = await reply.content.readexactly(3 * len(INTERFACES[speaks].ping))  # type: ignore[index]
        assert ping == 3 * INTERFACES[speaks].ping  # type: ignore[index]
        pool.may_answer.set()
        assert b"I look." in await reply.read()


@every_interface
async def test_a_client_that_goes_and_asks_again_is_given_what_was_paid_for(
    tmp_path: Path, speaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)

    pool = Scripted(lambda n, _: answered(f"answer {n}"))
    pool.may_answer.clear()
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        path = PATHS[speaks].replace("generateContent", "streamGenerateContent")
        body = {**BODIES[speaks], "stream": True}
        reply = await there.session.post(f"{URL}{path}", json=body, headers=there.headers())
        await reply.content.readany()
        reply.close()
        await asyncio.sleep(0.1)
        pool.may_answer.set()
        await asyncio.sleep(0.1)
        again = await there.session.post(f"{URL}{path}", json=body, headers=there.headers())
        assert b"answer 0" in await again.read()
        assert (len(pool.asked), there.calls.steps, there.calls.replayed) == (1, 1, 0)


async def test_probes_are_answered_here(tmp_path: Path) -> None:
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool) as there:
        quota = {"max_tokens": 1, "messages": [{"role": "user", "content": "quota"}], "model": "haiku"}
        post, headers = there.session.post, there.headers()
        probe = await post(f"{URL}/v1/messages?beta=true", json=quota, headers=headers)
        assert (await probe.json())["stop_reason"] == "max_tokens"
        count = await post(f"{URL}/v1/messages/count_tokens", json=BODIES["messages"], headers=headers)
        assert 10 < (await count.json())["input_tokens"] < 100
        count = await post(f"{URL}/v1beta/models/m:countTokens", json=BODIES["gemini"], headers=headers)
        assert (await count.json())["totalTokens"] > 0
        assert (await there.session.head(f"{URL}/api/hello")).status == 404
        assert (await there.session.get(f"{URL}/v1/models", headers=headers)).status == 404
        assert (await post(f"{URL}/v1beta/models/m:embedContent", json={}, headers=headers)).status == 404
        assert pool.asked == []


@every_interface
async def test_a_key_that_is_nobodys_gets_nothing(tmp_path: Path, speaks: str) -> None:
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool) as there:
        for headers in ({}, {"x-api-key": "astra-wrong"}, {"Authorization": "Bearer"}):
            reply = await there.session.post(URL + PATHS[speaks], json=BODIES[speaks], headers=headers)
            assert reply.status == 401
        assert pool.asked == []


@every_interface
@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b'{"messages": 3, "input": 4, "contents": 5}'])
async def test_a_body_that_makes_no_sense_is_refused_and_costs_nothing(
    tmp_path: Path, speaks: str, body: bytes
) -> None:
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        reply = await there.session.post(URL + PATHS[speaks], data=body, headers=there.headers())
        assert reply.status == 400
        assert pool.asked == []
        assert there.calls.end is None


async def test_a_body_of_many_megabytes_goes_through(tmp_path: Path) -> None:
    pool = Scripted(two_calls)
    async with behind(tmp_path, pool) as there:
        body = orjson.dumps({"messages": [{"role": "user", "content": "a" * 20_000_000}]})
        sent = io.BytesIO(body)
        reply = await there.session.post(URL + PATHS["chat"], data=sent, headers=there.headers())
        assert reply.status == 200
        assert pool.asked[0].input_bytes > 20_000_000


STRIPPED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "chat": (
        {
            "tools": [{"type": "function", "function": {"name": "shell"}}, {"type": "web_search"}],
            "web_search_options": {"a": 1},
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://evil"}}]},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png"}}]},
            ],
        },
        ["web_search", "web_search_options", "image_url"],
    ),
    "responses": (
        {
            "previous_response_id": "resp_1",
            "tools": [
                {"type": "function", "name": "shell"},
                {"type": "web_search_preview"},
                {"type": "code_interpreter", "container": {}},
                {"type": "mcp", "server_url": "https://evil"},
                {"type": "shell", "environment": {"type": "container_auto"}},
            ],
            "input": [
                {"role": "user", "content": [{"type": "input_image", "image_url": "https://evil"}]},
                {
                    "type": "function_call_output",
                    "output": [{"type": "input_file", "file_url": "https://evil"}],
                },
            ],
        },
        [
            "web_search_preview",
            "code_interpreter",
            "mcp",
            "shell",
            "previous_response_id",
            "image_url",
            "file",
        ],
    ),
    "messages": (
        {
            "mcp_servers": [{"url": "https://evil"}],
            "tools": [
                {"name": "Bash", "input_schema": {}},
                {"type": "text_editor_20250728", "name": "edit"},
                {"type": "web_search_20250305", "name": "web_search"},
                {"type": "code_execution_20250825", "name": "code_execution"},
            ],
            "tool_choice": {"type": "tool", "name": "web_search"},
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "image", "source": {"type": "url", "url": "https://evil"}}],
                        }
                    ],
                }
            ],
        },
        ["web_search", "code_execution", "mcp_servers", "image"],
    ),
    "gemini": (
        {
            "cachedContent": "cachedContents/1",
            "tools": [{"functionDeclarations": [{"name": "shell"}], "googleSearch": {}}, {"urlContext": {}}],
            "contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "https://evil"}}]}],
        },
        ["googleSearch", "urlContext", "cachedContent", "fileData"],
    ),
}


@every_interface
def test_what_the_provider_would_fetch_or_run_is_taken_out_and_named(speaks: str) -> None:
    body, names = STRIPPED[speaks]
    body = orjson.loads(orjson.dumps(body))
    assert INTERFACES[speaks].tidied(body) == names  # type: ignore[index]
    text = orjson.dumps(body).decode()
    assert "evil" not in text
    assert interfaces.REMOVED in text
    assert "shell" in text or "Bash" in text
    assert "data:image/png" in text or speaks != "chat"
    assert INTERFACES[speaks].tidied(body) == []  # type: ignore[index]


async def test_what_was_taken_out_is_recorded(tmp_path: Path) -> None:
    async with behind(tmp_path, Scripted(two_calls)) as there:
        body = {**BODIES["chat"], "tools": [{"type": "web_search"}]}
        await there.session.post(URL + PATHS["chat"], json=body, headers=there.headers())
        assert list(there.calls.removed) == ["web_search"]
        assert b'"removed":["web_search"]' in (tmp_path / "calls.jsonl").read_bytes()
        assert there.calls.token.encode() not in (tmp_path / "calls.jsonl").read_bytes()


async def test_many_samples_share_the_socket_and_get_their_own_answers(tmp_path: Path) -> None:
    make: Callable[[str], Scripted] = lambda text: Scripted(lambda *_: answered(text))  # noqa: E731
    async with behind(tmp_path, make("one")) as there:
        from scripted import calls_of

        other = calls_of(tmp_path / "..", make("two"))
        with there.gateway.admit(other):
            keys = (there.calls.token, other.token)
            asked = [
                there.session.post(
                    URL + PATHS["chat"], json=BODIES["chat"], headers={"Authorization": f"Bearer {key}"}
                )
                for key in keys
            ]
            texts = [await reply.text() for reply in await asyncio.gather(*asked)]
        assert ["one" in texts[0], "two" in texts[1]] == [True, True]


@every_interface
async def test_a_conversation_that_is_too_long_is_told_in_the_providers_words(
    tmp_path: Path, speaks: str
) -> None:
    words = {
        "chat": "context_length_exceeded",
        "responses": "context_length_exceeded",
        "messages": "prompt is too long",
        "gemini": "The input token count exceeds the maximum number of tokens allowed",
    }

    pool = Scripted(lambda *_: answered("", finish_reason="context_exceeded"))
    async with behind(tmp_path, pool) as there:
        reply = await posted(there, speaks)
        assert reply.status == 400
        assert words[speaks] in await reply.text()
        assert there.calls.end is None


async def test_codex_hears_of_a_full_context_in_a_stream(tmp_path: Path) -> None:
    pool = Scripted(lambda *_: answered("", finish_reason="context_exceeded"))
    async with behind(tmp_path, pool) as there:
        body = {**BODIES["responses"], "stream": True}
        reply = await there.session.post(URL + PATHS["responses"], json=body, headers=there.headers())
        text = await reply.text()
        assert (reply.status, reply.content_type) == (200, "text/event-stream")
        assert "event: response.failed" in text or '"response.failed"' in text
        assert "context_length_exceeded" in text


async def test_a_translated_call_of_a_custom_tool_keeps_its_kind(tmp_path: Path) -> None:
    """Codex's `apply_patch` takes a text, which a model of another interface gives as JSON."""
    patch = "*** Begin Patch\n*** End Patch"
    patched = ToolCall(id="c1", name="apply_patch", arguments=json.dumps({"input": patch}))

    pool = Scripted(lambda *_: answered("", patched))
    async with behind(tmp_path, pool, spec="bedrock/x") as there:
        tools = [
            {"type": "custom", "name": "apply_patch", "description": "d"},
            {"type": "local_shell"},
            {"type": "function", "name": "look", "parameters": {"type": "object"}},
        ]
        body = {**BODIES["responses"], "tools": tools}
        reply = await there.session.post(URL + PATHS["responses"], json=body, headers=there.headers())
        [item] = (await reply.json())["output"]
        assert (item["type"], item["name"], item["call_id"]) == ("custom_tool_call", "apply_patch", "c1")
        assert item["input"] == patch
        assert "local_shell" in there.calls.removed


async def test_a_killed_gateways_folder_is_removed_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp" if len(str(tmp_path)) > 60 else str(tmp_path))
    dead = Path(tempfile.mkdtemp(prefix="astra-gateway-"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(dead / "model.sock"))

    async def run() -> None:
        living = Gateway()
        await living.start()
        await Gateway().close()
        found.update(living=living.socket.exists(), dead=dead.exists())
        await living.close()

    found: dict[str, bool] = {}
    await run()
    assert found == {"living": True, "dead": False}
