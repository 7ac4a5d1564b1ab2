"""A marked secret in every place where a user can put one, servers that echo all they get, and a search of
everything that the program prints, writes, records and sends to others."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import zipfile
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from command_server import astra
from threaded_server import ThreadedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Answer = tuple[int, str, bytes]


class Echo(ThreadedServer):
    """An HTTP server that keeps every request's bytes and answers by a function of (number, request)."""

    def __init__(self, answer: Callable[[int, bytes], Answer]) -> None:
        super().__init__()
        self.requests: list[bytes] = []
        self.port = 0
        self._answer = answer

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                request = head + (await reader.readexactly(int(found[1])) if found else b"")
                self.requests.append(request)
                status, kind, body = self._answer(len(self.requests), request)
                writer.write(
                    b"HTTP/1.1 %d X\r\nContent-Type: %b\r\nContent-Length: %d\r\nX-Echo: %b\r\n\r\n%b"
                    % (status, kind.encode(), len(body), head[:300].replace(b"\r\n", b" "), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def an_error(request: bytes) -> bytes:
    """An error body that repeats the request, headers and all."""
    text = request[:4000].decode("latin-1").replace("\\", "/").replace('"', "'")
    return b'{"error": {"message": "bad: %b", "code": "oops"}}' % " ".join(text.split()).encode()


def provider(number: int, request: bytes) -> Answer:
    """Every kind of trouble with an echo, then answers."""
    if number == 1:
        return 400, "application/json", an_error(request)
    if number == 2:
        return 500, "application/json", an_error(request)
    if number == 3:
        chunk = b'data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: %b\n\n' % an_error(request)
        return 200, "text/event-stream", chunk
    if number == 4:
        return 200, "text/event-stream", b"data: not json " + request[:4000].replace(b"\r\n", b" ") + b"\n\n"
    if number == 5:
        return 503, "text/plain", request[:4000]
    key = re.search(rb"[Aa]uthorization: (\S+ \S+)", request)
    model = (key[1] if key else b"m").decode()
    text = (
        f'data: {{"model": "{model}", "choices": [{{"delta": {{"content": "<solution></solution>"}},'
        ' "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    return 200, "text/event-stream", text.encode()


def archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as built:
        built.writestr("package.json", "{}")
        built.writestr("hackerrank.yml", "configuration:\n  scoring:\n    command: 'true'\n")
    return stream.getvalue()


def projects(_: int, request: bytes) -> Answer:
    if b"/good.zip" in request.split(b"\r\n")[0]:
        return 200, "application/zip", archive()
    return 403, "text/plain", request


def refusing(number: int, request: bytes) -> Answer:
    return 400 if number == 1 else 407, "text/plain", request


class Secrets:
    """Marked values by the place where the user has put them."""

    def __init__(self) -> None:
        self.by_place: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        return self.by_place.setdefault(place, f"MARK{len(self.by_place):03}-{place}-s3cr3t+/x")

    def found_in(self, text: bytes) -> set[str]:
        """Places whose secret stands in the text, in whatever spelling."""
        return {place for place, secret in self.by_place.items() if any(x in text for x in spellings(secret))}


def spellings(secret: str) -> set[bytes]:
    """The beginning that tells it from the others, and as a server sees it in `Authorization: Basic`."""
    whole = f"user:{secret}".encode()
    return {
        secret[:8].encode(),
        base64.b64encode(whole).rstrip(b"=")[:-2],
        base64.b64encode(secret.encode())[:-4],
    }


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Echo, Echo, Echo, Echo]]:
    with Echo(provider) as model, Echo(projects) as files, Echo(refusing) as proxy, Echo(refusing) as s3:
        yield model, files, proxy, s3


@pytest.fixture(scope="module")
def played(
    servers: tuple[Echo, Echo, Echo, Echo], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Secrets, Path, str]:
    """Runs everything once; the folder with all that was written, and all that was printed."""
    folder = tmp_path_factory.mktemp("secrets")
    model, files, proxy, s3 = servers
    secret = Secrets()
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "OPENAI_API_KEY": secret("openai-key"),
        "ANTHROPIC_API_KEY": secret("anthropic-key"),
        "ROUTER_KEY": secret("named-key"),
        "TENANT": secret("variable-of-a-header"),
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": secret("aws-key"),
        "AWS_SESSION_TOKEN": secret("aws-token"),
        "AWS_REGION": "eu-west-1",
        "HTTP_PROXY": f"http://user:{quote(secret('proxy-password'), safe='')}@127.0.0.1:{proxy.port}",
        "NO_PROXY": "127.0.0.1",
    }
    (folder / "home").mkdir()
    (folder / "problems.csv").write_text(
        "id,problem_statement,project\na,Do it.,good.zip\nb,Do it.,bad.zip\nc,Do it.,s3://bucket/key.zip\n"
        f"d,Do it.,http://127.0.0.1:{files.port}/x.zip?X-Amz-Signature={secret('signature-in-csv')}\n"
    )
    body_key, header = secret("key-in-body"), secret("literal-header")
    (folder / "astra.toml").write_text(f"""
[[models]]
spec = "openai-compatible/near"
base_url = "http://127.0.0.1:{model.port}/v1?code={quote(secret("query-of-base-url"), safe="")}"
api_key_env = "ROUTER_KEY"
timeout_s = 3
extra_headers = {{ X-Literal = "Token {header}", X-Tenant = "${{TENANT}}" }}
extra_body = {{ api_key = "{body_key}", metadata = {{ team = "red" }} }}
[[models]]
spec = "openai-compatible/far"
base_url = "http://far.example/v1"
timeout_s = 3
max_in_flight = 1
[s3]
endpoint_url = "http://127.0.0.1:{s3.port}"
""")
    root = f"http://user:{quote(secret('projects-password'), safe='')}@127.0.0.1:{files.port}"
    root += f"?sig={quote(secret('projects-signature'), safe='')}"
    (folder / "bad.toml").write_text(
        f'[s3]\nendpoint_url = "http://user:{secret("s3-password")}@host"\n[[models]]\nspec = "openai/a"\n'
        f'extra_headers = {{ X-Bad = "{secret("header-of-bad-toml")}\\n" }}\n'
    )
    run: tuple[str, ...] = ("run", "--problems", "problems.csv", "--config", "astra.toml")
    run = (*run, "--projects", root, "--out", "out", "--samples", "6", "--generate-only")
    bad = f"http://user:{quote(secret('password-of-base-url'), safe='')}@host/v1"
    odd = f"user:{secret('password-without-scheme')}@host/v1"
    cheap = ("--problems", "bundled", "--limit", "1", "--out", "out2", "--model", "openai-compatible/x")
    said = ""
    for words in (
        (*run, "--only", "a", "--only", "b", "--model", "openai-compatible/near"),
        ("--debug", *run, "--model", "openai-compatible/near"),
        ("--debug", *run, "--only", "a", "--model", "openai-compatible/far"),
        (*run, "--log-json", "--only", "a", "--model", "openai-compatible/near"),
        (*run, "--dry-run"),
        ("report", "out"),
        ("status", "out"),
        ("show", "out", "openai-compatible/near", "a", "0"),
        ("problems", "--problems", "problems.csv", "--projects", root, "--config", "astra.toml"),
        ("doctor",),
        ("--debug", "run", *cheap, "--base-url", bad),
        ("--debug", "run", *cheap, "--base-url", odd),
        ("--debug", "run", "--problems", "bundled", "--out", "out3", "--config", "bad.toml"),
    ):
        said += ran(words, folder, environ)
    return secret, folder, said


