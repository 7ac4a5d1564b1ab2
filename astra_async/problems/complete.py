"""What the CSV leaves out, taken from the project's own manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.types import ExpectedTest, Manifest, Problem


def complete(problem: Problem, manifest: Manifest) -> Problem:
    """The problem with its gaps filled: command, result files, weights; protected paths are united.

    Result files come from the CSV's column, else the manifest, else the `file` of the CSV's tests.
    """
    return replace(
        problem,
        test_command=problem.test_command or manifest.command,
        result_files=problem.result_files or manifest.result_files or _files_of(problem.tests),
        readonly_paths=_united(problem.readonly_paths, manifest.readonly_paths),
        hidden_paths=_united(problem.hidden_paths, manifest.hidden_paths),
        tests=weighted(problem.tests, manifest.weights),
    )


def weighted(tests: Sequence[ExpectedTest], weights: Mapping[str, float]) -> tuple[ExpectedTest, ...]:
    """The tests with the manifest's weights where they have none of their own.

    A weight's key is a test's `name`, `classname name` or `classname.name`; a qualified key is matched by
    its end only when no other key ends alike.
    """
    by_name = {_plain(key): weight for key, weight in weights.items()}
    return tuple(
        test if test.weight is not None else replace(test, weight=_weight_of(_plain(test.name), by_name))
        for test in tests
    )


def _weight_of(name: str, weights: Mapping[str, float]) -> float | None:
    if name in weights:
        return weights[name]
    # Either side may carry the class: the key `a.B.works` for the test `works`, or the other way round.
    fits = [
        key
        for key in weights
        if key.endswith(("." + name, " " + name)) or name.endswith(("." + key, " " + key))
    ]
    return weights[fits[0]] if len(fits) == 1 else None


def _plain(name: str) -> str:
    return " ".join(name.split())


def _files_of(tests: Sequence[ExpectedTest]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(test.file for test in tests if test.file))


def _united(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))
