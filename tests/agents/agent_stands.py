"""A problem made ready, and one sample's calls that the real gateway answers from a script."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scripted import Scripted, answered, calls_of

from astra_async.prepare import Prepared, prepare
from astra_async.types import Problem, Project, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from astra_async.agents.model_calls import AgentCalls
    from astra_async.types import Completion, ModelRequest, Solution
    from astra_async.types.agents import AgentLimits


class OneSample:
    """Calls of one sample; `answered` is set once the model was asked. Each answer takes `think_s`."""

    def __init__(
        self,
        folder: Path,
        *,
        limits: AgentLimits | None = None,
        think_s: float = 0.0,
        answer: Callable[[], Completion] = lambda: answered("yes"),
    ) -> None:
        self.answered = asyncio.Event()
        self._answer = answer
        pool = Scripted(self._said)
        pool.think_s = think_s
        self.calls = calls_of(folder, pool, limits=limits)

    @classmethod
    def of(cls, calls: AgentCalls) -> OneSample:
        """A sample with calls of one's own."""
        sample = cls.__new__(cls)
        sample.calls = calls
        return sample

    def _said(self, number: int, request: ModelRequest) -> Completion:
        assert request.native is not None
        self.answered.set()
        return self._answer()


class OneProject:
    """A store that has one project."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = tuple(ProjectFile(path=path, content=files[path]) for path in sorted(files))

    async def load(self, location: str) -> Project:
        return Project(files=self._files, sha256="0" * 64)

    async def load_reference(self, location: str) -> Solution:
        raise AssertionError(location)


async def problem(image: str, files: Mapping[str, bytes], *, hidden: tuple[str, ...] = ()) -> Prepared:
    """A problem made ready as the program does it."""
    row = Problem(
        id="p", statement="Do it.", project="p", image=image, test_command="true", hidden_paths=hidden
    )
    return await prepare(row, OneProject(files), ["xml"])
