"""Twins of Python's test files: pytest, unittest, Django's test runner.

A body that runs before it fails moves into a `try` block, line by line; lines that begin inside a string keep
what they hold. Functions inside of functions are nobody's tests.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity import python_falsehoods
from astra_async.integrity.python_falsehoods import DEEPER
from astra_async.integrity.rewriting import Rewritten, comments, draw_manner

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from astra_async.integrity.rewriting import Choice, Titles

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Decorators under which a failing test is no failure, or has another name.
_REASONS = {
    "xfail": "expected to fail",
    "expectedFailure": "expected to fail",
    "expand": "names are generated",
    "parameterized": "names are generated",
    "data": "names are generated",
    "file_data": "names are generated",
}


class _Test(NamedTuple):
    titles: Titles
    node: _Function
    is_method: bool  # of a class that asserts by its own methods


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
    """The twin of a test module; see `rewriting.Rewriter`."""
    try:
        tree = ast.parse(text, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Rewritten(text=text, left_out={"the file": "cannot be parsed"})
    if "\r" in text.replace("\r\n", "\n"):
        return Rewritten(text=text, left_out={"the file": "has line ends of its own"})
    tests = list(_tests(tree.body, ()))
    left_out = {test.titles[-1]: reason for test in tests if (reason := _reason(test.node))}
    left_out |= dict.fromkeys(_generated(tree), "is generated")
    lines, inside = text.split("\n"), _inside_strings(tree)
    pool = python_falsehoods.constants(tree)
    certain = []
    for test in sorted(tests, key=lambda each: each.node.lineno, reverse=True):
        sure = test.titles[-1] not in left_out
        if only is None or (sure and only(test.titles)):
            manner = draw_manner(rng)
            failing = python_falsehoods.failing(test.node, pool, rng, manner, methods=test.is_method)
            _fail(lines, test.node, failing, None if manner.at_once else inside)
            certain += [test.titles] if sure else []
    return Rewritten(
        text="\n".join(lines), runner=_runner(tree), certain=tuple(reversed(certain)), left_out=left_out
    )


def blurred(path: str, text: str, rng: random.Random) -> str:  # noqa: ARG001 - as in each language
    """The test module with comments at its end."""
    begin = "" if text.endswith("\n") or not text else "\n"
    return begin.join((text, "".join(f"{line}\n" for line in comments("#", rng))))


def _tests(body: Sequence[ast.stmt], groups: Titles, *, methods: bool = False) -> Iterator[_Test]:
    """Test functions and methods, also those that stand under a condition."""
    for node in body:
        if isinstance(node, _Function):
            if node.name.startswith("test") and not _is_fixture(node):
                yield _Test((*groups, node.name), node, methods)
        elif isinstance(node, ast.ClassDef):
            yield from _tests(node.body, (*groups, node.name), methods=_asserts_by_methods(node))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            parts = [node.body, *(getattr(node, name, []) for name in ("orelse", "finalbody"))]
            parts += [handler.body for handler in getattr(node, "handlers", [])]
            for part in parts:
                yield from _tests(part, groups, methods=methods)


def _asserts_by_methods(node: ast.ClassDef) -> bool:
    bases = {name.id if isinstance(name, ast.Name) else getattr(name, "attr", "") for name in node.bases}
    if any("TestCase" in base for base in bases):
        return True
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
        and each.attr.startswith("assert")
        for each in ast.walk(node)
    )


def _decorators(node: _Function) -> set[str]:
    return {
        each.attr if isinstance(each, ast.Attribute) else each.id
        for decorator in node.decorator_list
        for each in ast.walk(decorator)
        if isinstance(each, ast.Name | ast.Attribute)
    }


def _is_fixture(node: _Function) -> bool:
    return any("fixture" in name for name in _decorators(node))


def _reason(node: _Function) -> str:
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)):
        return "is a generator"
    found = _decorators(node)
    return next((reason for name, reason in _REASONS.items() if name in found), "")


def _generated(tree: ast.Module) -> Iterator[str]:
    """Names of tests that are assigned, not written; `load_tests` may make any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.startswith("test"):
            yield node.id
        elif isinstance(node, ast.FunctionDef) and node.name in {"load_tests", "pytest_generate_tests"}:
            yield node.name


def _runner(tree: ast.Module) -> str:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
    known = {"rest_framework": "Django", "django": "Django", "pytest": "pytest", "unittest": "unittest"}
    return next((runner for module, runner in known.items() if module in modules), "pytest")


def _inside_strings(tree: ast.Module) -> set[int]:
    """Lines, from 0, that begin inside a string or may do so."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and _is_text(node.value))
        for line in range(node.lineno, node.end_lineno or node.lineno)
    }


def _is_text(value: object) -> bool:
    return isinstance(value, str | bytes)


def _fail(lines: list[str], node: _Function, failing: list[str], inside: set[int] | None) -> None:
    """Make a function's body fail: at once, or where `inside` is given after it has run."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not body or _start(body[0])[0] == _start(node.body[0])[0]:
        body = node.body  # no docstring, or one with code on its line
    first, column = _start(body[0])
    before = lines[first].encode()[:column].decode()
    last = (body[-1].end_lineno or 0) - 1
    indent = before
    if before.strip():  # def test(): assert False
        above = lines[node.lineno - 1]
        indent = above[: len(above) - len(above.lstrip())] + DEEPER
        lines[first : first + 1] = [before, indent + lines[first].encode()[column:].decode()]
        inside = inside if inside is None else {line + 1 for line in inside if line > first}
        first, last = first + 1, last + 1
    if inside is None:
        lines[first:first] = [indent + line for line in failing]
        return
    lines[first : last + 1] = [
        f"{indent}try:",
        *(
            _moved(line, "" if number in inside else indent)
            for number, line in enumerate(lines[first : last + 1], first)
        ),
        f"{indent}finally:",
        *(f"{indent}{DEEPER}{line}" for line in failing),
    ]


def _start(node: ast.stmt) -> tuple[int, int]:
    """Line, from 0, and column in bytes of a statement with its decorators."""
    decorators = getattr(node, "decorator_list", [])
    if decorators:
        return decorators[0].lineno - 1, decorators[0].col_offset - 1
    return node.lineno - 1, node.col_offset


def _moved(line: str, indent: str) -> str:
    """A line of the body, deeper; one that does not begin with its indentation continues another."""
    return f"{indent}{DEEPER}{line[len(indent) :]}" if indent and line.startswith(indent) else line
