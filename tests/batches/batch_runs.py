"""A simulated provider in a thread, and `astra run --batch` against it as a user runs it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from astra_async.simulate.server import SimulatedServer
from astra_async.types.simulation import SimulationSettings
from command_server import astra
from s3_server import s3_server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

KILLER = Path(__file__).with_name("killed_at.py")
LOG, ANSWERS = '{"schema":1,"kind":', '{"schema":1,"model":'
PROBLEMS = ("product-api", "notes-search")
SAMPLES = 4
PLANNED = len(PROBLEMS) * SAMPLES
# spec -> what follows the server's root in its address
MODELS = {
    "openai/steady": "/v1",
    "openai-responses/steady": "/v1",
    "azure/steady": "",
    "anthropic/steady": "",
    "gemini/steady": "",
    "bedrock/anthropic.steady": "",
}
BUCKET = "batches"
AWS = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
ENVIRON = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


_KEPT_OPEN = ExitStack()


@cache
def s3_endpoint() -> str:
    """A real S3 (moto's), started when it is first needed."""
    import boto3  # type: ignore[import-untyped]

    url = _KEPT_OPEN.enter_context(s3_server())
    client = boto3.client("s3", endpoint_url=url, **AWS)
    client.create_bucket(Bucket=BUCKET)
    client.close()
    return url


def simulated_for(spec: str, **settings: Any) -> Simulated:
    """A simulated provider with whatever the batches of a model need."""
    more = {"batch_s3_endpoint": s3_endpoint()} if spec.startswith("bedrock") else {}
    return Simulated(**more, **settings)


class Simulated:
    """A simulated provider; a context manager."""

    def __init__(self, **settings: Any) -> None:
        self.settings = SimulationSettings(
            **{"batch_delay_s": 1.0, "speed": 0.0, "fault_rate": 0.0, **settings}
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self.server = self._wait(SimulatedServer.start(settings=self.settings))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hurry(self) -> None:
        """From now on a batch takes a second from when it was created."""
        self.server.batches._settings = replace(self.settings, batch_delay_s=1.0)

    @property
    def processed(self) -> int:
        """Requests that were paid for."""
        return int(self.server.batches.processed)

    @property
    def created(self) -> int:
        """Batches that were ever created."""
        return len(self.server.batches.batches)

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@dataclass(kw_only=True)
class BatchRun:
    """One run directory, and the command that brings it about."""

    folder: Path
    server: Simulated
    spec: str = "openai/steady"
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Sequence[str] = ("--batch", "--generate-only")
    name: str = "run"

    @property
    def out(self) -> Path:
        return self.folder / self.name

    @property
    def words(self) -> list[str]:
        model = {
            "spec": self.spec,
            "base_url": self.server.server.root_url + MODELS[self.spec],
            "batch_settled_s": 1.0,
            **self.settings,
        }
        own = self.spec.startswith("bedrock")
        if own:
            model |= {"batch_s3": f"s3://{BUCKET}/{self.name}", "batch_role": "arn:aws:iam::1:role/batches"}
        toml = "[[models]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in model.items())
        toml += f"[s3]\nendpoint_url = {json.dumps(s3_endpoint())}\n" if own else ""
        config = self.folder / f"{self.name}.toml"
        config.write_text(toml)
        only = [word for name in PROBLEMS for word in ("--only", name)]
        return [
            *("run", "--problems", "bundled", *only, "--samples", str(SAMPLES)),
            *("--config", str(config), "--out", str(self.out), *self.options),
        ]

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, **ENVIRON, "ASTRA_CACHE": str(self.folder / "cache")}

    def start(self, *killed: str) -> subprocess.Popen[str]:
        begin = [str(KILLER), *killed] if killed else ["-m", "astra_async"]
        return subprocess.Popen(
            [sys.executable, *begin, *self.words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
        )

    def finish(self, code: int = 0) -> str:
        done = astra(*self.words, env=self.environ)
        assert done.returncode == code, done.stderr
        return done.stderr

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.out / name
        return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def answers(self) -> Counter[tuple[str, str]]:
        """What was answered to which problem, however the samples are numbered."""
        return Counter((line["problem_id"], line["text"]) for line in self.lines("completions.jsonl"))

    def keys(self) -> list[tuple[str, int]]:
        return [(line["problem_id"], line["sample"]) for line in self.lines("completions.jsonl")]


def online_answers(folder: Path, spec: str) -> Counter[tuple[str, str]]:
    """What an online run with the same seed brings, from a server of its own."""
    spec = (
        "anthropic/steady" if spec.startswith("bedrock") else spec
    )  # the same prompts, and the same answers
    with Simulated() as server:
        run = BatchRun(folder=folder, server=server, spec=spec, options=("--generate-only",), name="online")
        run.finish()
        return run.answers()
