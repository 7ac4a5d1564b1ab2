from __future__ import annotations

import asyncio
import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import ArchiveError, SourceError
from astra_async.problems.fetch import Store

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Solution


def load(folder: Path, path: Path) -> Solution:
    async def run() -> Solution:
        store = Store(folder / "cache")
        try:
            return await store.load_reference(str(path))
        finally:
            await store.close()

    return asyncio.run(run())


def written(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    "value",
    [
        {"src/a.js": "1", "b.js": ""},
        {"files": [{"path": "src/a.js", "content": "1"}, {"path": "b.js", "content": ""}]},
        {"files": {"src/a.js": "1", "b.js": ""}},
        [{"path": "src/a.js", "content": "1"}, {"path": "b.js", "content": ""}],
    ],
)
def test_a_json_file_is_read_in_each_form(tmp_path: Path, value: object) -> None:
    path = written(tmp_path, "reference", "\ufeff" + json.dumps(value))
    assert load(tmp_path, path).files == {"src/a.js": "1", "b.js": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a.js": 1}', "must be {path: content}"),
        ("{}", "must be {path: content}"),
        ("[1]", "must be {path: content}"),
        ('[{"path": "a"}]', "must be {path: content}"),
        ('{"a.js": "1"', "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ("text", "not a .zip"),
    ],
)
def test_json_of_another_form_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ArchiveError, match=r"reference\.json: ") as caught:
        load(tmp_path, written(tmp_path, "reference.json", text))
    assert said in str(caught.value)


def test_a_folder_keeps_its_paths_and_leaves_out_what_is_no_source(tmp_path: Path) -> None:
    root = tmp_path / "reference"
    written(root, "src/a.js", "1")
    written(root, "src/logo.png", b"\x89PNG\xff")
    written(root, ".git/config", "secret")
    written(root, "node_modules/x/index.js", "x")
    (root / "link").symlink_to("/etc/passwd")
    solution = load(tmp_path, root)
    assert solution.files == {"src/a.js": "1"}
    assert solution.repairs == ("binary_left_out",)


def zipped(folder: Path, *names: str) -> Path:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return written(folder, "r.zip", data.getvalue())


def test_a_lone_folder_of_a_reference_is_a_part_of_the_project(tmp_path: Path) -> None:
    path = zipped(tmp_path, "challenge/a.js")
    assert list(load(tmp_path, path).files) == ["challenge/a.js"]


def test_a_whole_solved_project_is_unwrapped_at_its_manifest(tmp_path: Path) -> None:
    path = zipped(tmp_path, "top/hackerrank.yml", "top/src/a.js", "__MACOSX/top/._a.js")
    assert list(load(tmp_path, path).files) == ["hackerrank.yml", "src/a.js"]


def test_a_reference_that_leads_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="leads out"):
        load(tmp_path, zipped(tmp_path, "../a.js"))


def test_a_reference_without_text_or_without_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArchiveError, match="no text files"):
        load(tmp_path, tmp_path / "empty")
    with pytest.raises(SourceError, match="folder or file not found"):
        load(tmp_path, tmp_path / "nothing")
