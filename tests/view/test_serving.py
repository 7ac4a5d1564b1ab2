"""The viewer's server over real HTTP, on real directories that grow, break, vanish and come back."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import os
import shutil
import socket
import struct
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest
from watched_runs import model_call

from astra_async.agents.session_log import session_log
from astra_async.report.tables import build_report
from astra_async.types import SampleKey
from astra_async.view.access import NOBODY, Access, account_of
from astra_async.view.serving import Viewer, served
from made_runs import Made, agreeing, made_problems, run_json, write_run, write_turns
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Scenario = Callable[["Client"], Awaitable[None]]

MISSING, NO_SOLUTION, NONE, WAITING, ALL, NOT_PLANNED = 0, 1, 2, 252, 253, 255
EVIL = "</script><img src=x onerror=alert(1)>\u202e\x1b[31mred\x00 javascript:alert(1)"


class Client:
    """Asks one viewer; `viewer` is the object behind it."""

    def __init__(self, session: aiohttp.ClientSession, viewer: Viewer, port: int) -> None:
        self.session, self.viewer, self.port = session, viewer, port
        self.base = f"http://127.0.0.1:{port}"

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        async with self.session.get(f"{self.base}/api/{path}", params=query) as answer:
            content = await answer.json()
            assert answer.status == status, content
            return content

    async def content(self, path: str) -> bytes:
        async with self.session.get(f"{self.base}/api/{path}") as answer:
            assert answer.status == 200
            return await answer.read()

    async def loaded(self) -> dict[str, Any]:
        """The summary once everything there is was read."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found: dict[str, Any] = await self.get("run")
                if found["loading"] is None:
                    return found
                await asyncio.sleep(0.02)

    async def sees(self, what: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The first summary of which something is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not what(found := await self.loaded()):
                await asyncio.sleep(0.1)
            return found

    async def label(self, status: int, headers: dict[str, str] | None = None, **body: Any) -> Any:
        given = {"Origin": self.base, "Content-Type": "application/json"} | (headers or {})
        async with self.session.put(
            f"{self.base}/api/label", data=orjson.dumps(body), headers=given
        ) as answer:
            content = await answer.json()
            assert answer.status == status, content
            return content


@asynccontextmanager
async def viewing(*directories: Path, token: str | None = None) -> AsyncIterator[Client]:
    viewer = Viewer(directories, Access(token))
    async with served(viewer, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        yield Client(session, viewer, port)


def look(scenario: Scenario, *directories: Path) -> None:
    async def run() -> None:
        async with viewing(*directories) as client:
            await scenario(client)

    asyncio.run(run())


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def append(path: Path, *content: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(b"".join(content))


MADE = Made(problems=made_problems(3), samples=3)


def test_the_headline_has_the_digits_of_the_report(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", replace(MADE, formats=("xml", "json")))
    table = build_report([directory]).sections[0].tables[0]
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    expected = {(row["model"], row["format"]): row for row in rows}

    async def scenario(client: Client) -> None:
        found = await client.loaded()
        assert len(found["headline"]) == 4
        for line in found["headline"]:
            model = found["models"][line["model"]]
            row = expected[model["name"], model["format"]]
            assert line["mean_score"] == row["mean_score"]
            assert line["pass_at_1"] == row["pass_at_1"]
            assert line["median_sd"] == row["median_sd"]
            interval = row["mean_score_total"]
            assert isinstance(interval, tuple)
            assert line["interval"] == list(interval)
        assert found["state"] == "finished"
        assert found["warnings"] == []

    look(scenario, directory)


def test_the_score_after_the_last_turn_is_the_reports_and_missing_turns_are_counted(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.4, "beta": 0.5}, problems=made_problems(4), samples=4)
    directory = write_run(tmp_path / "run", made)
    write_turns(directory, made, 2, {"alpha": 0.9, "beta": 0.6})
    board = {row["model"]: row for row in build_report([directory]).table("leaderboard").by_name()}
    path = directory / "turn_results.jsonl"
    whole = path.read_bytes()

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        assert run["turns"] == 2
        assert run["state"] == "finished"
        for row in run["headline"]:
            assert row["after_turns"] == pytest.approx(
                board[run["models"][row["model"]]["name"]]["after_turns"]
            )
            assert row["turns_missing"] == 0

    look(scenario, directory)
    path.write_bytes(whole.splitlines(keepends=True)[0])

    async def missing(client: Client) -> None:
        found = await client.loaded()
        rows = found["headline"]
        assert found["state"] == "stopped"
        results = [orjson.loads(line) for line in (directory / "results.jsonl").read_bytes().splitlines()]
        failed = [line["failure"] == "tests_failed" for line in results]
        assert sum(row["turns_missing"] for row in rows) >= sum(failed) - 1 > 0

    look(missing, directory)


def test_every_cell_is_what_its_line_says(tmp_path: Path) -> None:
    left_out = frozenset({("alpha", "xml", "p01", 2)})
    directory = write_run(tmp_path / "run", replace(MADE, leave_out=left_out))
    result = orjson.loads(lines(directory / "results.jsonl")[0])
    append(
        directory / "completions.jsonl",
        orjson.dumps(
            {
                **dict(
                    zip(("model", "format", "problem_id", "sample"), ("alpha", "xml", "p01", 2), strict=True)
                ),
                "text": "x",
                "finish_reason": "stop",
            }
        ),
        b"\n",
    )

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        cells = await client.content("cells")
        assert len(cells) == len(run["models"]) * len(run["problems"]) * run["samples"]
        passed = struct.unpack(f"<{len(cells)}H", await client.content("cells/passed"))
        seconds = struct.unpack(f"<{len(cells)}f", await client.content("cells/seconds"))
        exact = struct.unpack(f"<{len(cells)}d", await client.content("cells/score"))
        failures = await client.content("cells/failure")
        repairs = struct.unpack(f"<{len(cells)}I", await client.content("cells/repair"))
        at = 0
        for model in run["models"]:
            for problem in run["problems"]:
                for sample in range(run["samples"]):
                    opened = await client.get(
                        "sample", model=model["id"], problem=problem["id"], sample=sample
                    )
                    line = opened["result"]
                    assert opened["cell"] == cells[at]
                    if line is None:
                        assert cells[at] == WAITING
                        assert opened["missing_why"] == "answered, not tested yet"
                        at += 1
                        continue
                    assert (passed[at], seconds[at]) == (line["passed"], pytest.approx(line["latency_s"]))
                    assert exact[at] == line["passed"] / line["total"]
                    kind = None if failures[at] == 255 else run["failures"][failures[at]]
                    assert kind == line["failure"]
                    assert [
                        name for bit, name in enumerate(run["repairs"]) if repairs[at] >> bit & 1
                    ] == line["repairs"]
                    share = 249 * line["passed"] // line["total"]
                    expected = ALL if line["failure"] is None else NONE if not line["passed"] else 3 + share
                    assert cells[at] == (NO_SOLUTION if line["status"] == "no_solution" else expected)
                    at += 1
        assert run["state"] == "stopped"

    assert result["schema"] == 1
    look(scenario, directory)


def test_a_growing_run_is_told_cell_by_cell_and_a_torn_line_is_waited_for(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    results = lines(directory / "results.jsonl")
    (directory / "results.jsonl").write_bytes(b"".join(results[:4]))
    (directory / "completions.jsonl").write_bytes(b"")

    async def scenario(client: Client) -> None:
        await client.loaded()
        async with client.session.get(f"{client.base}/api/stream") as stream:
            assert stream.content_type == "text/event-stream"
            assert (await change(stream))["cells"] is None
            append(directory / "results.jsonl", results[4], results[5][:40])
            found = await changed(stream)
            assert [byte for _, byte in found] == [cell_of(results[4])]
            append(directory / "results.jsonl", results[5][40:])
            found = await changed(stream)
            assert [byte for _, byte in found] == [cell_of(results[5])]
            # a killed run's torn line is cut off when the run is resumed, and another one written
            append(directory / "results.jsonl", results[6][:50])
            await asyncio.sleep(0.7)
            content = (directory / "results.jsonl").read_bytes()
            with (directory / "results.jsonl").open("r+b") as whole:
                whole.truncate(content.rindex(b"\n") + 1)
            append(directory / "results.jsonl", results[7])
            found = await changed(stream)
            assert [byte for _, byte in found] == [cell_of(results[7])]
        assert (await client.loaded())["warnings"] == []
        async with asyncio.timeout(PATIENCE_S):
            while client.viewer.watch.is_watched:
                await asyncio.sleep(0.05)

    look(scenario, directory)


def cell_of(line: bytes) -> int:
    record = orjson.loads(line)
    if record["status"] == "no_solution":
        return NO_SOLUTION
    if record["failure"] is None:
        return ALL
    return 3 + 249 * record["passed"] // record["total"] if record["passed"] else NONE


async def change(stream: aiohttp.ClientResponse, name: str = "change") -> dict[str, Any]:
    """The next message of a kind."""
    kind = ""
    async with asyncio.timeout(PATIENCE_S):
        async for line in stream.content:
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif line.startswith(b"data: ") and kind == name:
                found: dict[str, Any] = orjson.loads(line[6:])
                return found
    pytest.fail("the stream ended")


async def changed(stream: aiohttp.ClientResponse) -> list[list[int]]:
    """The next cells that changed; messages without any are passed over."""
    while not (cells := (await change(stream))["cells"]):
        pass
    found: list[list[int]] = cells
    return found


def test_a_cut_log_is_read_again_and_told(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    results = lines(directory / "results.jsonl")

    async def scenario(client: Client) -> None:
        before = await client.loaded()
        (directory / "results.jsonl").write_bytes(b"".join(results[:5]))
        found = await client.sees(lambda run: sum(line["valid"] for line in run["headline"]) == 5)
        assert found["version"] > before["version"]
        assert ["truncated or replaced" in warning for warning in found["warnings"]] == [True]
        # regrown with other content beyond where it was read to: nothing shrank, and yet it is another file
        (directory / "results.jsonl").write_bytes(b"".join(reversed(results)))
        await client.sees(lambda run: sum(line["valid"] for line in run["headline"]) == len(results))

    look(scenario, directory)


def test_a_directory_that_vanishes_stays_to_be_seen_and_comes_back(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)

    async def scenario(client: Client) -> None:
        before = await client.loaded()
        cells = await client.content("cells")
        directory.rename(tmp_path / "elsewhere")
        found = await client.sees(lambda run: run["warnings"])
        assert found["headline"] == before["headline"]
        assert found["state"] == "unknown"
        assert "is gone" in found["warnings"][0]
        assert "\n" not in found["warnings"][0]
        assert await client.content("cells") == cells
        opened = await client.get("sample", model=0, problem="p00", sample=0)
        assert (opened["result"], opened["answer"]) == (None, None)
        (tmp_path / "elsewhere").rename(directory)
        found = await client.sees(lambda run: run["state"] == "finished")
        assert not [warning for warning in found["warnings"] if "gone" in warning]
        assert (await client.get("sample", model=0, problem="p00", sample=0))["result"]

    look(scenario, directory)


def test_a_run_resumed_with_more_samples_and_models_is_loaded_again(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    more = replace(MADE, samples=5, skill={"alpha": 0.8, "beta": 0.6, "gamma": 0.5})
    other = write_run(tmp_path / "more", more)

    async def scenario(client: Client) -> None:
        before = await client.loaded()
        async with client.session.get(f"{client.base}/api/stream") as stream:
            assert (await change(stream))["cells"] is None
            (directory / "run.json").write_bytes(orjson.dumps(run_json(more)))
            while (message := await change(stream))["version"] <= before["version"]:
                pass
            assert message["cells"] is None
        found = await client.loaded()
        assert (len(found["models"]), found["samples"], found["state"]) == (3, 5, "stopped")
        shutil.copy(other / "results.jsonl", directory / "results.jsonl")
        found = await client.sees(lambda run: run["state"] == "finished")
        assert len(await client.content("cells")) == 3 * 3 * 5

    look(scenario, directory)


def test_what_is_hostile_in_any_field_is_data(tmp_path: Path) -> None:
    problems = [replace(made_problems(1)[0], id=f"{EVIL}{'p' * 40}", total=2)]
    made = Made(problems=problems, samples=2, skill={f"m {EVIL}": 0.5})
    directory = write_run(tmp_path / "run", made)
    first = orjson.loads(lines(directory / "results.jsonl")[0])
    record = agreeing(first, 0, output_tail=EVIL * 50, note=EVIL, repairs=[EVIL], suspicions=[EVIL])
    record |= {"prompt_sha256": "../../../../etc/passwd", "dropped": [{"path": EVIL, "reason": EVIL}]}
    record["tests"] = [{"name": EVIL, "outcome": "failed", "message": EVIL}] * 2
    answer = orjson.loads(lines(directory / "completions.jsonl")[0])
    answer["text"] = (
        f'<solution><file path="{EVIL[:20]}../x"><![CDATA[{"a" * 10_000_000}]]></file></solution>'
    )
    answer["prompt_sha256"] = record["prompt_sha256"]
    surrogate = record | {"sample": 1, "note": "LONE", "prompt_sha256": "0" * 64}
    (directory / "results.jsonl").write_bytes(
        orjson.dumps(record) + b"\n" + orjson.dumps(surrogate).replace(b"LONE", rb"\ud800") + b"\n"
    )
    (directory / "prompts").mkdir()
    (directory / "prompts" / f"{'0' * 64}.txt").write_bytes(b"\xff\xfe")
    (directory / "completions.jsonl").write_bytes(orjson.dumps(answer) + b"\n")
    append(
        directory / "events.jsonl",
        orjson.dumps({"at": EVIL, "kind": EVIL, "detail": EVIL * 99}),
        b"\n[]\nx\n",
    )
    (directory / "live.json").write_bytes(
        b'{"at": {}, "pid": "x", "models": [], "seconds_left": [], "ended": 0}'
    )
    (directory / "labels.csv").write_bytes(b"\xff\xfe no table")

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        assert [len(warning.splitlines()) for warning in run["warnings"]] == [1, 1, 1]
        assert run["problems"][0]["id"] == problems[0].id
        opened = await client.get("sample", model=0, problem=problems[0].id, sample=0)
        assert opened["result"]["note"] == EVIL
        assert len(opened["answer"]["text"]) > 10_000_000
        assert opened["prompt"] is None
        opened = await client.get("sample", model=0, problem=problems[0].id, sample=1)
        assert (opened["result"]["note"], opened["prompt"]) == ("\ufffd", None)
        assert (await client.get("tests", problem=problems[0].id))["tests"][0]["name"] == EVIL
        live = await client.get("live")
        assert all(event["text"].isprintable() for event in live["events"])
        assert (await client.get("search", text="onerror="))["cells"] == []
        assert (await client.get("search", text="aaaaaa"))["cells"] == [[0, 0, 0]]

    look(scenario, directory)


def test_only_this_machine_and_its_own_page_may_ask(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)

    async def scenario(client: Client) -> None:
        own = f"127.0.0.1:{client.port}"
        allowed: list[dict[str, str]] = [
            {},
            {"Host": f"localhost:{client.port}"},
            {"Host": "localhost:9000"},  # through a tunnel
            {"Host": f"[::1]:{client.port}"},
            {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"},
        ]
        refused: list[dict[str, str]] = [
            {"Host": "evil.example"},
            {"Host": f"evil.example:{client.port}"},
            {"Host": "127.0.0.1.evil.example"},
            {"Host": "user@127.0.0.1"},
            {"Host": "10.1.2.3"},
            {"Origin": "http://evil.example"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": "null"},
            {"Origin": f"https://{own}"},
            {"Sec-Fetch-Site": "cross-site"},
        ]
        for expected, cases in ((200, allowed), (403, refused)):
            for headers in cases:
                for path in ("/api/run", "/api/cells", "/api/stream"):
                    async with client.session.get(client.base + path, headers=headers) as answer:
                        assert answer.status == expected, (headers, path)
                        assert answer.headers["X-Content-Type-Options"] == "nosniff"
                        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                        assert answer.headers["Referrer-Policy"] == "no-referrer"

    look(scenario, directory)


async def test_from_elsewhere_only_with_the_token(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)

    async with viewing(directory, token="secret-token") as client:
        elsewhere = {"Host": "runs.example"}
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            for path in ("/", "/api/run", "/api/run?token=wrong", "/page/view.css", "/?token="):
                async with session.get(client.base + path, headers=elsewhere) as answer:
                    assert answer.status == 403, path
                    assert "secret" not in await answer.text()
            address = f"{client.base}/?token=secret-token"
            async with session.get(address, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/")
                cookie = answer.headers["Set-Cookie"]
                assert "HttpOnly" in cookie
                assert "SameSite=Strict" in cookie
            async with session.get(f"{client.base}/api/run") as answer:
                assert answer.status == 200
                assert "Set-Cookie" not in answer.headers
            async with session.get(f"{client.base}/api/run", headers={"Origin": "http://evil"}) as answer:
                assert answer.status == 403


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
async def test_another_account_of_the_machine_is_refused_without_a_token(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    script = (
        "import encodings.idna, os, sys, urllib.request, urllib.error\n"
        "os.setuid(65534)\n"
        "try:\n"
        "    asked = urllib.request.Request(sys.argv[1], headers={'Host': 'localhost'})\n"
        "    print(urllib.request.urlopen(asked).status)\n"
        "except urllib.error.HTTPError as error:\n"
        "    print(error.code, error.read().decode())\n"
    )

    for host, name, token in (
        ("127.0.0.1", "127.0.0.1", None),
        ("127.0.0.1", "[::ffff:127.0.0.1]", None),  # a socket of IPv6 that leads to the same place
        ("::1", "[::1]", None),
        ("127.0.0.1", "127.0.0.1", "t"),
    ):
        async with served(Viewer([directory], Access(token)), host, 0) as port:
            address = f"http://{name}:{port}/api/run?token={token}"
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-c", script, address, stdout=asyncio.subprocess.PIPE
            )
            said = (await process.communicate())[0].decode()
            assert said.startswith("200" if token else "403"), said
            assert token or "another account" in said


def test_who_has_closed_its_socket_is_nobody() -> None:
    """The kernel shows root as the user of a connection whose other end has been closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, peer = server.accept()
        with accepted:
            assert account_of(peer, accepted.getsockname()) == os.geteuid()
            client.close()
            assert account_of(peer, accepted.getsockname()) == NOBODY


def test_no_request_reaches_a_file_that_is_not_the_pages(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    paths = (
        *("/page/../serving.py", "/page/%2e%2e/serving.py", "/page/..%2fserving.py", "/page//etc/passwd"),
        *(
            "/page/shared/../load.py",
            "/page/",
            "/page/%00",
            "/page/index.html%00.js",
            "/run.json",
            "/../run.json",
        ),
        "/api/../page/../../../etc/passwd",
    )

    async def scenario(client: Client) -> None:
        for path in paths:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            answer = await reader.read()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            assert answer.split()[1] in {b"404", b"400"}, (path, answer[:200])
            assert b"root:" not in answer
            assert b"import" not in answer

    look(scenario, directory)


def test_labels_are_written_as_people_write_them_and_nothing_else_is(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    (directory / "labels.csv").write_text(
        "model,format,problem_id,sample,label,remark\n"
        'beta,xml,p00,1,Logical and implementation,"a ""b""\nc"\n'
    )

    async def scenario(client: Client) -> None:
        await client.loaded()
        assert (await client.get("labels"))["labels"] == [[1, 0, 1, "logic", "hand"]]
        cell: dict[str, Any] = {"model": 0, "problem": "p02", "sample": 2}
        assert await client.label(200, **cell, label="syntax") == {"label": "syntax"}
        assert (await client.get("sample", **cell))["label"] == "syntax"
        assert (await client.content("cells/label"))[8] == 4
        rows = list(csv.DictReader(io.StringIO((directory / "labels.csv").read_text(), newline="")))
        assert [row["remark"] for row in rows] == ['a "b"\nc', ""]
        await client.label(200, **cell, label=None)
        assert (await client.get("sample", **cell))["label"] is None
        before = (directory / "labels.csv").read_bytes()
        await client.label(400, **cell, label="nonsense")
        await client.label(404, **cell | {"sample": 99}, label="logic")
        await client.label(404, **cell | {"problem": "../x"}, label="logic")
        await client.label(403, {"Origin": "http://evil.example"}, **cell, label="logic")
        await client.label(415, {"Content-Type": "text/plain"}, **cell, label="logic")
        await client.label(413, **cell, label="x" * 100_000)
        assert (directory / "labels.csv").read_bytes() == before
        assert not list(directory.glob(".*tmp"))

    look(scenario, directory)


def test_tests_and_searches_agree_with_the_lines(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", replace(MADE, samples=6))
    records = [orjson.loads(line) for line in lines(directory / "results.jsonl")]

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        names = [model["name"] for model in run["models"]]
        for test in (await client.get("tests", problem="p01"))["tests"]:
            for name, share in zip(names, test["passed"], strict=True):
                told = [
                    each["outcome"] == "passed"
                    for record in records
                    if (record["model"], record["problem_id"]) == (name, "p01")
                    for each in record["tests"]
                    if each["name"] == test["name"]
                ]
                assert share == sum(told) / len(told)
            failed = await client.get("search", test=test["name"], problem="p01", outcome="failed")
            assert [tuple(cell) for cell in failed["cells"]] == sorted(
                (names.index(record["model"]), 1, record["sample"])
                for record in records
                if record["problem_id"] == "p01"
                and (test["name"], "failed") in [(each["name"], each["outcome"]) for each in record["tests"]]
            )
        found = await client.get("search", text="ALPHA P02 3 ")
        assert (found["cells"], found["more"]) == ([[0, 2, 3]], False)
        points = (await client.get("history"))["points"]
        for line in run["headline"]:
            last = [point for point in points if point["model"] == line["model"]][-1]
            assert last["mean_score"] == pytest.approx(line["mean_score"])
            assert last["valid"] == line["valid"]
        for path, query in (
            ("search", {"text": "x", "in": "prompts"}),
            ("search", {"text": "x" * 2000}),
            ("search", {"test": "t", "outcome": "maybe", "problem": "p01"}),
            ("sample", {"model": "-1", "problem": "p01", "sample": "0"}),
            ("sample", {"model": "1e9", "problem": "p01", "sample": "0"}),
        ):
            assert "error" in await client.get(path, status=400, **query)
        for path, query in (
            ("tests", {"problem": "none"}),
            ("sample", {"model": "9", "problem": "p01", "sample": "0"}),
            ("cells/secret", {}),
            ("compare", {"a": "0", "b": "1"}),
        ):
            assert "error" in await client.get(path, status=404, **query)

    look(scenario, directory)


def test_directories_that_share_keys_stand_side_by_side(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", MADE)
    other = write_run(tmp_path / "other", replace(MADE, problems=made_problems(4), samples=2, seed=2))

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        labels = [model["label"] for model in run["models"]]
        assert labels == ["alpha @ one", "beta @ one", "alpha @ other", "beta @ other"]
        cells = await client.content("cells")
        problems, k = len(run["problems"]), run["samples"]
        assert (problems, k) == (4, 3)
        assert cells[3 * k : 4 * k] == bytes([NOT_PLANNED] * 3)
        assert cells[2 * problems * k + 2] == NOT_PLANNED
        await client.get("sample", status=404, model=0, problem="p03", sample=0)
        opened = await client.get("sample", model=3, problem="p03", sample=1)
        line = next(
            line
            for line in map(orjson.loads, lines(other / "results.jsonl"))
            if (line["model"], line["problem_id"], line["sample"]) == ("beta", "p03", 1)
        )
        assert opened["result"] == line
        found = (await client.get("search", text="beta p03 1 "))["cells"]
        assert found == [[3, 3, 1]]
        await client.label(200, model=2, problem="p00", sample=0, label="logic")
        assert not (one / "labels.csv").exists()
        assert (other / "labels.csv").exists()

    look(scenario, one, other)


def test_a_run_without_results_is_shown_as_one(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "run.json").write_bytes(orjson.dumps(run_json(MADE)))
    key = SampleKey("alpha", "xml", "p01", 2)
    (directory / "calls.jsonl").write_bytes(model_call(key, 0, []))
    log = session_log(directory, key)
    log.parent.mkdir(parents=True)
    log.write_bytes(gzip.compress(b"==> output <==\n<script>\n"))

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        assert [line["mean_score"] for line in run["headline"]] == [None, None]
        assert set(await client.content("cells")) == {MISSING}
        opened = await client.get("sample", model=0, problem="p00", sample=0)
        assert opened["missing_why"] == "not requested yet, or in progress"
        assert not opened["session_log"]
        await client.get("session-log", status=404, model=0, problem="p00", sample=0)
        opened = await client.get("sample", model=0, problem="p01", sample=2)
        assert opened["missing_why"] == "agent steps so far: 1"
        assert opened["session_log"]
        text = await client.content("session-log?model=0&problem=p01&sample=2")
        assert text == b"==> output <==\n<script>\n"
        assert (await client.get("history"))["points"] == []
        assert (await client.get("tests", problem="p00"))["tests"] == []

    look(scenario, directory)


def test_a_tab_that_does_not_read_costs_no_memory_and_fetches_all_when_it_does(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)

    async def scenario(client: Client) -> None:
        await client.loaded()
        page = client.viewer.watch.open()
        for number in range(100):
            client.viewer.watch._send(b"message %d" % number)
        assert b'"cells":null' in await page.get()  # all again
        waiting = [await page.get() for _ in range(3)]
        assert all(message.startswith(b"message") for message in waiting)
        client.viewer.watch.close(page)

    look(scenario, directory)


def test_lines_that_contradict_each_other_are_told_and_the_first_counts(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    first = orjson.loads(lines(directory / "results.jsonl")[0])
    append(directory / "results.jsonl", orjson.dumps(first | {"note": "other"}), b"\n")
    append(directory / "results.jsonl", orjson.dumps(first | {"schema": 99, "sample": 1}), b"\n")

    async def scenario(client: Client) -> None:
        run = await client.loaded()
        assert ["contradict each other" in warning for warning in run["warnings"]] == [True, False]
        opened = await client.get("sample", model=0, problem=first["problem_id"], sample=0)
        assert opened["result"] == first

    look(scenario, directory)
