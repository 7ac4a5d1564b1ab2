"""Runs benchmarks of language models on multi-file projects, from Python as from the command line.

    run = astra_async.load("runs/october")  # typed frames: samples, tests, problems, leaderboard
    done = await astra_async.run(problems="my.csv", model=["openai/gpt-4o"], out="runs/october")
    found = astra_async.compare("runs/october", "runs/november")

Nothing is imported before it is used; docs/python.md shows each with its units and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.export.loaded import compare, load
    from astra_async.from_python import run

__all__ = ["__version__", "compare", "load", "run"]


def __getattr__(name: str) -> object:
    match name:
        case "load" | "compare":
            from astra_async.export import loaded

            return getattr(loaded, name)
        case "run":
            from astra_async.from_python import run

            return run
        case "__version__":
            from importlib.metadata import version

            return version("astra_async")
    raise AttributeError(f"module 'astra_async' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
