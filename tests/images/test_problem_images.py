"""Images that are made while a run goes on, and those that are known to fail; the engine alone is a fake."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from astra_async.errors import EngineUnavailable, ImageError
from astra_async.images.build import ensure_image_set, image_tag
from astra_async.images.failed_images import FailedImages
from astra_async.images.resolve import ProblemImages, Recipe, recipes
from astra_async.prepare import prepare_all
from astra_async.running.progress import activities
from fakes import CountingSandbox, MemorySource, ScriptedPool, a_problem, a_project, completion, xml_answer
from in_memory import run_in_memory
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from astra_async.running.runner import Runner
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Completion, ModelRequest

THERE, SLOW, BROKEN = "there", "slow", "broken"


class SomeImages:
    """An engine that has some images, and whose builder fails."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.builds = 0

    async def image(self, name: str) -> dict[str, Any] | None:
        return {"Id": name, "Config": {}} if name in self.names else None


def recipe(name: str, make: Callable[[], Awaitable[None]]) -> Recipe:
    async def made(*_: object) -> None:
        await make()

    return Recipe(name=name, make=made, tags=(name,), problems=[f"p-{name}"])


async def begun(folder: Path, engine: SomeImages, wanted: Sequence[Recipe], said: list[str]) -> ProblemImages:
    images = ProblemImages(cast("Engine", engine), FailedImages(folder), said.append)
    await images.begin(wanted)
    return images


def scripted() -> ScriptedPool:
    return ScriptedPool(lambda _: completion(xml_answer(4)))


def recorded(path: Path) -> list[str]:
    return [orjson.loads(line)["problem_id"] for line in (path / "results.jsonl").read_bytes().splitlines()]


async def test_problems_whose_image_is_there_are_tested_while_others_are_made(tmp_path: Path) -> None:
    doing: list[str] = []
    all_of_the_other = asyncio.Event()

    def answered(_: ModelRequest) -> Completion:
        if len(pool.asked) == 4:
            all_of_the_other.set()
        return completion(xml_answer(4))

    pool = ScriptedPool(answered)

    said: list[str] = []

    async def slow() -> None:
        await all_of_the_other.wait()

    async def fails() -> None:
        raise ImageError("The dependencies cannot be installed (exit code 1):\nline after line")

    wanted = (recipe(SLOW, slow), recipe(BROKEN, fails), recipe(THERE, slow))
    images = await begun(tmp_path / "failed", SomeImages(THERE), wanted, said)
    names = [f"p-{each.name}" for each in wanted]

    def opened(runner: Runner) -> None:
        doing.extend(activities(runner))

    runner = await run_in_memory(
        tmp_path,
        {"m": pool},
        CountingSandbox(),
        problem_ids=names,
        samples=4,
        making=images,
        on_open=opened,
    )
    await images.close()
    assert recorded(tmp_path) == ["p-there"] * 4 + ["p-slow"] * 4
    assert not any("p-broken" in key for key in pool.asked), "no call is paid for what cannot be tested"
    assert runner.tally.missing.total() == 4
    events = [orjson.loads(line) for line in (tmp_path / "events.jsonl").read_bytes().splitlines()]
    (reason,) = {event["detail"] for event in events if event.get("problem_id") == "p-broken"}
    assert "cannot be installed" in reason
    assert "line after line" not in reason
    assert sum("line after line" in text for text in said) == 1, "the failure's text is told once"
    assert doing[0].startswith("images: ")
    assert "2 problems waiting" in doing[0]


async def test_a_stop_waits_for_no_image(tmp_path: Path) -> None:
    async def go() -> None:
        forever = asyncio.Event()
        images = await begun(
            tmp_path / "failed", SomeImages(), [recipe(SLOW, lambda: cast("Any", forever.wait()))], []
        )

        def opened(runner: Runner) -> None:
            asyncio.get_running_loop().call_later(0.05, runner.stop)

        runner = await run_in_memory(
            tmp_path,
            {"m": scripted()},
            CountingSandbox(),
            problem_ids=["p-slow"],
            samples=2,
            making=images,
            on_open=opened,
        )
        await images.close()
        assert runner.tally.missing.total() == 0

    await asyncio.wait_for(go(), 60)


async def test_an_engine_that_goes_away_while_images_are_made_ends_the_run(tmp_path: Path) -> None:
    async def go() -> None:
        async def gone() -> None:
            raise EngineUnavailable("Docker does not answer")

        images = await begun(tmp_path / "failed", SomeImages(), [recipe(SLOW, gone)], [])
        await run_in_memory(
            tmp_path,
            {"m": scripted()},
            CountingSandbox(),
            problem_ids=["p-slow"],
            samples=2,
            making=images,
        )

    with pytest.raises(EngineUnavailable):
        (await go())


