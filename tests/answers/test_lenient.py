from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from astra_async.answers import parse_leniently
from astra_async.answers.lenient import LenientParser, read_answer
from astra_async.types import Solution, Unusable
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {"src/app.js": "const a = 1;\nmodule.exports = a;\n", "README.md": "# A\n"}
BROKEN = json.dumps(FILES)[:-1] + ",}"
ENDLESS = '{"' * 100_000  # ten seconds and more of CPU time


def broken(number: int) -> str:
    """An answer that no other stage reads, and that no other number's outcome fits."""
    return json.dumps({f"src/{number}.js": f"const a = {number};\n"}).replace('": "', '" "')


class NestedTooDeep(str):
    """A text that no parser of this process can read to its end."""

    __slots__ = ()

    def lstrip(self, _: str | None = None, /) -> str:
        raise RecursionError


def outcome(text: str) -> Solution | Unusable:
    return parse_leniently(text, "json", "stop")


async def parsed(parser: LenientParser, text: str) -> Solution | Unusable:
    return await parser.parse(text, "json", "stop")


def helpers(pid: int | str = "self") -> list[int]:
    """Helpers among the children of a process (not a browser of other tests); a helper's are its forks."""
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has just ended
            children += (task / "children").read_text().split()
    return [child for child in map(int, children) if _is_helper(child)]


def _is_helper(pid: int) -> bool:
    try:
        return b"astra_async.answers.lenient" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


async def test_the_helper_process_reads_as_the_parser_does() -> None:
    async def both() -> tuple[Solution | Unusable, ...]:
        async with LenientParser() as parser:
            return await parsed(parser, BROKEN), await parsed(parser, "no files here")

    found, nothing = await both()
    assert found == outcome(BROKEN)
    assert isinstance(found, Solution)
    assert dict(found.files) == FILES
    assert nothing == outcome("no files here")
    assert isinstance(nothing, Unusable)
    assert nothing.failure == "format_error"


async def test_a_text_that_breaks_a_parser_gets_a_verdict_all_the_same() -> None:
    async def one() -> Solution | Unusable:
        text = NestedTooDeep("no files")
        async with LenientParser() as parser:
            return await read_answer(text, "json", "stop", parser)

    verdict = await one()
    assert isinstance(verdict, Unusable)
    assert verdict.failure == "format_error"


async def test_a_lone_surrogate_survives_the_way_to_the_helper() -> None:
    async def one() -> Solution | Unusable:
        async with LenientParser() as parser:
            return await parsed(parser, BROKEN + "\ud800")

    assert isinstance((await one()), Solution | Unusable)


async def test_no_process_is_started_before_an_answer_needs_it_and_one_serves_them_all() -> None:
    async with LenientParser() as parser:
        assert helpers() == []
        await parsed(parser, broken(0))
        (pid,) = helpers()
        found = await asyncio.gather(*(parsed(parser, broken(number)) for number in range(20)))
        assert found == [outcome(broken(number)) for number in range(20)]
        assert helpers() == [pid]
    assert helpers() == []
    await parser.close()


async def test_a_parser_that_was_closed_starts_again() -> None:
    async def twice() -> Solution | Unusable:
        parser = LenientParser()
        await parsed(parser, BROKEN)
        await parser.close()
        try:
            return await parsed(parser, BROKEN)
        finally:
            await parser.close()

    assert (await twice()) == outcome(BROKEN)


async def test_a_pathological_answer_is_a_format_error_and_harms_neither_the_loop_nor_the_others() -> None:
    async def ticks_meanwhile() -> tuple[int, list[Solution | Unusable]]:
        async with LenientParser(cpu_s=1) as parser:
            texts = [broken(1), ENDLESS, broken(2), broken(3)]
            task = asyncio.gather(*(parsed(parser, text) for text in texts))
            ticks = 0
            while not task.done():
                await asyncio.sleep(0.01)
                ticks += 1
            return ticks, await task

    ticks, found = await ticks_meanwhile()
    assert [found[0], *found[2:]] == [outcome(broken(number)) for number in (1, 2, 3)]
    assert isinstance(found[1], Unusable)
    assert found[1].failure == "format_error"
    assert "over 1 s of CPU time" in found[1].reason
    assert ticks > 10


