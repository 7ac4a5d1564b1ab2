from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.problems.fetch import Store

if TYPE_CHECKING:
    from pathlib import Path


async def test_compiled_python_is_no_part_of_a_project_or_a_reference(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "app" / "__pycache__").mkdir(parents=True)
    (folder / "app" / "models.py").write_text("x = 1\n")

    async def load() -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        store = Store(tmp_path / "cache")
        try:
            project = await store.load(str(folder))
            reference = await store.load_reference(str(folder))
        finally:
            await store.close()
        return project.sha256, tuple(reference.files), reference.repairs

    before = await load()
    (folder / "app" / "__pycache__" / "models.cpython-311.pyc").write_bytes(b"\xa7\r\r\n\xff")
    after = await load()
    assert after == before == (before[0], ("app/models.py",), ())
