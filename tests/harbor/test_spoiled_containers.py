"""An agent that breaks its own container gets a score of 0, and never a missing sample."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_task_trials import OTHER, REWARD, ROOT, a_task, left_by, opened_places

from astra_async.errors import SandboxError
from astra_async.harbor.container import packed
from astra_async.harbor.environment import ensure_built
from astra_async.harbor.verified import read_verified
from astra_async.types.task_work import Artifact

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.seconds(20)]

FULL = f"sleep 1.5; echo 1 > {REWARD}"
SMALL = replace(ROOT, disk_bytes=4 * 1024**2)
SIGNALS = "for each in HUP INT QUIT USR1 USR2 ALRM TERM; do kill -$each 1; done; sleep 1"
WITHOUT_RM = "rm=$(type -P rm); cp /bin/false $rm"


@pytest.mark.parametrize(
    ("command", "score", "why"),
    [
        (SIGNALS, 1, ""),
        ("rm -rf /logs; touch /logs", 1, ""),
        ("rm -rf /bin/* /usr/bin/*", 0, "executable file not found"),
        (WITHOUT_RM, 0, "does not let /tests, /logs/verifier be removed"),
        ("head -c 8M /dev/zero >big", 0, "more than 4 MB (storage_mb) were written"),
    ],
)
async def test_the_state_in_which_an_agent_leaves_its_container_counts(
    command: str, score: float, why: str
) -> None:
    found = await left_by(command, a_task(FULL, agent=SMALL))
    assert found.score == score
    assert why in found.output


async def test_too_large_artifacts_and_data_in_volumes_are_the_agents_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = functools.partial(packed, most_bytes=4096)
    monkeypatch.setattr("astra_async.harbor.trial.packed", carried)
    artifacts = (Artifact(source="/srv/made"),)
    async with opened_places() as (places, image):
        (tmp_path / "Dockerfile").write_text(f"FROM {image}\nVOLUME /data\n")
        engine, tag = places._containers.engine, "astra/task-test-volume"
        await ensure_built(engine, tmp_path, tag, timeout_s=60, progress=print)
        for command, why in (
            ("head -c 9M /dev/zero >/data/big", "storage_mb"),
            ("head -c 300k /dev/zero >made", "/srv/made"),
        ):
            task = a_task(FULL, agent=SMALL, verifier=ROOT, artifacts=artifacts)
            async with places.open(tag, task, OTHER) as place:
                await place.run(command, {})
                found = read_verified((await place.left()).text)
            assert found.score == 0
            assert why in found.output
        await engine.remove_image(tag)


async def test_a_sample_is_missing_if_a_new_container_of_the_task_fails_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine may be the cause then."""
    async with opened_places() as (places, image), places.open(image, a_task(FULL), OTHER) as place:
        await place.run("rm -rf /bin/* /usr/bin/*", {})

        async def fail(*_: object) -> None:
            raise SandboxError("the engine is in trouble")

        monkeypatch.setattr("astra_async.testing.sandbox.containers.Containers.create_as", fail)
        with pytest.raises(SandboxError, match="in trouble"):
            await place.left()
