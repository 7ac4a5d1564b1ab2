"""Python's tests for trials: pytest, unittest, Django's test cases. See `languages.altering`."""

from __future__ import annotations

import ast
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    FEWER,
    LISTED,
    MORE,
    NAME,
    ORDER,
    SHAPES,
    Alteration,
    DeclaredTest,
    Rows,
    arranged,
    both_ways,
    constant,
    far,
    in_loop,
    listed,
    named,
    new_name,
    not_held,
    otherwise,
    within,
)
from astra_async.languages.python.syntax import (
    Function,
    asked_of,
    callee,
    is_fixture,
    is_plain,
    leaves,
    names_in,
    parameters_with_rows,
    unsigned,
    used_once,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# CPython 3.11 counts the depth of the tree that it makes for all threads together, and raises a SystemError
# where two are at it and the collector of garbage, which any new object may start, runs Python code.
_ONE_AT_A_TIME = threading.Lock()
_EQUAL = {
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual",
    "assertAlmostEqual", "assertCountEqual", "assertSequenceEqual", "assertMultiLineEqual",
}  # fmt: skip
_UNORDERED = {"assertCountEqual", "assertSetEqual", "assertDictEqual"}
_OPPOSITES = both_ways({
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIn": "assertNotIn",
    "assertIs": "assertIsNot", "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual", "assertLess": "assertGreaterEqual",
    "assertContains": "assertNotContains",
})  # fmt: skip
_WITHIN = {"assertIn": 0, "assertContains": 1}  # by the place of the argument that is looked for
_NOT_IN = b"(lambda: %b)", b"(lambda: [%b])"  # an answer's own `in` may well take a list
# What an assertion does not hold of, whatever is asked about: the place that is written differently, and the
# argument out of whose text.
_OTHERS = {
    "assertTrue": (0, 0, b"not (%b)", b"not [%b]"), "assertFalse": (0, 0, b"not (%b)", b"[%b]"),
    "assertIsNotNone": (0, 0, b"[%b].clear()", b"[%b].sort()"), "assertNotIn": (1, 0, b"[%b]", b"(%b,)"),
    "assertIn": (0, 0, *_NOT_IN), "assertIsNone": (0, 0, b"[%b]", b"(%b,)"),
    "assertIsInstance": (0, 0, b"[%b]", b"(%b,)"), "assertRegex": (0, 0, b"[%b]", b"(%b,)"),
    "assertIs": (1, 1, b"[%b]", b"(%b,)"), "assertGreater": (1, 1, b"[%b]", b"(%b,)"),
    "assertGreaterEqual": (1, 1, b"[%b]", b"(%b,)"), "assertLess": (1, 1, b"[%b]", b"(%b,)"),
    "assertLessEqual": (1, 1, b"[%b]", b"(%b,)"),
}  # fmt: skip
_OPERATORS = both_ways({"==": "!=", "<": ">=", ">": "<=", "in": "not in", "is": "is not"})
# A tuple of one element would be written otherwise, and a set has no order.
_SHAPES_LEFT_OUT: dict[type, set[str]] = {ast.Tuple: {FEWER}, ast.Set: {ORDER, MORE}}
# What another error is asked as: an honest one may well be of two of the usual kinds, and hardly of these.
_RAISED = ("BufferError", "RecursionError", "ReferenceError")
_LEAVING = ast.Break | ast.Continue
_MAKING = {"date", "datetime", "time", "timedelta", "set", "frozenset", "dict", "list", "tuple"}
_RAISES = {"raises", "assertRaises", "assertRaisesMessage", "assertRaisesRegex"}


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a module."""
    try:
        with _ONE_AT_A_TIME:
            tree = ast.parse(source.decode())  # in another encoding places would be others
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    reader = _Reader(source, tree)
    return tuple(named(reader.tests(tree.body), source, dict(reader.declared(tree.body))))


class _Reader:
    """Reads one module; places are in bytes."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self.source = source
        functions = [each for each in ast.walk(tree) if isinstance(each, Function)]
        counts = Counter(each.name for each in functions)
        self.functions = {each.name: each for each in functions if counts[each.name] == 1}
        self.entered: set[Function] = set()
        bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        self.starts = [bom, *(each.end() for each in re.finditer(rb"\r\n|\n|\r", source))]
        # Of the function that is being read: names with one use, and what they are given; rows of parameters.
        self.once: frozenset[str] = frozenset()
        self.given: dict[str, Sequence[ast.expr]] = {}
        self.parameters: dict[str, Sequence[ast.expr]] = {}

    def declared(self, body: Sequence[ast.stmt]) -> Iterator[tuple[bytes, bytes]]:
        """The module's constants that are written as they are, by name."""
        for node in body:
            if isinstance(node, ast.Assign) and not names_in([node.value]):
                value = self.source[slice(*self._span(node.value))]
                yield from ((each.id.encode(), value) for each in node.targets if isinstance(each, ast.Name))

    def tests(self, body: Sequence[ast.stmt]) -> Iterator[DeclaredTest]:
        """Test functions and methods, also those that stand under a condition."""
        for node in body:
            if isinstance(node, Function):
                if node.name.startswith("test") and not is_fixture(node):
                    self.parameters = dict(parameters_with_rows(node))
                    yield DeclaredTest((node.name,), tuple(self._asked_by(node, {})))
            elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
                yield from self.tests([*node.body, *getattr(node, "orelse", [])])

    def _asked_by(self, function: Function, given: dict[str, Sequence[ast.expr]]) -> list[Alteration]:
        """What every run of a function asks, whose parameters are given this."""
        if leaves(function.body):
            return []
        before = self.once, self.given
        self.once = used_once(function)
        assigned = {
            each.targets[0].id: (each.value,)
            for each in function.body
            if isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
        }
        self.given = {name: each for name, each in (assigned | given).items() if name in self.once}
        found = list(self.alterations(function.body))
        self.once, self.given = before
        return found

    def alterations(self, body: Sequence[ast.stmt]) -> Iterator[Alteration]:
        """What every run of these statements asks."""
        for node in body:
            if isinstance(node, ast.Assert):
                yield from self._assert(node.test)
            elif isinstance(node, ast.Expr):
                yield from self._call(node.value)
            elif isinstance(node, ast.For):
                yield from self._loop(node)
            elif isinstance(node, ast.With | ast.AsyncWith):
                names = [callee(item.context_expr) for item in node.items]
                if any(name in _RAISES for name in names):
                    yield from self._raises(node.items[0].context_expr)
                elif not any(name.startswith(("assert", "suppress", "warns", "raises")) for name in names):
                    yield from self.alterations(node.body)

    def _call(self, value: ast.expr) -> Iterator[Alteration]:
        call = value.value if isinstance(value, ast.Await) else value
        if not isinstance(call, ast.Call):
            return
        own = self.functions.get(callee(call))
        is_here = isinstance(call.func, ast.Name) or callee(getattr(call.func, "value", call)) == "self"
        if own is None or not is_here:
            yield from self._method(call)
        elif isinstance(own, ast.AsyncFunctionDef) == isinstance(value, ast.Await):
            yield from self._own(call, own)

    def _own(self, call: ast.Call, function: Function) -> Iterator[Alteration]:
        """What a function of the file asks with what this call gives it: places outside of the function."""
        if function in self.entered or any(isinstance(each, ast.Starred) for each in call.args):
            return
        names = [each.arg for each in function.args.args if each.arg != "self"]
        given = dict(zip(names, call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
        known = {name: self._given(value) for name, value in given.items()}
        # A name means what it does where the call stands: it is left out if it would be read as another.
        inner = {name: each for name, each in known.items() if not names_in(each) & {*names, *self.given}}
        self.entered.add(function)
        found = self._asked_by(function, inner)
        self.entered.remove(function)
        begin, end = self._span(function)
        yield from (each for each in found if not begin <= each.begin < end)

    def _given(self, node: ast.expr) -> Sequence[ast.expr]:
        """What a name is given, else the expression itself."""
        return self.given.get(node.id, (node,)) if isinstance(node, ast.Name) else (node,)

    def _loop(self, loop: ast.For) -> Iterator[Alteration]:
        """What a loop asks over rows that stand in the source."""
        (over, *others), target = self._given(loop.iter), loop.target
        rows: Sequence[ast.expr] = () if others else getattr(over, "elts", ())
        leaves = any(isinstance(each, _LEAVING) for each in ast.walk(loop))
        if len(rows) <= 1 or leaves or any(isinstance(each, ast.Starred) for each in rows):
            return
        targets = getattr(target, "elts", [target])
        columns = (
            [rows] if targets == [target] else zip(*(getattr(row, "elts", ()) for row in rows), strict=False)
        )
        for each, column in zip(targets, columns, strict=False):
            if isinstance(each, ast.Name) and each.id in self.once:
                self.given[each.id] = column
        place = self._span(target)
        is_bare = isinstance(target, ast.Tuple) and self.source[place[0]] != ord("(")
        patterns = b"(%b), %b" if is_bare else b"%b, %b", b"(%b, %b)"
        around = Rows(new_name(self.source), place, tuple(map(self._span, rows)), patterns)
        yield from in_loop(self.alterations(loop.body), self._span(loop), around)

    def _assert(self, test: ast.expr) -> Iterator[Alteration]:
        begin, _ = self._span(test)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for each in test.values:
                yield from self._assert(each)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            end = begin + len(b"not")
            yield Alteration(begin, end + (self.source[end : end + 1] == b" "), others=(b"",))
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            match test.ops[0]:
                case ast.Eq() | ast.Is():
                    yield from self._compared(left, right, named=isinstance(test.ops[0], ast.Is))
                case ast.In():
                    span = self._span(left)
                    short = not_held(self.source, constant(self.source, *span))
                    yield from (
                        within(self.source, *span) or (*short,) or (otherwise(self.source, span, *_NOT_IN),)
                    )
                case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
                    yield listed(self.source, *self._span(right))
            yield from self._operator(left, right)
        elif isinstance(test, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
            yield Alteration(begin, begin, others=(b"not ",))

    def _operator(self, left: ast.expr, right: ast.expr) -> Iterator[Alteration]:
        begin, end = self._span(left)[1], self._span(right)[0]
        found = re.fullmatch(rb"([\s)]*)([!=<>]=?|(?:not )?in|is(?: not)?)([\s(]*)", self.source[begin:end])
        other = _OPERATORS.get(found[2].decode()) if found else None
        if found and other:
            yield Alteration(begin + found.start(2), begin + found.end(2), others=(other.encode(),))

    def _method(self, call: ast.Call) -> Iterator[Alteration]:
        name = callee(call)
        if not isinstance(call.func, ast.Attribute):
            return
        sides = [each for each in call.args[:2] if not isinstance(each, ast.Starred)]
        if name in _RAISES:
            yield from self._raises(call)
        elif name in _EQUAL and len(sides) > 1:
            found = self._compared(*sides)
            if name in _UNORDERED:
                found = [each for each in found if each.kind != ORDER]
            yield from far(self.source, found) if name == "assertAlmostEqual" else found
        elif len(sides) > 1 and (place := _WITHIN.get(name)) is not None:
            yield from within(self.source, *self._span(sides[place]))
        if (other := _OTHERS.get(name)) and len(sides) > max(other[:2]):
            yield from self._otherwise(sides[other[0]], sides[other[1]], other[2:])
        end = self._span(call.func)[1]
        if name in _OPPOSITES:
            yield Alteration(end - len(name), end, others=(_OPPOSITES[name].encode(),))

    def _otherwise(
        self, place: ast.expr, out_of: ast.expr, patterns: Iterable[bytes]
    ) -> Iterator[Alteration]:
        """An argument's place, with what may stand there: out of its text, or of another's that is a name."""
        begin, end = self._span(out_of)
        others = tuple(each % self.source[begin:end] for each in patterns)
        if place is out_of or isinstance(out_of, ast.Name | ast.Constant):
            yield Alteration(*self._span(place), LISTED, others)

    def _compared(self, left: ast.expr, right: ast.expr, *, named: bool = False) -> list[Alteration]:
        """The constants of two sides that are to be equal, else those that make objects, else a list."""
        for made in (False, True):
            found = [
                *self._constants(left, asked_of(right), made=made),
                *self._constants(right, asked_of(left), made=made),
            ]
            if found or named:
                break
        shapes = [] if named else [*self._arranged(left), *self._arranged(right)]
        if not found and not named:
            found = [listed(self.source, *self._span(each)) for each in self._given(right)]
        return [*found, *shapes]

    def _arranged(self, node: ast.expr) -> Iterator[Alteration]:
        """A list or table that is expected, of another shape; of a list in a list the outer one alone.

        One that calls are made for is what is asked about.
        """
        for each in self._given(node):
            has_calls = any(isinstance(part, ast.Call) for part in ast.walk(each))
            inner = getattr(each, "elts", []) if not has_calls else []
            if isinstance(each, ast.Dict) and not has_calls and None not in each.keys:
                keys, inner = map(self._span, filter(None, each.keys)), each.values
                parts = [(key[0], self._span(value)[1]) for key, value in zip(keys, inner, strict=True)]
                yield from arranged(self.source, self._span(each), parts, kinds={FEWER})
            elif inner and not any(isinstance(part, ast.Starred) for part in inner):
                plain = [number for number, part in enumerate(inner) if is_plain(part)]
                kinds = set(SHAPES) - _SHAPES_LEFT_OUT.get(type(each), set())
                yield from arranged(self.source, self._span(each), [*map(self._span, inner)], plain, kinds)
                inner = inner if len(inner) == 1 else []
            for part in inner:
                yield from self._arranged(part)

    def _constants(self, node: ast.expr, asked: str, *, made: bool) -> Iterator[Alteration]:
        """The constants of which a value is made, if it is made of constants and lists of them.

        `made`: and of objects that are made of constants (`Decimal("1.50")`).
        """
        if isinstance(node, ast.Name):
            yield from self._name(node, asked, made=made)
        elif isinstance(unsigned(node), ast.Constant) and node.lineno == node.end_lineno:
            yield from constant(self.source, *self._span(node), asked)
        elif isinstance(node, ast.BinOp) and not names_in([node]):
            for each in (node.left, node.right):
                yield from self._constants(each, asked, made=made)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            for each in node.elts:
                yield from self._constants(each, asked, made=made)
        elif made and isinstance(node, ast.Call):
            yield from self._arguments(node, asked)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from self._constants(value, str(getattr(key, "value", asked)), made=made)

    def _name(self, node: ast.Name, asked: str, *, made: bool) -> Iterator[Alteration]:
        """What a name is given, or the name of another constant of the file."""
        for each in self.given.get(node.id, ()):
            yield from self._constants(each, asked, made=made)
        if node.id.isupper() and node.id not in self.given:
            yield Alteration(*self._span(node), NAME, asked=asked)
        if given := self.parameters.get(node.id):
            # Where the test's name says what its row expects: what another row does.
            spans = [self._span(each) for each in given if isinstance(each, ast.Constant)]
            rows = dict.fromkeys(self.source[begin:end] for begin, end in spans)
            yield Alteration(*self._span(node), "rows", tuple(rows), asked)

    def _arguments(self, call: ast.Call, asked: str) -> Iterator[Alteration]:
        """The constants out of which a call makes a value; of a program's own class only where it is one."""
        found = [one for each in call.args for one in self._constants(each, asked, made=True)]
        name, holder = callee(call), callee(getattr(call.func, "value", call.func))
        is_own = name[:1].isupper() or (name == "of" and holder[:1].isupper())
        if name == "approx":
            yield from far(self.source, found)
        elif name in _MAKING or (is_own and len(call.args) + len(call.keywords) == len(found) == 1):
            yield from found

    def _raises(self, call: ast.expr) -> Iterator[Alteration]:
        if not isinstance(call, ast.Call):
            return
        for given in call.args[:1]:
            if isinstance(given, ast.Name | ast.Attribute) and callee(given)[:1].isupper():
                others = tuple(each.encode() for each in _RAISED if each != callee(given))
                yield Alteration(*self._span(given), "raised", others)
        for keyword in call.keywords:
            if keyword.arg == "match":
                yield from within(self.source, *self._span(keyword.value))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column
