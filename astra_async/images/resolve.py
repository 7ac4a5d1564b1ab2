"""The image of every problem: there already, or made while the problems that have theirs are tested.

A problem names an image of a registry, a set of this package (`astra-set:NAME`), or none: then one is made
from what its project needs, one for each dependency set.
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from astra_async.errors import AstraError
    from astra_async.images.failed_images import FailedImages
    from astra_async.images.stacks import Stack
    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.engine import Engine

    Say = Callable[[str], None]
    Deliver = Callable[[str], Awaitable[None]]
    Make = Callable[["_Maker", Say], Awaitable[object]]

SET_PREFIX = "astra-set:"  # an image of this package, built here: astra-set:NAME
_PULL_STARTS_S = 60.0
_REMEDY = "name an image that has what the tests need, in the CSV's column `image` or with --image"
_UNKNOWN = (
    "no image is named, and nothing in the project says what to install"
    f" ({', '.join(sign for language in LANGUAGES if language.images for sign in language.images.signs)}):"
    " add a column `image` to the CSV, or --image NAME"
)


@dataclass(frozen=True, slots=True)
class _Maker:
    """What images are made with; a toolchain that several need is made once."""

    engine: Engine
    failures: FailedImages
    toolchains: dict[str, asyncio.Lock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """An image and the problems that share it: its name once it is there, and how it comes there.

    `tags` are the images that are built for it, by which failures are remembered; none where it is pulled.
    """

    name: str
    make: Make
    tags: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"problem {some(self.problems, 1)}"

    def remembered(self, failures: FailedImages) -> ImageError | None:
        """Why it is not tried again."""
        for failure in filter(None, map(failures.of, self.tags)):
            return ImageError(
                f"no image for {self}: {failure.why}. It failed at {failure.at} and is not tried again"
                f" without --retry-images. The whole output: {failure.output}. Remedy: {_REMEDY}"
            )
        return None


def recipes(
    prepared: Mapping[str, Prepared], default: str = ""
) -> tuple[list[Recipe], dict[str, AstraError]]:
    """The images that the problems need, by what they name, else by their projects; and who can have none."""
    found: dict[object, Recipe] = {}
    failed: dict[str, AstraError] = {}
    for problem_id, item in prepared.items():
        named = item.problem.image or default
        build = item.task.build if item.task else None
        stack = None if named or build else detect(item.project, item.problem)
        key: object = named or (_identity(stack) if stack else None)
        try:
            if item.task and build:
                key = item.task.image
                found.setdefault(key, Recipe(name=key, make=partial(_build, build), tags=(key,)))
            elif key not in found:
                found[key] = _named(named) if named else _made_for(item, stack)
            found[key].problems.append(problem_id)
        except ImageError as error:
            failed[problem_id] = error
    return list(found.values()), failed


async def _nowhere(image: str) -> None:
    """Images are needed where they are made."""


class ProblemImages:
    """The images of problems while they are looked for and made, side by side.

    Attributes:
        names: the image of each problem that can have one, there or not yet.
        ready: the same for those that are there; it grows.
        failed: problems that cannot have one, with the reason; it grows.
        pending: problems of which this is not known yet; it shrinks.
        doing: what is done for the images being made, by name, with its beginning on the monotonic clock.
    """

    def __init__(self, engine: Engine, failures: FailedImages, say: Say, deliver: Deliver = _nowhere) -> None:
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
        say: Say,
        *,
        failures: FailedImages,
        deliver: Deliver = _nowhere,
    ) -> ProblemImages:
        """Look what is there, and begin to make the rest; images that are only pulled are awaited.

        One that comes is ready once `deliver` has brought it wherever else it is needed. What cannot be made
        as far as is known is told at once. Raises EngineUnavailable.
        """
        images = cls(engine, failures, say, deliver)
        wanted, images.failed = await asyncio.to_thread(recipes, prepared, default)
        for problem_id, error in images.failed.items():
            say(f"problem {problem_id}: {error}")
        await images.begin(wanted)
        return images

    async def begin(self, wanted: Sequence[Recipe]) -> None:
        """Sort what is there, what is known to fail and what is to be made; begin the last."""
        absent = []
        for recipe in wanted:
            self.names |= dict.fromkeys(recipe.problems, recipe.name)
            if await self._maker.engine.image(recipe.name):
                self.ready |= dict.fromkeys(recipe.problems, recipe.name)
            elif error := recipe.remembered(self._maker.failures):
                self._say(str(error))
                self.failed |= dict.fromkeys(recipe.problems, error)
            else:
                absent.append(recipe)
        cores = os.cpu_count() or 1
        # Beside tests it takes half of the machine: a run of tests that starves says nothing.
        places = asyncio.Semaphore(max(1, cores // 2) if self.ready else cores)
        pulls = []
        self.to_make = len(absent)
        for recipe in absent:
            self.pending |= set(recipe.problems)
            task = asyncio.create_task(self._bring(recipe, places))
            self._tasks.append(task)
            if not recipe.tags:
                pulls.append(task)  # what a run records of them is their content
        try:
            await asyncio.gather(*pulls)
            self.raise_if_engine_is_gone()
        except BaseException:
            await self.close()
            raise

    def raise_if_engine_is_gone(self) -> None:
        """Raises EngineUnavailable: no image of any problem can be made or used then."""
        for error in self.failed.values():
            if isinstance(error, EngineUnavailable):
                raise error

    async def of(self, problem_id: str) -> str:
        """The problem's image once it is there. Raises ImageError, or EngineUnavailable."""
        while problem_id in self.pending:
            await self.changed()
        if error := self.failed.get(problem_id):
            raise error
        return self.ready[problem_id]

    async def all_decided(self) -> None:
        """Wait until every image is there or cannot be. Raises EngineUnavailable."""
        while self.pending:
            await self.changed()
        self.raise_if_engine_is_gone()

    async def changed(self) -> None:
        """Wait until more is known, or nothing more will be."""
        if any(not task.done() for task in self._tasks):
            await self._change.wait()

    def stop(self) -> None:
        """Make nothing more; what is half made is removed."""
        for task in self._tasks:
            task.cancel()
        self._tell_change()

    async def close(self) -> None:
        """Stop, and wait until nothing is being made."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _bring(self, recipe: Recipe, places: asyncio.Semaphore) -> None:
        """Invariant: its problems are pending until they are ready or failed, unless it was stopped."""
        outcome: AstraError | None = None
        async with places:
            try:
                self.doing[recipe.name] = (recipe.name, time.monotonic())
                await recipe.make(self._maker, partial(self._note, recipe))
                await self._deliver(recipe.name)
            except EngineUnavailable as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - the boundary: the other problems go on
                outcome = self._failure(recipe, error)
            finally:
                self.doing.pop(recipe.name, None)
        self.made += 1
        if outcome is None:
            self.ready |= dict.fromkeys(recipe.problems, recipe.name)
        else:
            self.failed |= dict.fromkeys(recipe.problems, outcome)
        self.pending -= set(recipe.problems)
        self._tell_change()

    def _note(self, recipe: Recipe, text: str) -> None:
        self.doing[recipe.name] = (text, self.doing[recipe.name][1])
        self._say(text)

    def _failure(self, recipe: Recipe, error: Exception) -> ImageError:
        """Says all that is known, and returns the one line that is recorded."""
        known = isinstance(error, SandboxError)
        why, _, lines = str(error if known else f"{type(error).__name__}: {error}").partition("\n")
        kept = recipe.remembered(self._maker.failures)
        short = str(kept) if kept else f"no image for {recipe}: {why.rstrip(':')}. Remedy: {_REMEDY}"
        self._say(f"{short}\n{lines}".rstrip())
        return ImageError(short)

    def _tell_change(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


def _named(named: str) -> Recipe:
    """An image of a registry, or a set of this package. Raises ImageError for a set that is unknown."""
    if not named.startswith(SET_PREFIX):
        return Recipe(name=named, make=partial(_pull, named))
    folder = image_sets().get(named.removeprefix(SET_PREFIX))
    if folder is None:
        raise ImageError(f"image set {named} is unknown; there are {', '.join(image_sets())}")
    tag = image_tag(folder)
    return Recipe(name=tag, make=partial(_ensure, folder), tags=(tag,))


async def _build(build: Callable[..., Awaitable[None]], maker: _Maker, say: Say) -> None:
    await build(maker.engine, progress=say)


async def _pull(named: str, maker: _Maker, say: Say) -> None:
    say(f"Pulling {named}")
    try:
        await maker.engine.pull(named, starts_within_s=_PULL_STARTS_S)
    except EngineUnavailable:
        raise
    except SandboxError as error:
        raise ImageError(f"image {named}: {error}") from error


async def _ensure(folder: Path, maker: _Maker, say: Say, base: str = "") -> str:
    return await ensure_image_set(maker.engine, folder, progress=say, base=base, failures=maker.failures)


def _made_for(item: Prepared, stack: Stack | None) -> Recipe:
    """From the project's dependencies. Raises ImageError where nothing tells them."""
    if stack is None:
        raise ImageError(_UNKNOWN)
    with _written_sets(stack) as (below, own):
        cold, toolchain = image_tag(own), image_tag(below)
    return Recipe(
        name=_warm(cold) if stack.warms else cold,
        make=partial(_make_stack, stack, item),
        tags=(cold, toolchain),
    )


async def _make_stack(stack: Stack, first: Prepared, maker: _Maker, say: Say) -> None:
    """The stack's image, and below it that of its toolchain."""
    with _written_sets(stack) as (below, own):
        cold = image_tag(own)
        if await maker.engine.image(cold) is None:
            for note in stack.notes:
                say(f"problem {first.problem.id}: {note}")
            async with maker.toolchains.setdefault(below.name, asyncio.Lock()):
                base = await _ensure(below, maker, say)
            await _ensure(own, maker, say, base)
    if stack.warms:
        say(f"Running the untouched tests of {first.problem.id} once, for their caches")
        await warm_image(maker.engine, warming_job(first, cold), _warm(cold), progress=say)


def _warm(cold: str) -> str:
    return f"{cold}-ready"


def _identity(stack: Stack) -> object:
    """What two equal dependency sets have in common: the files of both image sets."""
    sets = (toolchain_set(stack.toolchain), project_set(stack, ""))
    return tuple((name, tuple(sorted(files.items()))) for name, files in sets)


@contextmanager
def _written_sets(stack: Stack) -> Iterator[tuple[Path, Path]]:
    """The folders of the toolchain's image set and of the stack's own."""
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
