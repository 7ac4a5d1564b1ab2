"""axe-core from npm's registry, which checks the accessibility of a page inside the page."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser import Tab

_PACKAGE = "axe-core@4.14.1"
_FOUND = (
    "r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 5).join(', ')}`)"
)


@functools.cache
def source() -> str:
    """Return axe-core's script; skip the test without npm or its registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm to fetch axe-core with")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--pack-destination", folder, _PACKAGE]
        packed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if packed.returncode:
            pytest.skip(f"npm does not give axe-core: {packed.stderr[-200:]}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            script = archive.extractfile("package/axe.min.js")
            assert script is not None
            return script.read().decode()


async def violations(tab: Tab) -> list[str]:
    """Return axe-core's findings on the current page, with all rules and best practices."""
    await tab.run(f"(() => {{ if (!window.axe) {{ {source()} }} return 1 }})()")
    await tab.run(
        "window.found = null, axe.run(document, {resultTypes: ['violations']})"
        f".then((r) => {{ window.found = {_FOUND} }}), 1"
    )
    await tab.until("window.found !== null")
    found: list[str] = await tab.run("window.found")
    return found
