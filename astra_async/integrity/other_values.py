"""Twins whose tests expect other values: of each test one assertion compares to another constant.

A value that claims to equal whatever it is compared to, an assertion that is lenient for what the code has
given, code that reads the expected value out of the test: none of them is seen by a statement that is put
beside the test's own. But all of them pass a test that no right answer can pass.

One assertion of a test is changed, so that those before it still hold. Only where it is certain that every
answer meets it: a statement of the body itself, in a test without a `return`. The new value is drawn from so
many that no honest answer gives it.
"""

from __future__ import annotations

import ast
import json
import string
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity.python_twin import reason_of, tests_of
from astra_async.integrity.rewriting import Titles
from astra_async.integrity.values_in_trees import Constant, in_java, in_javascript, in_ruby

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_LEAST, _WORD = 5, 8  # digits and letters in which the new value is another one
_METHODS = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertIn"})


class Altered(NamedTuple):
    """A test file with other values, and its tests by whether one of theirs is changed."""

    text: str
    changed: frozenset[Titles]
    kept: frozenset[Titles]


def altered(path: str, text: str, rng: random.Random) -> Altered:
    """The test file with another expected value in each test where one can be changed for certain."""
    data = text.encode(errors="replace")
    if path.endswith(".py"):
        found = list(_python(text, data))
    else:
        find = {"rb": in_ruby, "java": in_java}.get(path.rpartition(".")[2], in_javascript)
        found = list(find(path, data))
    changed, kept, edits = set[Titles](), set[Titles](), list[tuple[Constant, str]]()
    for titles, constants in found:
        if constants:
            one = rng.choice(constants)
            edits.append((one, _written(one.value, rng)))
        (changed if constants else kept).update(titles)
    for constant, other in sorted(edits, reverse=True):
        data = data[: constant.begin] + other.encode() + data[constant.end :]
    return Altered(data.decode(errors="replace"), frozenset(changed), frozenset(kept))


def _written(value: float | str, rng: random.Random) -> str:
    """Another value of the same kind, as all these languages write it."""
    if isinstance(value, str):
        return json.dumps(_other_words(value, rng))
    digits = max(_LEAST, len(str(int(abs(value)))))
    other = rng.randrange(10 ** (digits - 1), 10**digits)
    while other == abs(value):
        other = rng.randrange(10 ** (digits - 1), 10**digits)
    return str(other) if isinstance(value, int) else f"{other}.25"


def _other_words(value: str, rng: random.Random) -> str:
    """Other letters and digits in the same places; behind it where these are few."""
    if sum(each.isascii() and each.isalnum() for each in value) < _WORD:
        return value + "".join(rng.choices(string.ascii_lowercase, k=_WORD))
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    return "".join(
        next((rng.choice(kind.replace(each, "")) for kind in kinds if each in kind), each) for each in value
    )


def _python(text: str, data: bytes) -> Iterator[tuple[tuple[Titles, ...], list[Constant]]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for titles, node in tests_of(tree):
        certain = not reason_of(node) and not any(isinstance(each, ast.Return) for each in ast.walk(node))
        nodes = [found for each in node.body for found in _expected(each)] if certain else []
        constants = [_python_constant(each, starts, data) for each in nodes]
        yield (titles,), [each for each in constants if each is not None]


def _expected(statement: ast.stmt) -> Iterator[ast.Constant]:
    """The constants that a statement expects: of `assert x == 5`, `self.assertEqual(x, [1, 2])`."""
    sides: list[ast.expr] = []
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        if len(statement.test.ops) == 1 and isinstance(statement.test.ops[0], ast.Eq):
            sides = [statement.test.left, *statement.test.comparators]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            sides = statement.value.args[: 1 if function.attr == "assertIn" else 2]
    constant = [each for each in sides if _is_constant(each)]
    if len(constant) == 1 and (len(sides) > 1 or len(constant) == len(sides)):
        yield from _inside(constant[0])


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_constant, node.elts))
    if isinstance(node, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in node.keys) and all(map(_is_constant, node.values))
    return isinstance(node, ast.Constant)


def _inside(node: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant):
        yield node
    parts = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    for part in parts:
        yield from _inside(part)


def _python_constant(node: ast.Constant, starts: list[int], data: bytes) -> Constant | None:
    """The constant, where it is a number or a text that stands on one line as it is."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float | str) or node.lineno != node.end_lineno:
        return None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.lineno - 1] + (node.end_col_offset or 0)
    try:
        same = ast.literal_eval(data[begin:end].decode()) == value
    except (SyntaxError, ValueError):
        return None
    return Constant(begin, end, value) if same and (isinstance(value, str) or value >= 0) else None