class Refusing(SomeImages):
    """Its builder fails at the first step."""

    async def build(self, *_: object, **__: object) -> Any:
        self.builds += 1
        yield {"stream": "Step 1/2 : RUN apt-get install nothing"}
        yield {"stream": "E: Unable to locate package nothing"}


def image_set(folder: Path, lines: str = "FROM scratch\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(lines)
    return folder


def test_a_failed_image_is_remembered_by_its_inputs_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    engine, cache = Refusing("base"), tmp_path / "failed"

    def tried(folder: Path, *, retry: bool = False) -> ImageError:
        made = ensure_image_set(
            cast("Engine", engine),
            folder,
            progress=lambda _: None,
            base="base",
            failures=FailedImages(cache, retry=retry),
        )
        with pytest.raises(ImageError) as raised:
            asyncio.run(made)
        return raised.value

    folder = image_set(tmp_path / "tools")
    tried(folder)
    assert engine.builds == 1
    again = tried(folder)
    assert engine.builds == 1
    assert "cannot be built" in str(again)
    tried(folder, retry=True)
    assert engine.builds == 2
    tried(image_set(folder, "FROM scratch\nRUN true\n"))
    assert engine.builds == 3, "other inputs are another image"


async def test_what_is_remembered_is_told_with_its_remedy_and_nothing_is_made(tmp_path: Path) -> None:

    async def never() -> None:
        raise AssertionError

    said: list[str] = []
    failures = FailedImages(tmp_path)
    failures.keep(BROKEN, ImageError("cannot be installed:\nbecause", output="much\n"))
    images = await begun(tmp_path, SomeImages(), [recipe(BROKEN, never)], said)
    assert not images.pending
    (text,) = said
    assert "--retry-images" in text
    assert str(images.failed["p-broken"]) == text
    known = failures.of(BROKEN)
    assert known
    assert (tmp_path / "failed_images" / "broken.txt").read_text() == "much\n"


def test_a_broken_or_foreign_memory_is_no_reason_to_fail(tmp_path: Path) -> None:
    failures = FailedImages(tmp_path)
    (tmp_path / "failed_images").mkdir()
    for content in (b"", b"{}", b"[1]", b"\xff", b'{"at": 1, "why": 2, "output": 3, "more": 4}'):
        (tmp_path / "failed_images" / "tag.json").write_bytes(content)
        assert failures.of("tag") is None


async def test_an_image_is_ready_once_it_is_wherever_it_is_needed(tmp_path: Path) -> None:
    async def go() -> None:
        arrived, seen = asyncio.Event(), list[str]()

        async def made() -> None:
            """There at once."""

        async def deliver(image: str) -> None:
            seen.append(image)
            await arrived.wait()
            if image == BROKEN:
                raise ImageError("no node takes it")

        engine = cast("Engine", SomeImages(THERE))
        images = ProblemImages(engine, FailedImages(tmp_path), lambda _: None, deliver)
        await images.begin([recipe(name, made) for name in (THERE, SLOW, BROKEN)])
        async with asyncio.timeout(PATIENCE_S):
            while not seen:
                await asyncio.sleep(0)
            assert images.ready == {"p-there": "there"}, "which was not brought by this"
            arrived.set()
            await images.all_decided()
        assert images.ready == {"p-there": "there", "p-slow": "slow"}
        assert "no node takes it" in str(images.failed["p-broken"])

    await go()


async def test_the_name_of_an_image_is_known_before_it_is_there(tmp_path: Path) -> None:
    source = MemorySource({"p": a_project()})
    prepared, _ = await prepare_all([a_problem("p", image="astra-set:react")], source, ("xml",))
    (found,), failed = recipes(prepared)
    assert not failed
    assert found.name == found.tags[0]
    assert found.name.startswith("astra/react:")
    unknown, _ = await prepare_all([a_problem("p", image="astra-set:none")], source, ("xml",))
    assert "unknown" in str(recipes(unknown)[1]["p"])
    assert image_tag(image_set(tmp_path / "tools")).startswith("astra/tools:")


def test_a_step_is_shown_after_another_recipe_with_the_same_first_image_has_ended(tmp_path: Path) -> None:
    """Tasks may share the agent's image and have different images of their verifiers."""
    said: list[str] = []
    images = ProblemImages(cast("Engine", None), FailedImages(tmp_path), said.append)
    recipe = Recipe(name="shared:1", make=cast("Any", None), further=("verifier:1",))
    images._note(recipe, "Building verifier:1")
    assert images.doing["shared:1"][0] == said[0] == "Building verifier:1"
