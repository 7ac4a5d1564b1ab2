"""Containers that other people start from astra's images, and from images made of those, are theirs."""

from __future__ import annotations

import asyncio
import io
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from sandbox_jobs import tar

from astra_async.images.base_image import build_image
from astra_async.images.build import committed_config
from astra_async.images.warm import warm_image
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import (
    OWNER_LABEL,
    RUN_LABEL,
    container_name,
    owner,
    sweep,
    sweep_own,
)
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

DEAD = f"{owner()}1"  # its pid is in use again, by a process that started later
FORMER = {RUN_LABEL: "", OWNER_LABEL: ""}  # what images of an earlier version carry
TAKEN = {RUN_LABEL: "r1", OWNER_LABEL: DEAD}  # what an image has that somebody made of a test container


async def built_from(engine: Engine, image: str, labels: Mapping[str, str], tag: str) -> str:
    marked = "".join(f' {name}="{text}"' for name, text in labels.items())
    dockerfile = f"FROM {image}\nRUN true\n{'LABEL' + marked if marked else ''}\n"
    return await build_image(
        engine, io.BytesIO(tar({"Dockerfile": dockerfile.encode()})), tag=tag, progress=print
    )


async def created(engine: Engine, image: str, name: str, labels: Mapping[str, str]) -> str:
    return await engine.create({"Image": image, "Cmd": ["sleep", "600"], "Labels": dict(labels)}, name)


async def started(engine: Engine, image: str, name: str | None, labels: Mapping[str, str] = {}) -> str:
    made = await created(engine, image, name or f"somebodys-{secrets.token_hex(6)}", labels)
    await engine.start(made)
    return made


async def running(engine: Engine) -> set[str]:
    return {each["Id"] for each in await engine.containers() if each["State"] == "running"}


@pytest.mark.first
@pytest.mark.docker
@pytest.mark.usefixtures("leaves_no_container")
async def test_foreign_containers_outlive_every_sweep_end_and_kill(image: str) -> None:
    """From our image, from images that people built from it, with all labels that they could inherit."""

    async with await Engine.open() as engine:
        tags = [f"somebodys/{kind}:{secrets.token_hex(4)}" for kind in ("plain", "former", "taken")]
        foreign: list[str] = []
        try:
            for tag, labels in zip(tags, ({}, FORMER, TAKEN), strict=True):
                await built_from(engine, image, labels, tag)
                foreign.append(await started(engine, tag, None))
            foreign += [await started(engine, image, None)]
            foreign += [await started(engine, image, None, labels) for labels in (FORMER, TAKEN)]
            foreign += [await started(engine, image, f"astra-{secrets.token_hex(8)}", TAKEN)]
            # It is not started, because a test in another process may sweep it at any moment.
            ours = await created(engine, image, container_name("r1").replace(owner(), DEAD), TAKEN)
            await _every_end(engine)
            assert set(foreign) <= await running(engine)
            assert ours not in {each["Id"] for each in await engine.containers()}
        finally:
            for each in foreign:
                await engine.remove(each)
            for tag in tags:
                await engine.remove_image(tag)


async def _every_end(engine: Engine) -> None:
    """What sweeps: a run that begins and ends, the process beside a worker that has ended, a killed run's."""
    for run in ("", "r1", "images"):
        await sweep(engine, run)
        await sweep_own(engine, run)
    async with await DockerSandbox.open(run_id="r1", slots=1):
        pass
    program = [sys.executable, "-m", "astra_async.testing.sandbox.sweep"]
    sweeps = [
        await asyncio.create_subprocess_exec(*program, run, stdin=subprocess.DEVNULL) for run in ("", "r1")
    ]
    for each in sweeps:
        await asyncio.wait_for(each.wait(), 600)


@pytest.mark.docker
@pytest.mark.usefixtures("leaves_no_container")
async def test_images_that_are_made_here_carry_no_label_of_ours(image: str) -> None:
    async def labels() -> AsyncIterator[Any]:
        async with await Engine.open() as engine:
            tag = f"astra-test/labels:{secrets.token_hex(4)}"
            job = Job(image=image, archive=tar({"a": b""}), command="true", limits=Limits(timeout_s=600.0))
            try:
                await warm_image(engine, job, tag, progress=print)
                yield ((await engine.image(tag) or {}).get("Config") or {}).get("Labels")
            finally:
                await engine.remove_image(tag)

    assert ([each async for each in labels()]) in ([None], [{}])


def test_labels_of_an_earlier_version_go_no_further() -> None:
    config = {"Labels": {**TAKEN, "maintainer": "somebody"}, "User": "x"}
    assert committed_config(config)["Labels"] == {"maintainer": "somebody"}
    assert committed_config({})["Labels"] == {}
