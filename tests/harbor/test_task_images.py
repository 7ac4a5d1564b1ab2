"""Images of tasks: build context, cached builds and the log of a failed build."""

from __future__ import annotations

import asyncio
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from astra_async.errors import ImageError, SandboxError
from astra_async.harbor.environment import built_name, ensure_built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import IO

    from astra_async.testing.sandbox.engine import Engine

TAG = "astra/task-one:0123456789ab"


class Builder:
    """The part of an engine that builds images: with events, and an error or a delay after them."""

    def __init__(self, *events: Mapping[str, Any], error: str = "", delay_s: float = 0.0) -> None:
        self.images: set[str] = set()
        self.contexts: list[list[str]] = []
        self.arguments: Mapping[str, str] = {}
        self._events, self._error, self._delay_s = events, error, delay_s

    async def image(self, name: str) -> dict[str, Any] | None:
        return {"Id": name} if name in self.images else None

    async def build(
        self, context: IO[bytes], *, tag: str | None, arguments: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        with tarfile.open(fileobj=context) as tar:
            self.contexts.append(tar.getnames())
        self.arguments = arguments
        for event in self._events:
            yield event
        await asyncio.sleep(self._delay_s)
        if self._error:
            raise SandboxError(self._error)
        self.images.add(str(tag))
        yield {"aux": {"ID": "sha256:1"}}


def build(builder: Builder, context: Path, timeout_s: float = 60.0) -> list[str]:
    said: list[str] = []
    engine = cast("Engine", builder)
    asyncio.run(ensure_built(engine, context, TAG, timeout_s=timeout_s, progress=said.append))
    return said


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    for name in ("Dockerfile", "a.log", "keep.log", "src/a.py", "src/deep/b.pyc", "data/big.bin"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_an_image_is_built_once_without_arguments(context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    builder = Builder({"stream": "Step 2/2 : RUN true\n"})
    assert build(builder, context) == [f"Building {TAG}: step 2 of 2", f"Built {TAG}"]
    assert build(builder, context) == []
    assert len(builder.contexts) == 1
    assert builder.arguments == {}


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("", ["Dockerfile", "a.log", "data/big.bin", "keep.log", "src/a.py", "src/deep/b.pyc"]),
        ("# a comment\n*.log\n!keep.log\n/data/\n", ["Dockerfile", "keep.log", "src/a.py", "src/deep/b.pyc"]),
        ("**/*.pyc\nsrc/?.py\n", ["Dockerfile", "a.log", "data/big.bin", "keep.log"]),
        ("**\n!src\n", ["Dockerfile", "src/a.py", "src/deep/b.pyc"]),
    ],
)
def test_dockerignore_excludes_files(context: Path, patterns: str, left: list[str]) -> None:
    (context / ".dockerignore").write_text(patterns)
    builder = Builder()
    build(builder, context)
    assert builder.contexts == [sorted([".dockerignore", *left])]


def test_an_excluded_file_does_not_change_the_name(context: Path) -> None:
    (context / ".dockerignore").write_text("*.log\n")
    before = built_name(context, "Task_One")
    assert re.fullmatch(r"astra/task-one:[0-9a-f]{12}", before)
    (context / "a.log").write_text("other")
    assert built_name(context, "Task_One") == before
    (context / "src" / "a.py").write_text("other")
    assert built_name(context, "Task_One") != before


def test_too_many_patterns_are_refused(context: Path) -> None:
    for patterns in ("a\n" * 501, "**/a/**/b/**/c/**"):
        (context / ".dockerignore").write_text(patterns)
        with pytest.raises(ImageError, match="more than 500 patterns"):
            built_name(context, "one")


@pytest.mark.parametrize(
    ("settings", "timeout_s", "message"),
    [
        ({"error": "the command returned 1"}, 60.0, r"the command returned 1 \(E: no such package\)"),
        ({"delay_s": 60.0}, 0.05, "took longer than build_timeout_sec = 0.05"),
    ],
)
def test_a_failed_build_names_its_whole_output(
    context: Path, settings: dict[str, Any], timeout_s: float, message: str
) -> None:
    lines = [f"line {number}\n" for number in range(50)]
    builder = Builder(*({"stream": line} for line in [*lines, "E: no such package\n"]), **settings)
    with pytest.raises(ImageError, match=message) as raised:
        build(builder, context, timeout_s)
    assert "\n" not in str(raised.value)
    file = Path(str(raised.value).rpartition("whole output: ")[2])
    assert file.read_text() == "".join(lines) + "E: no such package\n"
    file.unlink()
