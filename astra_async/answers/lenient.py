"""Run the slow repairs of answers in a helper process with a deadline for each answer.

A repairing parser can take seconds on a few hundred kilobytes of broken JSON. On the event loop it would
stall every other sample. The helper process is started for the first answer that needs it (a few in a hundred
do) and keeps running. It forks for every answer, and each fork has its own limits of CPU time and memory.
Therefore an outcome depends neither on earlier answers nor on the machine's load.

The pipes carry frames: an eight-byte big-endian length, then that many bytes of JSON. The helper exits at the
end of its input, also if the parent process was killed. A fork that is still parsing then ends at its CPU
limit.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, cast

from astra_async.answers import parse_leniently, parse_strictly
from astra_async.answers.reading import read_agents_files
from astra_async.log import decode, encode
from astra_async.tasks import Closing
from astra_async.types import ANSWER_FORMATS, Solution, Unusable, is_agent

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from astra_async.types import FinishReason, Format

CPU_S = 10
MEMORY_BYTES = 2 * 1024**3
WALL_S = 120.0  # only reached on an extremely overloaded machine

_LONG_ANSWER_CHARACTERS = 200_000  # the strict parsers run in a thread for longer answers
_TRIES = 2  # the helper may have been killed from outside, which says nothing about the answer
_EXCEEDED, _FAILED = 3, 1  # exit codes of the helper and of its forks
_LENGTH_BYTES = 8
_MOST_REPLY_BYTES = 512 * 1024**2


async def read_answer(
    text: str, fmt: Format, finish_reason: FinishReason, lenient: LenientParser
) -> Solution | Unusable:
    """Parse an answer with the strict parsers, and with `lenient` if they cannot decide.

    Every text gets a verdict: if a strict parser raises an exception, the helper process parses the answer
    again.

    Raises:
        ValueError: the record of an agent's files is damaged. The sample is then missing, not failed.
    """
    if is_agent(fmt):
        return read_agents_files(text)
    try:
        if len(text) > _LONG_ANSWER_CHARACTERS:
            solution = await asyncio.to_thread(parse_strictly, text, fmt, finish_reason)
        else:
            solution = parse_strictly(text, fmt, finish_reason)
    except Exception:  # noqa: BLE001 - otherwise the sample would stay missing in every later run
        solution = None
    return await lenient.parse(text, fmt, finish_reason) if solution is None else solution


class LenientParser(Closing):
    """Runs `parse_leniently` in a helper process, one answer at a time.

    Call `close` at the end; it does nothing if no answer needed the helper. Invariant: between two answers no
    helper owes a reply, so an answer never gets the reply of another answer.

    Args:
        cpu_s: CPU seconds that one answer may take.
        memory_bytes: address space of the helper and of each of its forks.
    """

    def __init__(self, *, cpu_s: int = CPU_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._cpu_s = cpu_s
        self._memory_bytes = memory_bytes
        self._one_at_a_time = asyncio.Lock()
        self._idle: Process | None = None

    async def parse(self, text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable:
        """Return the lenient parser's outcome; exceeding the time or memory limit is a format error."""
        async with self._one_at_a_time:
            reply = await self._reply(encode([text, fmt, finish_reason]))
        if reply is None:
            return Unusable(
                failure="format_error",
                reason=(
                    f"repairing the answer took over {self._cpu_s} s of CPU time or too much memory,"
                    " or crashed the parser"
                ),
            )
        record = decode(reply)
        repairs = tuple(record.pop("repairs"))
        if "files" in record:
            return Solution(files=record["files"], repairs=repairs)
        return Unusable(**record, repairs=repairs)

    async def close(self) -> None:
        """Stop the helper; a later `parse` starts a new one."""
        process, self._idle = self._idle, None
        if process is not None:
            await _end(process)

    async def _reply(self, request: bytes) -> bytes | None:
        for _ in range(_TRIES):
            process, self._idle = self._idle, None
            if process is None or process.returncode is not None:
                process = await _start(self._cpu_s, self._memory_bytes)
            reply = None
            try:
                async with asyncio.timeout(WALL_S):
                    reply = await _exchange(process, request)
            except TimeoutError:
                return None
            finally:
                if reply is None:
                    await _end(process)
            if reply is not None:
                self._idle = process
                return reply
            if process.returncode == _EXCEEDED:
                return None
        return None


async def _start(cpu_s: int, memory_bytes: int) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "astra_async.answers.lenient", str(cpu_s), str(memory_bytes)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},  # API keys must not reach the helper
        start_new_session=True,  # Ctrl-C is handled by the parent, which lets the current answers finish
    )


async def _exchange(process: Process, request: bytes) -> bytes | None:
    """Send one request and return its reply, or None if the helper has exited."""
    stdin, stdout = cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout)
    try:
        stdin.write(len(request).to_bytes(_LENGTH_BYTES) + request)
        await stdin.drain()
        length = int.from_bytes(await stdout.readexactly(_LENGTH_BYTES))
        if length <= _MOST_REPLY_BYTES:
            return await stdout.readexactly(length)
    except (ConnectionError, asyncio.IncompleteReadError):
        await process.wait()
    return None


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):  # already exited
            os.killpg(process.pid, signal.SIGKILL)  # the helper and its fork, if any
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


# --- within the helper ------------------------------------------------------------------------------


def _serve(cpu_s: int, memory_bytes: int) -> None:
    """Answer requests until the input ends, or until a fork exits without a reply."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parse_leniently('{"a.js": ', "json", "stop")  # import json-repair once, not in each fork
    gc.freeze()
    pipe = sys.stdin.buffer
    while request := pipe.read(int.from_bytes(pipe.read(_LENGTH_BYTES))):  # empty at the end of the input
        fork = os.fork()
        if fork == 0:
            _answer(request, cpu_s)
        code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        if code:
            os._exit(_EXCEEDED if code in (_EXCEEDED, -signal.SIGXCPU) else _FAILED)


def _answer(request: bytes, cpu_s: int) -> NoReturn:
    """Parse one answer in this fork, write the reply, and exit."""
    code = _FAILED
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        text, fmt, finish_reason = decode(request)
        if fmt in ANSWER_FORMATS:
            reply = encode(parse_leniently(text, fmt, finish_reason))
            sys.stdout.buffer.write(len(reply).to_bytes(_LENGTH_BYTES) + reply)
            sys.stdout.buffer.flush()
            code = 0
    except MemoryError:
        code = _EXCEEDED
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:]))
