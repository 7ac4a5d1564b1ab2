"""Read a problem's test files in a worker process, because a parser may hang or crash on any input.

Run as a program, this module reads `{path: text}` as JSON from standard input and writes the mutable tests.
Bytes travel as Latin-1 text, which keeps every byte.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from astra_async.errors import SandboxError
from astra_async.languages import LANGUAGES
from astra_async.languages.mutations import MutableTest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.languages.mutations import TestReader

_CPU_S, _WALL_S = 60, 120.0
_MEMORY_BYTES = 2 * 1024**3
_MOST_BYTES = 400_000  # of one file; longer files are left alone
_TESTS = msgspec.json.Decoder(list[MutableTest])


async def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Return the tests in these files that can be mutated. Raises SandboxError if the worker fails."""
    texts = {
        path: content.decode("latin-1") for path, content in files.items() if len(content) <= _MOST_BYTES
    }
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "astra_async.audit.parsing"),
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_WALL_S):
            output, _ = await worker.communicate(msgspec.json.encode(texts))
    except TimeoutError as error:
        message = f"the test files could not be parsed within {_WALL_S:.0f} s"
        raise SandboxError(message) from error
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    if worker.returncode != 0:
        message = f"the test files could not be parsed: the parser ended with exit code {worker.returncode}"
        raise SandboxError(message)
    return _TESTS.decode(output)


def mutable_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Return the tests of all languages that have at least one place to mutate."""
    readers = {suffix: each.mutate for each in LANGUAGES for suffix in each.suffixes if each.mutate}
    by_reader: dict[TestReader, dict[str, bytes]] = defaultdict(dict)
    for path, content in files.items():
        if reader := readers.get(path.rpartition(".")[2].lower()):
            by_reader[reader][path] = content
    return [test for reader, held in by_reader.items() for test in reader(held) if test.places]


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    texts = msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, str])
    found = mutable_tests({path: text.encode("latin-1") for path, text in texts.items()})
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    _main()
