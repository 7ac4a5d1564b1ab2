"""Find or make the image of every problem, while tests of problems with an existing image already run.

A problem names a registry image or a set of this package (`astra-set:NAME`). If it names none, an image is
made from its project's dependencies; equal dependency sets share one image.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from astra_async.bundled import image_sets
from astra_async.errors import EngineUnavailable, ImageError, SandboxError
from astra_async.images.build import ensure_image_set, image_tag
from astra_async.images.stacks import detect, project_set, toolchain_set
from astra_async.images.warm import warm_image, warming_job
from astra_async.languages import LANGUAGES
from astra_async.listing import some
from astra_async.tasks import closed_on_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from astra_async.errors import AstraError
    from astra_async.images.failed_images import FailedImages
    from astra_async.images.stacks import Stack
    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types.task_work import Build

    Report = Callable[[str], None]
    Deliver = Callable[[str], Awaitable[None]]
    Make = Callable[["_Maker", Report], Awaitable[object]]

SET_PREFIX = "astra-set:"  # astra-set:NAME is an image set bundled with this package
_PULL_STARTS_S = 60.0
_REMEDY = "name an image with the tests' dependencies in the CSV column `image` or with --image"
_REMEDY_OF_TASKS = (
    "correct environment/Dockerfile (or tests/Dockerfile, for the verifier's image) of the task, or name a"
    " `docker_image` in task.toml"
)
_UNKNOWN = (
    "no image is named, and the project has no file that lists dependencies"
    f" ({', '.join(sign for language in LANGUAGES if language.images for sign in language.images.signs)}):"
    " add a column `image` to the CSV, or --image NAME"
)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Engine and failure record for making images; a toolchain shared by several images is made once."""

    engine: Engine
    failures: FailedImages
    toolchains: dict[str, asyncio.Lock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """An image, the problems that share it, and the function that makes it.

    `tags` are the images built for it, by which failures are recorded; empty if the image is pulled.
    `further` are more images that the problems need. `remedy` is for the message about a failure.
    """

    name: str
    make: Make
    tags: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    remedy: str = _REMEDY
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"problem {some(self.problems, 1)}"

    def recorded_failure(self, failures: FailedImages) -> ImageError | None:
        """Return the recorded failure because of which this image is not tried again, or None."""
        for failure in filter(None, map(failures.of, self.tags)):
            return ImageError(
                f"no image for {self}: {failure.why}. The last try failed at {failure.at}; to try again,"
                f" add --retry-images. Full output: {failure.output}. Remedy: {self.remedy}"
            )
        return None


def recipes(
    prepared: Mapping[str, Prepared], default: str = ""
) -> tuple[list[Recipe], dict[str, AstraError]]:
    """Return the images that the problems need, and the problems that cannot have an image, with reasons.

    Problems share an image if they name the same one, or if their projects need the same dependencies.
    """
    found: dict[tuple[str, ...], Recipe] = {}
    failed: dict[str, AstraError] = {}
    for problem_id, item in prepared.items():
        named = item.problem.image or default
        images = item.task.images if item.task else {}
        try:
            made = _of_task(images) if images else _named(named) if named else _made_for(item)
            found.setdefault((made.name, *made.further), made).problems.append(problem_id)
        except ImageError as error:
            failed[problem_id] = error
    return list(found.values()), failed


class ProblemImages:
    """Images of problems, found or made concurrently.

    Attributes:
        names: the image of each problem that can have one, made or not.
        ready: the image of each problem whose image exists; grows.
        failed: problems that cannot have an image, with the reason; grows.
        pending: problems whose image is not decided yet; shrinks.
        doing: current step of each image being made, with its start on the monotonic clock.
    """

    def __init__(
        self, engine: Engine, failures: FailedImages, say: Report, deliver: Deliver | None = None
    ) -> None:
        self.names: dict[str, str] = {}
        self.ready: dict[str, str] = {}
        self.failed: dict[str, AstraError] = {}
        self.pending: set[str] = set()
        self.doing: dict[str, tuple[str, float]] = {}
        self.to_make = self.made = 0
        self._maker = _Maker(engine, failures)
        self._say = say
        self._deliver = deliver
        self._tasks: list[asyncio.Task[None]] = []
        self._change = asyncio.Event()

    @classmethod
    async def open(
        cls,
        engine: Engine,
        prepared: Mapping[str, Prepared],
        default: str,
        say: Report,
        *,
        failures: FailedImages,
        deliver: Deliver | None = None,
    ) -> ProblemImages:
        """Look up existing images and start to make missing ones; wait only for images that are pulled.

        A new image is ready after `deliver` has copied it to the other places that need it. Problems that
        cannot have an image are reported through `say` at once. Raises EngineUnavailable.
        """
        images = cls(engine, failures, say, deliver)
        wanted, images.failed = await asyncio.to_thread(recipes, prepared, default)
        for problem_id, error in images.failed.items():
            say(f"problem {problem_id}: {error}")
        await images.begin(wanted)
        return images

    async def begin(self, wanted: Sequence[Recipe]) -> None:
        """Sort images into existing, known to fail and missing; start to make the missing ones."""
        absent = []
        for recipe in wanted:
            self.names |= dict.fromkeys(recipe.problems, recipe.name)
            if all([await self._maker.engine.image(each) for each in (recipe.name, *recipe.further)]):
                self.ready |= dict.fromkeys(recipe.problems, recipe.name)
            elif error := recipe.recorded_failure(self._maker.failures):
                self._say(str(error))
                self.failed |= dict.fromkeys(recipe.problems, error)
            else:
                absent.append(recipe)
        cores = os.cpu_count() or 1
        # While tests run, builds use half of the cores, because starved tests would hit their time limit.
        places = asyncio.Semaphore(max(1, cores // 2) if self.ready else cores)
        self.to_make = len(absent)
        self.pending = {problem for recipe in absent for problem in recipe.problems}
        self._tasks = [asyncio.create_task(self._make_image(recipe, places)) for recipe in absent]
        # A run records the content hash of a pulled image, so wait for the pulls.
        pulls = [task for task, recipe in zip(self._tasks, absent, strict=True) if not recipe.tags]
        async with closed_on_error(self.close):
            await asyncio.gather(*pulls)
            self.raise_if_engine_is_gone()

    def raise_if_engine_is_gone(self) -> None:
        """Raise EngineUnavailable if an image failed with it, because no image can be used then."""
        for error in self.failed.values():
            if isinstance(error, EngineUnavailable):
                raise error

    async def of(self, problem_id: str) -> str:
        """Wait for the problem's image and return its name. Raises ImageError or EngineUnavailable."""
        while problem_id in self.pending:
            await self.changed()
        if error := self.failed.get(problem_id):
            raise error
        return self.ready[problem_id]

    async def all_decided(self) -> None:
        """Wait until every image is ready or has failed. Raises EngineUnavailable."""
        while self.pending:
            await self.changed()
        self.raise_if_engine_is_gone()

    async def changed(self) -> None:
        """Wait until an image is ready or has failed; return at once if no image is being made."""
        if any(not task.done() for task in self._tasks):
            await self._change.wait()

    def stop(self) -> None:
        """Cancel all work; partial images are removed."""
        for task in self._tasks:
            task.cancel()
        self._notify()

    async def close(self) -> None:
        """Cancel all work and wait until it has ended."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _make_image(self, recipe: Recipe, places: asyncio.Semaphore) -> None:
        """Make one image.

        Invariant: its problems are pending until ready or failed, unless it was cancelled.
        """
        async with places:
            self.doing[recipe.name] = (recipe.name, time.monotonic())
            try:
                await recipe.make(self._maker, partial(self._note, recipe))
                if self._deliver:
                    await self._deliver(recipe.name)
                self.ready |= dict.fromkeys(recipe.problems, recipe.name)
            except Exception as error:  # noqa: BLE001 - an unexpected error must not stop other problems
                kept = error if isinstance(error, EngineUnavailable) else self._failure(recipe, error)
                self.failed |= dict.fromkeys(recipe.problems, kept)
            finally:
                self.doing.pop(recipe.name, None)
        self.made += 1
        self.pending -= set(recipe.problems)
        self._notify()

    def _note(self, recipe: Recipe, text: str) -> None:
        # Two recipes of tasks may have the same first image, and the other one may have ended.
        began = self.doing.get(recipe.name, ("", time.monotonic()))[1]
        self.doing[recipe.name] = (text, began)
        self._say(text)

    def _failure(self, recipe: Recipe, error: Exception) -> ImageError:
        """Report everything known about the failure, and return it as the one-line error to record."""
        known = isinstance(error, SandboxError)
        why, _, lines = str(error if known else f"{type(error).__name__}: {error}").partition("\n")
        kept = recipe.recorded_failure(self._maker.failures)
        short = str(kept) if kept else f"no image for {recipe}: {why.rstrip(':')}. Remedy: {recipe.remedy}"
        self._say(f"{short}\n{lines}".rstrip())
        return ImageError(short)

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


def _named(named: str) -> Recipe:
    """Return the recipe of a registry image or a bundled set; raises ImageError for an unknown set."""
    if not named.startswith(SET_PREFIX):
        return Recipe(name=named, make=partial(_make_all, {named: None}))
    folder = image_sets().get(named.removeprefix(SET_PREFIX))
    if folder is None:
        raise ImageError(f"image set {named} is unknown; known sets: {', '.join(image_sets())}")
    tag = image_tag(folder)
    return Recipe(name=tag, make=partial(_ensure, folder), tags=(tag,))


def _of_task(images: Mapping[str, Build | None]) -> Recipe:
    """Return the recipe of a task's images: each is pulled or built, unless it exists."""
    name, *further = images
    tags = (name,) if images[name] else ()
    make = partial(_make_all, images)
    return Recipe(name=name, make=make, tags=tags, further=tuple(further), remedy=_REMEDY_OF_TASKS)


async def _make_all(images: Mapping[str, Build | None], maker: _Maker, say: Report) -> None:
    for name, build in images.items():
        if build:
            await build(maker.engine, progress=say)
        elif await maker.engine.image(name) is None:
            say(f"Pulling {name}")
            try:
                await maker.engine.pull(name, starts_within_s=_PULL_STARTS_S)
            except EngineUnavailable:
                raise
            except SandboxError as error:
                raise ImageError(f"image {name}: {error}") from error


async def _ensure(folder: Path, maker: _Maker, say: Report, base: str = "") -> str:
    return await ensure_image_set(maker.engine, folder, progress=say, base=base, failures=maker.failures)


def _made_for(item: Prepared) -> Recipe:
    """Return the recipe for a project's dependencies; raises ImageError if none were detected."""
    if (stack := detect(item.project, item.problem)) is None:
        raise ImageError(_UNKNOWN)
    with _written_sets(stack) as (below, own):
        cold, toolchain = image_tag(own), image_tag(below)
    return Recipe(
        name=_warm(cold) if stack.warms else cold,
        make=partial(_make_stack, stack, item),
        tags=(cold, toolchain),
    )


async def _make_stack(stack: Stack, first: Prepared, maker: _Maker, say: Report) -> None:
    """Make the stack's image, after the image of its toolchain."""
    with _written_sets(stack) as (below, own):
        cold = image_tag(own)
        if await maker.engine.image(cold) is None:
            for note in stack.notes:
                say(f"problem {first.problem.id}: {note}")
            async with maker.toolchains.setdefault(below.name, asyncio.Lock()):
                base = await _ensure(below, maker, say)
            await _ensure(own, maker, say, base)
    if stack.warms:
        say(f"Running the untouched tests of {first.problem.id} once to fill caches")
        await warm_image(maker.engine, warming_job(first, cold), _warm(cold), progress=say)


def _warm(cold: str) -> str:
    return f"{cold}-ready"


@contextmanager
def _written_sets(stack: Stack) -> Iterator[tuple[Path, Path]]:
    """Write the build folders of the toolchain image and of the stack image, and yield their paths."""
    with TemporaryDirectory(prefix="astra-stack-") as folder:
        below = _written(Path(folder), *toolchain_set(stack.toolchain))
        yield below, _written(Path(folder), *project_set(stack, image_tag(below)))


def _written(parent: Path, name: str, files: Mapping[str, bytes]) -> Path:
    folder = parent / name
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if content.startswith(b"#!") else 0o644)
    return folder