def ran(words: tuple[str, ...], folder: Path, environ: dict[str, str]) -> str:
    done = astra(*words, cwd=folder, env=environ)
    assert "defect of astra" not in done.stderr, done.stderr
    return f"$ {words[0]}\n{done.stdout}{done.stderr}"


def test_nothing_that_is_printed_holds_a_secret(played: tuple[Secrets, Path, str]) -> None:
    secret, _, said = played
    assert "Traceback" in said  # tracebacks were among it
    lines = [line for line in said.splitlines() if secret.found_in(line.encode())]
    assert lines == []


def test_nothing_that_is_written_holds_a_secret(played: tuple[Secrets, Path, str]) -> None:
    secret, folder, _ = played
    typed = {folder / name for name in ("problems.csv", "astra.toml", "bad.toml")}
    written = [path for path in folder.rglob("*") if path.is_file() and path not in typed]
    assert {path.name for path in written} >= {"run.json", "completions.jsonl", "events.jsonl"}
    leaks = {(path.name, place) for path in written for place in secret.found_in(path.read_bytes())}
    leaks |= {(path.name, place) for path in written for place in secret.found_in(str(path).encode())}
    assert leaks == set()


def test_servers_get_their_own_secrets_and_no_others(
    played: tuple[Secrets, Path, str], servers: tuple[Echo, Echo, Echo, Echo]
) -> None:
    secret, _, _ = played
    model, files, proxy, s3 = (b"\n".join(server.requests) for server in servers)
    own = {"named-key", "variable-of-a-header", "literal-header", "key-in-body", "query-of-base-url"}
    assert secret.found_in(model) == own
    assert secret.found_in(files) == {"projects-password", "signature-in-csv"}
    assert secret.found_in(proxy) <= {"proxy-password", "openai-key"}  # the key of the model behind it
    assert secret.found_in(s3) <= {"aws-token"}
    assert b"x-astra-sample" not in model.lower()


def test_the_trouble_was_real(played: tuple[Secrets, Path, str]) -> None:
    """The echoes arrived and were told, with what was secret in them masked."""
    _, folder, said = played
    events = (folder / "out" / "events.jsonl").read_text()
    assert "bad: POST" in events
    assert "***" in events
    assert "X-Literal" in events
    assert "the server responded 403" in said
