"""What each command loads of the libraries that cost most: nothing that it does not use."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import orjson
import pytest

from made_runs import Made, made_problems, write_run
from small_problems import write_problems

if TYPE_CHECKING:
    from pathlib import Path

# Each takes 30 to 1,000 ms, or 10 to 60 MB.
COSTLY = {
    *("aiodocker", "aiohttp", "botocore", "distributed", "genai_prices", "jinja2", "lxml", "matplotlib"),
    *("numpy", "pandas", "pyarrow", "pydantic", "rich", "scipy", "scipy.stats", "tree_sitter"),
}
REPORT = {"jinja2", "numpy", "rich", "scipy"}
DRY = (
    *("run", "--problems", "CSV", "--model", "openai-compatible/m"),
    *("--base-url", "http://127.0.0.1:9/v1", "--out", "OUT", "--dry-run"),
)
ANSWERS = ("run", "--problems", "CSV", "--model", "simulated/steady", "--samples", "1", "--out", "OUT")
TESTED = ("run", "--problems", "bundled", "--limit", "1", *ANSWERS[3:])
COMMANDS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "help": (("--help",), set()),
    "help of a command": (("run", "--help"), set()),
    "status": (("status", "RUN"), {"numpy", "rich"}),
    "show": (("show", "RUN", "alpha", "p00", "0"), {"rich"}),
    "report": (("report", "RUN"), REPORT),
    "compare": (("compare", "RUN", "--models", "alpha", "beta"), REPORT - {"jinja2"}),
    "dry run": (DRY, {"aiodocker", "aiohttp", "rich"}),
    "dry run without Docker": ((*DRY, "--generate-only"), {"rich"}),
    "run without tests": ((*ANSWERS, "--generate-only"), {"aiohttp"}),
    "run": (TESTED, REPORT | {"aiodocker", "aiohttp", "lxml", "tree_sitter"}),
    "export": (("export", "RUN", "--to", "parquet", "--out", "OUT"), {"numpy", "pyarrow", "scipy"}),
}
PROGRAM = """
import sys
from astra_async.cli import main
try:
    main()
finally:
    import orjson
    open(sys.argv.pop(), "wb").write(orjson.dumps(sorted(sys.modules)))
"""


@pytest.mark.first
@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=pytest.mark.docker if each == "run" else ()) for each in COMMANDS],
)
def test_a_command_loads_only_what_it_uses(tmp_path: Path, command: str) -> None:
    words, allowed = COMMANDS[command]
    places = {
        "RUN": write_run(tmp_path / "run", Made(problems=made_problems(6))),
        "CSV": write_problems(tmp_path, ["p"], "some/image:1", named=True),
        "OUT": tmp_path / "out",
    }
    loaded = tmp_path / "loaded"
    program = PROGRAM.replace("sys.argv.pop()", repr(str(loaded)))
    typed = [str(places.get(word, word)) for word in words]
    ended = subprocess.run([sys.executable, "-c", program, *typed], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    assert set(orjson.loads(loaded.read_bytes())) & COSTLY <= allowed
