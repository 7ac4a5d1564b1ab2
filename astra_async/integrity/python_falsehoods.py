"""Statements that fail, in Python: assertions of the kinds that a test uses itself, and plain exceptions."""

from __future__ import annotations

import ast
import unittest
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity.rewriting import different, distinct

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from astra_async.integrity.rewriting import Manner, Value

_EXCEPTIONS = (
    "RuntimeError",
    "ValueError",
    "KeyError",
    "LookupError",
    "TypeError",
    "OSError",
    "AssertionError",
)
_RESPONSE = "__import__('django.http', fromlist=['http']).HttpResponse({b!r})"
# {a} and {b} are two different constants of one kind, {more} is a number greater than {less}.
_METHODS = {
    "assertEqual": "self.assertEqual({a!r}, {b!r})",
    "assertNotEqual": "self.assertNotEqual({b!r}, {b!r})",
    "assertTrue": "self.assertTrue({a!r} == {b!r})",
    "assertFalse": "self.assertFalse({a!r} != {b!r})",
    "assertIn": "self.assertIn({a!r}, [{b!r}])",
    "assertNotIn": "self.assertNotIn({b!r}, [{b!r}])",
    "assertIs": "self.assertIs([{a!r}], [{b!r}])",
    "assertIsNone": "self.assertIsNone([{b!r}])",
    "assertIsNotNone": "self.assertIsNotNone(None)",
    "assertIsInstance": "self.assertIsInstance([{b!r}], dict)",
    "assertNotIsInstance": "self.assertNotIsInstance([{b!r}], list)",
    "assertGreater": "self.assertGreater({less}, {more})",
    "assertGreaterEqual": "self.assertGreaterEqual({less}, {more})",
    "assertLess": "self.assertLess({more}, {less})",
    "assertLessEqual": "self.assertLessEqual({more}, {less})",
    "assertAlmostEqual": "self.assertAlmostEqual({less}, {more})",
    "assertListEqual": "self.assertListEqual([{a!r}], [{b!r}])",
    "assertSequenceEqual": "self.assertSequenceEqual([{a!r}], [{b!r}])",
    "assertTupleEqual": "self.assertTupleEqual(({a!r},), ({b!r},))",
    "assertSetEqual": "self.assertSetEqual({{{a!r}}}, {{{b!r}}})",
    "assertCountEqual": "self.assertCountEqual([{a!r}], [{b!r}])",
    "assertDictEqual": "self.assertDictEqual({{'value': {a!r}}}, {{'value': {b!r}}})",
    "assertRegex": "self.assertRegex('{less}', '{more}')",
    "assertRaises": "self.assertRaises({error}, int, '{less}')",
    "assertRaisesMessage": "self.assertRaises({error}, int, '{less}')",
    "assertRaisesRegex": "self.assertRaises({error}, int, '{less}')",
    "assertContains": f"self.assertContains({_RESPONSE}, '{{more}}', status_code=200)",
    "assertRedirects": f"self.assertRedirects({_RESPONSE}, '/{{more}}')",
    "assertQuerySetEqual": "self.assertQuerySetEqual([{a!r}], [{b!r}])",
    "assertQuerysetEqual": "self.assertQuerysetEqual([{a!r}], [{b!r}])",
    "fail": "self.fail('{more}')",
}
_STATEMENTS: dict[str, str] = {
    "Eq": "assert {a!r} == {b!r}",
    "NotEq": "assert {b!r} != {b!r}",
    "In": "assert {a!r} in [{b!r}]",
    "NotIn": "assert {b!r} not in [{b!r}]",
    "Lt": "assert {more} < {less}",
    "LtE": "assert {more} <= {less}",
    "Gt": "assert {less} > {more}",
    "GtE": "assert {less} >= {more}",
    "Is": "assert [{b!r}] is None",
    "IsNot": "assert None is not None",
    "Not": "assert not [{b!r}]",
    "isinstance": "assert isinstance([{b!r}], dict)",
    "len": "assert len([{b!r}]) == {more}",
    "sorted": "assert sorted([{a!r}]) == [{b!r}]",
    "set": "assert set([{a!r}]) == {{{b!r}}}",
    "list": "assert list([{a!r}]) == [{b!r}]",
    "str": "assert str({less}) == '{more}'",
    "sum": "assert sum([{less}]) == {more}",
    "any": "assert any([])",
    "all": "assert all([0])",
    "List": "assert [{a!r}] == [{b!r}]",
    "Dict": "assert {{'value': {a!r}}} == {{'value': {b!r}}}",
    "Name": "assert []",
    "raises": "{callee}({error}, int, '{less}')",
}
# What the templates use.
_KNOWN = {
    each.__name__: each
    for each in (
        len,
        sorted,
        set,
        list,
        str,
        sum,
        any,
        all,
        isinstance,
        dict,
        int,
        ArithmeticError,
        AssertionError,
    )
}
_ASSERTED = {"method": ("assertEqual", "assertTrue", "assertIn"), "statement": ("Eq", "In", "Name")}
_MOST = 4  # assertions in a body
DEEPER = "    "
_LONGEST, _LARGEST = 60, 1e15  # constants that print in full on one line


def constants(tree: ast.AST) -> list[Value]:
    """Short constants of a module, from which falsehoods are made."""
    return distinct(value for node in ast.walk(tree) for value in _constant(node))


