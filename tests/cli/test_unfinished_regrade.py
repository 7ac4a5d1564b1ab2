"""Which directory `astra regrade` without --out goes on in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from astra_async.cli.regrade import _own_name
from astra_async.running.wiring import data_config, recorded_call
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("begun", "name"),
    [
        ({}, "run-regrade-1"),
        ({"keep_output": None}, "run-regrade-1"),  # begun by a version that did not know the option
        ({"keep_output": "all"}, "run-regrade-2"),
        ({"canary": "off"}, "run-regrade-2"),
    ],
)
def test_an_unfinished_regrade_of_the_same_call_goes_on(
    tmp_path: Path, begun: dict[str, str | None], name: str
) -> None:
    parent = write_run(tmp_path / "run", Made(problems=made_problems(1), samples=1))
    config = data_config({"problems": "bundled"}, None)
    call = {
        key: value for key, value in (recorded_call(config) | begun).items() if begun.get(key, "") is not None
    }
    unfinished = tmp_path / "run-regrade-1"
    unfinished.mkdir()
    named = {"directory": str(parent.resolve()), "run_id": "made"}
    run = {"schema": 1, "run_id": "begun", "parent": named, "call": call}
    (unfinished / "run.json").write_bytes(orjson.dumps(run))
    assert _own_name(parent, {"run_id": "made"}, config).name == name