async def test_time_is_counted_for_each_answer_and_not_in_all() -> None:
    one_s, times = 1.0, 4_000
    while one_s > 0.4:  # a fast machine takes 0.3 s for 2,000
        times //= 2
        text = '{"' * times
        began = time.process_time()
        expected = outcome(text)
        one_s = time.process_time() - began

    async with LenientParser(cpu_s=1) as parser:
        for _ in range(int(1.5 / one_s) + 1):
            assert await parsed(parser, text) == expected


async def test_an_answer_that_takes_too_much_memory_is_a_format_error_and_the_next_is_read() -> None:
    async def greedy() -> tuple[Solution | Unusable, Solution | Unusable]:
        async with LenientParser(memory_bytes=128 * 2**20) as parser:
            return await parsed(parser, '{"a.js": [' + "[]," * 4_000_000), await parsed(parser, BROKEN)

    found, following = await greedy()
    assert isinstance(found, Unusable)
    assert "too much memory" in found.reason
    assert following == outcome(BROKEN)


async def test_a_cancelled_answer_gives_its_reply_to_nobody_else() -> None:
    async def cancel_one() -> list[Solution | Unusable]:
        async with LenientParser() as parser:
            await parsed(parser, broken(0))
            (helper,) = helpers()
            tasks = [
                asyncio.create_task(parsed(parser, text)) for text in (ENDLESS, broken(1), broken(2), ENDLESS)
            ]
            await until(lambda: helpers(helper))
            (fork,) = helpers(helper)
            tasks[0].cancel()
            tasks[3].cancel()
            found = await asyncio.gather(*tasks[1:3])
            assert [task.cancelled() for task in tasks] == [True, False, False, True]
            await until(lambda: not Path(f"/proc/{fork}").exists())
            return list(found)

    assert (await cancel_one()) == [outcome(broken(1)), outcome(broken(2))]
    assert helpers() == []


async def test_a_reply_that_came_with_the_cancellation_is_not_the_next_answers() -> None:
    async with LenientParser() as parser:
        for milliseconds in range(10):
            await parsed(parser, broken(0))
            task = asyncio.create_task(parsed(parser, broken(1)))
            await asyncio.sleep(milliseconds / 1000)
            task.cancel()
            assert await parsed(parser, broken(2)) == outcome(broken(2))


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("victim", ["helper at rest", "helper at work", "fork"])
async def test_a_helper_that_somebody_kills_is_replaced_and_costs_no_answer(victim: str) -> None:
    text = '{"' * 2_000  # long enough to be caught at work
    expected = outcome(text)

    async with LenientParser() as parser:
        await parsed(parser, BROKEN)
        (helper,) = helpers()
        if victim == "helper at rest":
            os.kill(helper, signal.SIGKILL)
        task = asyncio.create_task(parsed(parser, text))
        if victim != "helper at rest":
            await until(lambda: helpers(helper))
            (fork,) = helpers(helper)
            os.kill(helper if victim == "helper at work" else fork, signal.SIGKILL)
        assert await task == expected
        assert await parsed(parser, BROKEN) == outcome(BROKEN)


async def test_the_helper_knows_no_key_and_hears_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async with LenientParser() as parser:
        await parsed(parser, BROKEN)
        (helper,) = helpers()
        assert environment(helper) == b""
        assert os.getsid(helper) == helper != os.getsid(0)


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


PROGRAM = """
import asyncio, sys, uvloop
from astra_async.answers.lenient import LenientParser
async def main():
    async with LenientParser(cpu_s=1) as parser:
        await parser.parse(sys.argv[1], "json", "stop")
        print("begun", flush=True)
        await parser.parse(sys.argv[2] * int(sys.argv[3]), "json", "stop")
        await asyncio.sleep(60)
uvloop.run(main())
"""


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("at_work", [True, False])
async def test_the_helper_ends_with_a_program_that_is_killed(at_work: bool) -> None:  # noqa: FBT001 - a parameter
    command = [sys.executable, "-c", PROGRAM, BROKEN, '{"', str(100_000 if at_work else 1)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        (helper,) = helpers(program.pid)
        if at_work:
            (await until(lambda: helpers(helper)))
        program.kill()
    await until(lambda: is_gone(helper))


def is_gone(pid: int) -> bool:
    """No process, or one that nobody has taken notice of yet: containers may lack an init that does."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
