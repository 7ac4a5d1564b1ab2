"""Images for problems that name none: made from what their projects need, one for each dependency set."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

from astra_async.errors import EngineUnavailable, ImageError, SandboxError
from astra_async.images.stacks import detect, project_set, toolchain_set
from astra_async.languages import LANGUAGES
from astra_async.overlay import project_archive
from astra_async.testing.verdict import limits_for
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from astra_async.images.stacks import Stack
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.sandbox.engine import Engine

_WARM_TIMEOUT_S = 1800.0  # Angular's first compilation takes minutes, and happens once
_REMEDY = "\nRemedy: name an image that has what the tests need, in the CSV's column `image` or with --image."
_UNKNOWN = (
    "no image is named, and nothing in the project says what to install"
    f" ({', '.join(sign for language in LANGUAGES if language.images for sign in language.images.signs)}):"
    " add a column `image` to the CSV, or --image NAME"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """A dependency set and the problems that share it."""

    stack: Stack
    problems: list[Prepared] = field(default_factory=list)

    def __str__(self) -> str:
        first, *others = (item.problem.id for item in self.problems)
        return f"problem {first}" + (f" and {len(others)} more" if others else "")


async def stack_images(
    engine: Engine,
    prepared: Iterable[Prepared],
    progress: Callable[[str], None],
    *,
    outputs: Path | None = None,
) -> dict[str, str | ImageError]:
    """The image of each problem, made where it is not there yet; or why there is none.

    As many are made side by side as there are cores; a failure is told when it happens, once for all problems
    that share it. The whole output of a failed installation is left in `outputs`.
    """
    images: dict[str, str | ImageError] = {}
    known: dict[object, _Set] = {}
    for item in prepared:
        stack = detect(item.project, item.problem)
        if stack is None:
            images[item.problem.id] = ImageError(_UNKNOWN)
            continue
        known.setdefault(_identity(stack), _Set(stack=stack)).problems.append(item)
    made = _Making(engine, progress, outputs)
    async with asyncio.TaskGroup() as group:
        tasks = [(each, group.create_task(made.image(each))) for each in known.values()]
    for each, task in tasks:
        images |= dict.fromkeys((item.problem.id for item in each.problems), task.result())
    return images


class _Making:
    """Makes images side by side; a toolchain that several need is made once."""

    def __init__(self, engine: Engine, progress: Callable[[str], None], outputs: Path | None) -> None:
        self._engine = engine
        self._progress = progress
        self._outputs = outputs
        self._places = asyncio.Semaphore(os.cpu_count() or 1)
        self._toolchains: dict[str, asyncio.Lock] = {}

    async def image(self, each: _Set) -> str | ImageError:
        """The set's image, or why there is none. Raises EngineUnavailable."""
        async with self._places:
            try:
                return await self._ensure(each)
            except EngineUnavailable:
                raise
            except SandboxError as error:
                said = f"no image for {each}: {error}{_REMEDY}"
                if self._outputs is not None and isinstance(error, ImageError) and error.output:
                    kept = await asyncio.to_thread(_keep, self._outputs, each, error.output)
                    said += f"\nThe whole output: {kept}"
                self._progress(said)
                return ImageError(said)

    async def _ensure(self, each: _Set) -> str:
        """The set's image, and below it that of its toolchain."""
        from astra_async.images.build import ensure_image_set, image_tag
        from astra_async.images.warm import warm_image

        engine, first = self._engine, each.problems[0]
        with TemporaryDirectory(prefix="astra-stack-") as folder:
            below = _written(Path(folder), *toolchain_set(each.stack.toolchain))
            own = _written(Path(folder), *project_set(each.stack, image_tag(below)))
            cold = image_tag(own)
            warm = f"{cold}-warm"
            if await engine.image(warm):
                return warm
            if await engine.image(cold) is None:
                for note in each.stack.notes:
                    self._progress(f"{each}: {note}")
                async with self._toolchains.setdefault(below.name, asyncio.Lock()):
                    toolchain = await ensure_image_set(engine, below, progress=self._progress)
                await ensure_image_set(engine, own, progress=self._progress, base=toolchain)
        if not each.stack.warms:
            return cold
        self._progress(f"Running the untouched tests of {first.problem.id} once, for their caches")
        return await warm_image(engine, _job(first, cold), warm, progress=self._progress)


def _keep(folder: Path, each: _Set, output: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{quote(each.problems[0].problem.id, safe='')}.install.txt"
    path.write_text(output, encoding="utf-8", errors="replace")
    return path


def _job(item: Prepared, image: str) -> Job:
    return Job(
        image=image,
        archive=project_archive(item.project, {}),
        command=item.problem.test_command,
        environment=item.environment,
        limits=replace(limits_for(item, Limits()), timeout_s=_WARM_TIMEOUT_S),
        label=item.problem.id,
    )


def _identity(stack: Stack) -> object:
    """What two equal dependency sets have in common: the files of both image sets."""
    sets = (toolchain_set(stack.toolchain), project_set(stack, ""))
    return tuple((name, tuple(sorted(files.items()))) for name, files in sets)


def _written(parent: Path, name: str, files: Mapping[str, bytes]) -> Path:
    folder = parent / name
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if content.startswith(b"#!") else 0o644)
    return folder
