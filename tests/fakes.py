"""Small complete implementations of the Protocols, for tests of their users."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.running.admission import Passage
from astra_async.types import (
    Completion,
    Execution,
    Job,
    Limits,
    ModelRequest,
    Problem,
    Project,
    ProjectFile,
    Solution,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

TESTS = 4
IMAGE_ID = "sha256:" + "0" * 64


def completion(text: str) -> Completion:
    return Completion(
        text=text,
        finish_reason="stop",
        usage=Usage(input_tokens=10, output_tokens=5),
        returned_model="scripted-1",
        ttft_s=0.1,
        latency_s=0.2,
        cost_usd=0.001,
    )


def xml_answer(passing: int | str) -> str:
    """Return an answer with which `passing` tests pass."""
    return f'<solution><file path="src/answer.txt"><![CDATA[{passing}\n]]></file></solution>'


class ScriptedPool:
    """Provider that answers with a function and counts the requests of each sample."""

    def __init__(self, answer: Callable[[ModelRequest], Completion | Awaitable[Completion]]) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def call(self, request: ModelRequest) -> Completion:
        self.asked.append(str(request.key))
        await asyncio.sleep(0)
        outcome = self._answer(request)
        return outcome if isinstance(outcome, Completion) else await outcome

    def stop(self) -> None:
        """Do nothing, because no request waits."""


@dataclass
class CountingSandbox:
    """Passes as many of TESTS tests as `src/answer.txt` says; writes JUnit XML as a runner would.

    `crash` in the file is a suite that reports nothing. `troubles` are raised first, one for each run.
    """

    troubles: list[Exception] = field(default_factory=list)
    runs: int = 0

    async def image_id(self, image: str) -> str:
        return IMAGE_ID

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        await asyncio.sleep(0)
        self.runs += 1
        if self.troubles:
            raise self.troubles.pop(0)
        said = _content(job.archive, "src/answer.txt").decode().partition("\n")[0].strip()
        reports = {} if said == "crash" else {"junit.xml": _junit(int(said))}
        return Execution(exit_code=0, duration_s=0.5, output="ran", reports=reports, image_id=IMAGE_ID)


class Unhindered(Passage):
    """Pool without limits."""

    def __init__(self) -> None:
        pass

    def answered(self) -> None:
        """Do nothing, because requests are not counted."""

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def testing(self) -> AsyncIterator[None]:
        yield

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class MemorySource:
    """Loader of projects and references by location."""

    projects: dict[str, Project]
    references: dict[str, Solution] = field(default_factory=dict)

    async def load(self, location: str) -> Project:
        return self.projects[location]

    async def load_reference(self, location: str) -> Solution:
        return self.references[location]


def a_project(answer: str = "0") -> Project:
    files = {"src/answer.txt": answer, "README.md": "# Answer\n", "tests/suite.sh": "run-tests\n"}
    return Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(files.items())),
        sha256=f"sha-of-{answer}",
    )


def a_problem(problem_id: str = "p1", **fields: object) -> Problem:
    known = {
        "id": problem_id,
        "statement": "Write the answer.",
        "project": problem_id,
        "test_command": "run-tests",
        "result_files": ("junit.xml",),
        "image": "any",
    }
    return Problem(**{**known, **fields})  # type: ignore[arg-type]


def _content(archive: bytes, path: str) -> bytes:
    """Return a file of a tar without `tarfile`, which would dominate the measured time."""
    name, at = path.encode(), 0
    while archive[at]:
        size = int(archive[at + 124 : at + 136].rstrip(b" \0"), 8)
        if archive[at : at + 100].rstrip(b"\0") == name:
            return archive[at + 512 : at + 512 + size]
        at += 512 + -(-size // 512) * 512
    raise KeyError(path)


def _junit(passing: int) -> bytes:
    cases = "".join(
        f'<testcase name="test {n}" classname="answer">{"" if n < passing else "<failure/>"}</testcase>'
        for n in range(TESTS)
    )
    return f'<testsuite name="s" tests="{TESTS}">{cases}</testsuite>'.encode()
