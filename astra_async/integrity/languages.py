"""Twins of test files in any language: which rewriter a file has, and what is asked of each alike."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from astra_async.integrity.rewriting import NotUnderstoodError, Rewritten

if TYPE_CHECKING:
    import random

    from astra_async.integrity.rewriting import Choice, TestFile

# By suffix: modules of this room, each with a class `Tests`; a grammar is loaded when a problem needs it.
_MODULES = {
    "py": "python_twin",
    "rb": "ruby_twin",
    "java": "java_twin",
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), "javascript_twin"),
}


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
    """The twin of a test file, in which the tests that `only` says yes to fail.

    A text that is not understood comes back unchanged, with the reason in `left_out` if it cannot be parsed.
    """
    try:
        file = read(path, text)
    except NotUnderstoodError as error:
        return Rewritten(text=text, left_out={path: str(error)} if error.args else {})
    failing = [
        test for test in file.tests if only is None or (not test.doubt and any(map(only, test.titles)))
    ]
    certain = dict.fromkeys(titles for test in failing if not test.doubt for titles in test.titles)
    return Rewritten(
        text=file.twin(failing, rng),
        runner=file.runner,
        certain=tuple(certain),
        left_out={**file.left_out, **{test.key: test.doubt for test in file.tests if test.doubt}},
    )


def blurred(path: str, text: str, rng: random.Random) -> str:
    """A test file whose tests are the same, but neither its size nor its hash are as one knows them."""
    try:
        file = read(path, text)
    except NotUnderstoodError:
        return text
    return file.blurred(rng)


def is_alike(path: str) -> bool:
    """Whether a twin of this file needs no blurring: tests in it that do not fail look as if they did."""
    return path.endswith(".py")


def read(path: str, text: str) -> TestFile:
    """The tests of a file. Raises NotUnderstoodError, without a reason where its language has no rewriter."""
    name = _MODULES.get(path.rpartition(".")[2].lower())
    if name is None:
        raise NotUnderstoodError
    return cast("TestFile", import_module(f"astra_async.integrity.{name}").Tests(path, text))
