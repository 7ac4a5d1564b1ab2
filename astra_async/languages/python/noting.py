"""What Python's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.languages.altering import Written

_ONE = b"@name@.one(%b)"


def _of(says: str) -> tuple[bytes, ...]:
    return (f"@name@.of(%b, '{says}')".encode(),)


def _two(says: str) -> tuple[bytes, ...]:
    return _ONE, f"@name@.two(%b, '{says}')".encode()


# What an assertion holds of, its first argument or two, by how these are written so that it is noted.
HOLDS = {
    "assertTrue": _of("truth"), "assertFalse": _of("not_"), "assertIsNone": _of("is_none"),
    "assertIsNotNone": _of("is_some"),
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual",
         "assertSetEqual", "assertMultiLineEqual"), _two("eq"),
    ),
    "assertNotEqual": _two("ne"), "assertIs": _two("is_"), "assertIsNot": _two("is_not"),
    "assertIn": _two("within"), "assertNotIn": _two("outside"), "assertLess": _two("lt"),
    "assertGreater": _two("gt"), "assertLessEqual": _two("le"), "assertGreaterEqual": _two("ge"),
    "assertCountEqual": _two("as_often"),
}  # fmt: skip
# The same of what a plain `assert` compares, and of what it asks else.
COMPARING = {
    ast.Eq: _two("eq"), ast.NotEq: _two("ne"), ast.Is: _two("is_"), ast.IsNot: _two("is_not"),
    ast.In: _two("within"), ast.NotIn: _two("outside"), ast.Lt: _two("lt"), ast.LtE: _two("le"),
    ast.Gt: _two("gt"), ast.GtE: _two("ge"),
}  # fmt: skip
TRUE, DENIED = _of("truth"), _of("not_")
# What has been noted is seen by these functions alone. They compare by functions, as code may have got at how
# tests are compiled; what has no size may be there to be taken once.
_NOTING = b"""
def @name@():
    import operator

    held, given = True, []

    def has_size(it):
        return hasattr(it, "__len__")

    def as_often(one, two):
        if not (has_size(one) and has_size(two)):
            return True
        return operator.eq(len(one), len(two)) and all(operator.contains(two, each) for each in one)

    says = dict(
        as_often=as_often,
        within=lambda one, two: not has_size(two) or operator.contains(two, one),
        outside=lambda one, two: not has_size(two) or not operator.contains(two, one),
        is_none=lambda it: operator.is_(it, None),
        is_some=lambda it: operator.is_not(it, None),
    )

    def noted(name, *sides):
        nonlocal held
        held = bool((says.get(name) or getattr(operator, name))(*sides)) and held
        return sides[-1]

    def begin():
        nonlocal held
        held = True

    def passed():
        nonlocal held
        held = False

    def end(said):
        if held:
            raise AssertionError(said)

    @name@.begin, @name@.passed, @name@.end = begin, passed, end
    @name@.one = lambda it: given.append(it) or it
    @name@.two = lambda it, name: noted(name, given.pop(), it)
    @name@.of = lambda it, name: noted(name, it)


@name@()
"""
PASSED = b"@name@.passed()"  # behind what is to raise


def around(source: bytes, statements: tuple[int, int], line: bytes) -> list[Written]:
    """What notes comparisons before and behind a test's statements; nothing without a line of their own."""
    begin, end, last = *statements, len(source)
    before, behind = b"@name@.begin()" + line, line + b"@name@.end('@held@')"
    noting = [((begin, begin), before), ((last, last), _NOTING), ((end, end), behind)]
    return noting if line else []
