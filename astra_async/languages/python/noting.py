"""What Python's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.languages.rows import Written


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
    "assertCountEqual": _two("as_often"), "assertAlmostEqual": _two("near"),
}  # fmt: skip
# The same of what a plain `assert` compares, and of what it asks else.
COMPARING = {
    ast.Eq: _two("eq"), ast.NotEq: _two("ne"), ast.Is: _two("is_"), ast.IsNot: _two("is_not"),
    ast.In: _two("within"), ast.NotIn: _two("outside"), ast.Lt: _two("lt"), ast.LtE: _two("le"),
    ast.Gt: _two("gt"), ast.GtE: _two("ge"),
}  # fmt: skip
TRUE, DENIED = _of("truth"), _of("not_")
# What has been noted is seen by these functions alone. They ask values' own methods, found as Python finds
# them, as code may have got at the library's functions and at how tests are compiled; what has no size may be
# there to be taken once.
_NOTING = b"""
def @name@():
    held, again, due, given, begun = True, False, 0, [], []
    kinds_of, members_of = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__

    def method(it, name):
        for kind in kinds_of(type(it)):
            if name in members_of(kind):
                found = members_of(kind)[name]
                get = getattr(type(found), "__get__", None)
                return found if get is None else get(found, it, type(it))
        raise AttributeError(name)

    def by(here, there, same):
        def says(one, two):
            asked = [(here, one, two), (there, two, one)]
            if type(one) is not type(two) and type(one) in kinds_of(type(two)):
                asked.reverse()
            for name, left, right in asked:
                answer = method(left, name)(right)
                if answer is not NotImplemented:
                    return answer
            return (one is two) is same

        return says

    def size(it):
        try:
            return method(it, "__len__")()
        except Exception:
            return None

    equal = by("__eq__", "__eq__", True)

    def contains(held, it):
        try:
            return method(held, "__contains__")(it)
        except AttributeError:
            for each in held:
                if each is it or equal(each, it):
                    return True
            return False

    def near(one, two):
        try:
            return equal(one, two) or -0.000001 < one - two < 0.000001
        except TypeError:
            return True

    def as_often(one, two):
        if size(one) is None or size(two) is None:
            return True
        for each in one:
            if not contains(two, each):
                return False
        return equal(size(one), size(two))

    says = {
        "as_often": as_often,
        "eq": equal,
        "ge": by("__ge__", "__le__", True),
        "gt": by("__gt__", "__lt__", True),
        "is_": lambda one, two: one is two,
        "is_none": lambda it: it is None,
        "is_not": lambda one, two: one is not two,
        "is_some": lambda it: it is not None,
        "le": by("__le__", "__ge__", True),
        "lt": by("__lt__", "__gt__", True),
        "ne": by("__ne__", "__ne__", False),
        "near": near,
        "not_": lambda it: not it,
        "outside": lambda one, two: size(two) is None or not contains(two, one),
        "truth": lambda it: it,
        "within": lambda one, two: size(two) is None or contains(two, one),
    }

    def noted(name, *sides):
        nonlocal held
        if not says[name](*sides):
            held = False
        return sides[-1]

    def begin(said):
        nonlocal held, again, due
        held, again, due = True, said in begun and not said.endswith("each time"), 0
        begun.append(said)

    def rows(over, anew, first):
        nonlocal due
        kept = (*over,)
        due += size(anew)
        for each in range(size(anew)):
            at = (each + first) % size(anew)
            yield anew[at]() if anew[at] else kept[at]

    def row():
        nonlocal due
        due -= 1

    def raising(manager, asked, said):
        class Raising:
            def __enter__(self):
                return self

            def __getattr__(self, name):
                return getattr(caught, name)

            def __exit__(self, kind, *error):
                nonlocal held, caught
                kinds = () if kind is None else kinds_of(kind)
                told = asked() or kinds
                texts = [type(it).__str__(it) for it in error[:1] if kinds]
                texts += getattr(error[0], "__notes__", ())
                text = contains(" ".join(texts), said())
                if not (text and any(each is one for each in kinds for one in told)):
                    held = False
                at_last = manager()
                caught = type(at_last).__enter__(at_last)
                return type(at_last).__exit__(at_last, kind, *error)

        caught = None
        return Raising()

    def end(said):
        if held and not due and not again:
            raise AssertionError(said)

    @name@.begin, @name@.rows, @name@.row, @name@.raising, @name@.end = begin, rows, row, raising, end
    @name@.one = lambda it: given.append(it) or it
    @name@.two = lambda it, name: noted(name, given.pop(), it)
    @name@.of = lambda it, name: noted(name, it)


@name@()
"""
PASS = b"@name@.row()"


def errors(kinds: Iterable[bytes], said: str) -> list[bytes]:
    """How what expects an error of one of these kinds, which are what `except` takes it for, is noted.

    It is told when it is done what is to be raised, so that nobody knows it who hears it before.
    """
    return [b"@name@.raising(lambda: %%b, lambda: [%b], lambda: '%b')" % (b", ".join(kinds), said.encode())]


def around(source: bytes, statements: tuple[int, int], line: bytes) -> list[Written]:
    """What notes comparisons before and behind a test's statements; nothing without a line of their own."""
    begin, end, last = *statements, len(source)
    before, behind = b"@name@.begin('@held@')" + line, line + b"@name@.end('@held@')"
    noting = [((begin, begin), before), ((last, last), _NOTING), ((end, end), behind)]
    return noting if line else []