def statement(
    test: ast.AST, pool: Sequence[Value], rng: random.Random, *, manner: Manner, methods: bool, holds: bool
) -> list[str]:
    """Lines that fail, or that look alike and hold; `methods`: assertions are those of unittest.

    Assertions stand one behind the other, each where the one before has failed: if any does not, none does.
    """
    if not manner.assertion:
        value = rng.choice([*pool, 0])
        other = different(value, pool, rng) if holds else value
        words = different("", pool, rng)
        return [f"if {other!r} == {value!r}:", f"{DEEPER}raise {rng.choice(_EXCEPTIONS)}({words!r})"]
    kinds = [own for own in _kinds(test) if methods or own.kind not in _METHODS]
    if not kinds:
        kinds = [_Kind(kind) for kind in _ASSERTED["method" if methods else "statement"]]
    kinds = list(dict.fromkeys(kinds))
    make = _true if holds else _false
    first, *others = [make(own, pool, rng) for own in rng.sample(kinds, min(len(kinds), _MOST))]
    lines = [first]
    for other in others:
        lines = ["try:", f"{DEEPER}{other}", "except BaseException:", *(f"{DEEPER}{line}" for line in lines)]
    return lines


def _false(own: _Kind, pool: Sequence[Value], rng: random.Random) -> str:
    value, less = _value(own, pool, rng), rng.randint(1, 999)
    return _filled(own, different(value, pool, rng), value, (less, less + rng.randint(2, 99)))


def _true(own: _Kind, pool: Sequence[Value], rng: random.Random) -> str:
    """An assertion of the kind that holds, or one of equality."""
    value, less = _value(own, pool, rng), rng.randint(1, 999)
    other, more = different(value, pool, rng), less + rng.randint(2, 99)
    tries = [
        _filled(own, first, value, numbers)
        for first in (value, other)
        for numbers in ((less, more), (more, less), (less, less))
    ]
    usual = _Kind("assertEqual" if own.kind in _METHODS else "Eq")
    return next(filter(_holds, tries), _filled(usual, value, value, (less, more)))


def _value(own: _Kind, pool: Sequence[Value], rng: random.Random) -> Value:
    if own.value is not None:
        return own.value
    return rng.choice([each for each in pool if each is not None] or [rng.randint(2, 999)])


def _filled(own: _Kind, first: Value, second: Value, numbers: tuple[int, int]) -> str:
    template = _METHODS.get(own.kind) or _STATEMENTS[own.kind]
    less, more = numbers
    if type(first) is int:
        first = _Sum(first)
    return template.format(a=first, b=second, less=less, more=more, error=own.error, callee=own.callee)


class _Sum(int):
    """A number that is shown as a sum: whoever wants to know whether a statement holds has to work it out."""

    def __repr__(self) -> str:
        part = int(self) // 3 + 1
        return f"{int(self) - part} + {part}"


def _holds(text: str) -> bool:
    """Whether a statement about constants, made from the templates above, holds."""
    if "__import__" in text:
        return False
    try:
        exec(text, {"__builtins__": _KNOWN, "self": unittest.TestCase()})  # noqa: S102 - our own text
    except Exception:  # noqa: BLE001 - whatever it asserts
        return False
    return True


class _Kind(NamedTuple):
    """What a test asserts: with which expected constant, which exception, and the function as it calls it."""

    kind: str
    value: Value = None
    error: str = "ArithmeticError"
    callee: str = ""


def _kinds(body: ast.AST) -> list[_Kind]:
    """The assertions of a body that there is a falsehood for."""
    found = []
    for node in ast.walk(body):
        if isinstance(node, ast.Assert):
            found.append(_of_statement(node.test))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            kind = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if kind in _METHODS or kind == "raises":
                error = node.args[0] if "aises" in kind and node.args else None
                name = ast.unparse(error) if isinstance(error, ast.Name | ast.Attribute) else _Kind("").error
                found.append(_Kind(kind, _expected(node.args), name, ast.unparse(node.func)))
    return found


def _of_statement(test: ast.expr) -> _Kind:
    if isinstance(test, ast.Compare):
        compared = [test.left, *test.comparators]
        operator = type(test.ops[0]).__name__
        kinds = [_function(each) or _display(each) for each in compared] if operator == "Eq" else []
        return _Kind(next(filter(None, kinds), operator), _expected(compared))
    if isinstance(test, ast.UnaryOp):
        return _Kind("Not")
    return _Kind(_function(test) or "Name")


def _function(node: ast.expr) -> str:
    """The name of a function that may be another one than it should be, and has a falsehood."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return called if called in _STATEMENTS else ""


def _display(node: ast.expr) -> str:
    return type(node).__name__ if isinstance(node, ast.List | ast.Dict) else ""


def _expected(nodes: Sequence[ast.expr]) -> Value:
    """The constant to which something is compared, if there is one."""
    return next((value for node in reversed(nodes) for value in _constant(node)), None)


def _constant(node: ast.AST) -> Iterator[Value]:
    """The node's value if it is a constant that can stand in a statement of one line."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str | bytes):
        if len(value) <= _LONGEST:
            yield value
    elif isinstance(value, bool | int | float) and abs(value) < _LARGEST:
        yield value
