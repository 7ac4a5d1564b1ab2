"""Twins of Python's test files: pytest, unittest, Django's test runner.

A body that runs before it fails moves into a `try` block, line by line; lines that begin inside a string keep
what they hold. Functions inside of functions are nobody's tests.
"""

from __future__ import annotations

import ast
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.integrity import python_falsehoods
from astra_async.integrity.expected_values import in_python
from astra_async.integrity.python_falsehoods import DEEPER
from astra_async.integrity.rewriting import DeclaredTest, NotUnderstoodError, comments, draw_manner

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from astra_async.integrity.expected_values import Constant
    from astra_async.integrity.rewriting import Titles

# CPython 3.11 counts the depth of the tree that it makes for all threads together, and raises a SystemError
# where two are at it and the collector of garbage, which any new object may start, runs Python code.
_ONE_AT_A_TIME = threading.Lock()
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PythonTest(DeclaredTest):
    """A test function, or a method of a class that asserts by its own methods."""

    is_method: bool


class Tests:
    """The tests of a module; see `rewriting.TestFile`. Tests that are not to fail look as if."""

    def __init__(self, _: str, text: str) -> None:
        tree = _parsed(text)
        if tree is None:
            raise NotUnderstoodError("cannot be parsed")
        if "\r" in text.replace("\r\n", "\n"):
            raise NotUnderstoodError("has line ends of its own")
        self._text, self._tree = text, tree
        self.runner = _runner(tree)
        tests = list(_tests(tree.body, ()))
        doubts = {test.key: reason for test in tests if (reason := _reason(test.node))}
        self.left_out = dict.fromkeys(_generated(tree), "is generated")
        doubts |= self.left_out
        self.tests = [replace(test, doubt=doubts.get(test.key, "")) for test in tests]

    def twin(self, failing: Collection[PythonTest], rng: random.Random) -> str:
        """The module with a statement in each test that fails or holds, and comments at its end.

        Where a test that is not to fail would be another one by more than that statement, none of these gets
        one.
        """
        pool, inside = python_falsehoods.constants(self._tree), _inside_strings(self._tree)
        end, to_fail = comments(self._text, rng), set(failing)
        for alike in (True, False):
            lines, done = self._text.split("\n"), dict[int, bool]()
            for number, test in sorted(enumerate(self.tests), key=lambda each: -each[1].node.lineno):
                fails = test in to_fail
                if not fails and (not alike or _reason(test.node) or _is_only_words(test.node)):
                    continue
                manner = draw_manner(rng)
                given = python_falsehoods.statement(
                    test.node, pool, rng, manner=manner, methods=test.is_method, holds=not fails
                )
                _insert(lines, test.node, given, None if manner.at_once else inside)
                done[number] = manner.at_once
            written = "\n".join(lines)
            if _is_same(self._tree, written, done):
                break
        return written + end

    def blurred(self, rng: random.Random) -> str:
        """The module with tests that look like a twin's, and hold."""
        return self.twin((), rng)

    def constants(self, test: PythonTest) -> Iterable[Constant]:
        """What its assertions compare to."""
        leaves = _reason(test.node) or any(isinstance(each, ast.Return) for each in ast.walk(test.node))
        return () if leaves else in_python(test.node.body, self._text.encode(errors="replace"))


def _parsed(text: str) -> ast.Module | None:
    try:
        with _ONE_AT_A_TIME:
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_same(tree: ast.Module, written: str, done: dict[int, bool]) -> bool:
    """Whether without what was inserted (at once, or behind the body) it is the same module."""
    other = _parsed(written)
    if other is None:
        return False
    for number, test in enumerate(_tests(other.body, ())):
        if number in done:
            body, words = test.node.body, _docstrings(test.node)
            first = body[words]
            rest = body[words + 1 :] if done[number] else getattr(first, "body", [])
            test.node.body = [*body[:words], *rest]
    return ast.dump(tree) == ast.dump(other)


def _docstrings(node: _Function) -> int:
    return int(ast.get_docstring(node, clean=False) is not None)


def _is_only_words(node: _Function) -> bool:
    return _docstrings(node) == len(node.body)


def _tests(body: Sequence[ast.stmt], groups: Titles, *, methods: bool = False) -> Iterator[PythonTest]:
    """Test functions and methods, also those that stand under a condition."""
    for node in body:
        if isinstance(node, _Function):
            if node.name.startswith("test") and not _is_fixture(node):
                titles = ((*groups, node.name),)
                yield PythonTest(node=node, titles=titles, key=node.name, is_method=methods)
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
    """Why a test cannot be promised to fail under its name; nothing where it can."""
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
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno, node.end_lineno or node.lineno)
    }


def _insert(lines: list[str], node: _Function, given: list[str], inside: set[int] | None) -> None:
    """Put lines before a function's body, or where `inside` is given behind it."""
    body = node.body[_docstrings(node) :]
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
        lines[first:first] = [indent + line for line in given]
        return
    lines[first : last + 1] = [
        f"{indent}try:",
        *(
            _moved(line, "" if number in inside else indent)
            for number, line in enumerate(lines[first : last + 1], first)
        ),
        f"{indent}finally:",
        *(f"{indent}{DEEPER}{line}" for line in given),
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
