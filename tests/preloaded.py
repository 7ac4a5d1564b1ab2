"""Small C libraries that replace functions of the C library in programs under test (LD_PRELOAD)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"), reason="needs Linux and a C compiler"
)


def compiled(name: str, folder: Path) -> Path:
    """Compile `tests/NAME.c` into `folder` and return the library's path."""
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    command = ["cc", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library
