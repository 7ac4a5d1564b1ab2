"""Python's tests for trials: pytest, unittest, Django's test cases. See `languages.altering`."""

from __future__ import annotations

import ast
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    COMPARED,
    ORDER,
    RAISED,
    SUBJECT,
    Alteration,
    DeclaredTest,
    anchored,
    compared,
    constant,
    declared_test,
    far,
    held_by_none,
    in_loop,
    listed,
    not_held,
    other_subject,
    rows_anew,
    within,
)
from astra_async.languages.other_values import named
from astra_async.languages.python.assertions import (
    CALLED,
    CALLED_WITH,
    EQUAL,
    LISTS,
    MANAGERS,
    NEAR,
    NOT_IN,
    OPERATORS,
    OPPOSITES,
    OTHER_ERRORS,
    OTHERS,
    RAISES,
    UNORDERED,
    WITHIN,
)
from astra_async.languages.python.noting import COMPARING, DENIED, HOLDS, PASS, TRUE, around, errors
from astra_async.languages.python.syntax import (
    Function,
    callee,
    is_fixed,
    is_fixture,
    is_repeatable,
    kinds_asked,
    leaves,
    made_of,
    names_in,
    parameters_with_rows,
    said,
    stored_once,
    used_once,
)
from astra_async.languages.python.values import ARRANGING, HOLDERS, Values
from astra_async.languages.rows import Choosing, telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# CPython 3.11 counts the depth of the tree that it makes for all threads together, and raises a SystemError
# where two are at it and the collector of garbage, which any new object may start, runs Python code.
_ONE_AT_A_TIME = threading.Lock()
_LEAVING = ast.Break | ast.Continue
_FOR_ROW = Choosing(
    b"(%(name)b := %(row)b)",
    b"(%(other)b if %(variable)b is %(name)b else %(same)b)",
    anew=(b"lambda: %b", b"None", b"@name@.rows(%(over)b, [%(rows)b], @first@)"),
)


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a module."""
    try:
        with _ONE_AT_A_TIME:
            tree = ast.parse(source.decode())  # in another encoding places would be others
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    reader = _Reader(source, tree)
    declared = dict(reader.declared(tree.body))
    return tuple(named(reader.tests(tree.body), source, declared, ARRANGING, HOLDERS))


class _Reader(Values):
    """Reads one module; places are in bytes."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        super().__init__(source)
        functions = [each for each in ast.walk(tree) if isinstance(each, Function)]
        counts = Counter(each.name for each in functions)
        self.functions = {each.name: each for each in functions if counts[each.name] == 1}
        self.entered: set[Function] = set()

    def declared(self, body: Sequence[ast.stmt]) -> Iterator[tuple[bytes, bytes]]:
        """The module's constants that are written as they are, by name."""
        for node in body:
            if isinstance(node, ast.Assign) and not names_in([node.value]):
                value = self.source[slice(*self.span(node.value))]
                yield from ((each.id.encode(), value) for each in node.targets if isinstance(each, ast.Name))

    def tests(self, body: Sequence[ast.stmt]) -> Iterator[DeclaredTest]:
        """Test functions and methods, also those that stand under a condition."""
        for node in body:
            if isinstance(node, Function):
                if node.name.startswith("test") and not is_fixture(node):
                    self.parameters = dict(parameters_with_rows(node))
                    places = self.span(node.body[0])[0], self.span(node.body[-1])[1]
                    noting = around(self.source, places, self._line(node.body[0]))
                    yield declared_test((node.name,), self._asked_by(node, {}), noting)
            elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
                yield from self.tests([*node.body, *getattr(node, "orelse", [])])

    def _line(self, statement: ast.stmt) -> bytes:
        """The begin of a line of statements like this one; nothing where others stand before it."""
        begin, _ = self.span(statement)
        indent = b"\n" + self.source[self.source.rfind(b"\n", 0, begin) + 1 : begin]
        return indent if indent.isspace() else b""

    def _asked_by(self, function: Function, given: dict[str, Sequence[ast.expr]]) -> list[Alteration]:
        """What every run of a function asks, whose parameters are given this."""
        if leaves(function.body):
            return []
        before = self.once, self.given, self.made, self.fixed
        self.once = used_once(function)
        assigned = {
            each.targets[0].id: (each.value,)
            for each in function.body
            if isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
        }
        self.given = {name: each for name, each in (assigned | given).items() if name in self.once}
        stored = stored_once(function)
        known = {name: each for name, (each,) in assigned.items() if name in stored}
        calls = ((name, each) for name, each in known.items() if isinstance(each, ast.Call))
        self.made = {name: each for name, each in calls if made_of(each)}
        self.fixed = {name: each for name, each in known.items() if is_fixed(each)}
        found = list(self.alterations(function.body))
        self.once, self.given, self.made, self.fixed = before
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
                yield from self._managed(node)
            elif isinstance(node, ast.Try) and not node.handlers:
                yield from self.alterations([*node.body, *node.finalbody])

    def _managed(self, node: ast.With | ast.AsyncWith) -> Iterator[Alteration]:
        """What a block asks whose managers are known."""
        names = [callee(item.context_expr) for item in node.items]
        raising = [item for item, name in zip(node.items, names, strict=True) if name in RAISES]
        if raising and isinstance(node, ast.With):
            call = raising[0].context_expr
            yield from self._raises(call)
            kinds = (self.source[slice(*self.span(each))] for each in kinds_asked(call))
            yield from compared(self.source, [self.span(call)], errors(kinds, said(call)), b" ")
            # Of more, another right answer may raise in an earlier one, or in what it enters.
            if len(node.items) == len(node.body) == 1:
                yield Alteration(*self.span(node.body[0]), SUBJECT, (b"None", b"raise TabError()"))
        elif all(name in MANAGERS for name in names):
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
        known = {name: self.meant(value) for name, value in given.items()}
        # A name means what it does where the call stands: it is left out if it would be read as another.
        inner = {name: each for name, each in known.items() if not names_in(each) & {*names, *self.given}}
        self.entered.add(function)
        found = self._asked_by(function, inner)
        self.entered.remove(function)
        begin, end = self.span(function)
        is_noted = b"except" not in self.source  # nothing is tried again until it holds
        yield from (
            each for each in found if (each.kind == COMPARED and is_noted) or not begin <= each.begin < end
        )

    def _loop(self, loop: ast.For) -> Iterator[Alteration]:
        """What a loop asks over rows that stand in the source."""
        (over, *others), target = self.meant(loop.iter), loop.target
        rows: Sequence[ast.expr] = () if others else getattr(over, "elts", ())
        leaves = any(isinstance(each, _LEAVING) for each in ast.walk(loop))
        if len(rows) <= 1 or leaves or any(isinstance(each, ast.Starred) for each in rows):
            return
        targets = getattr(target, "elts", [target])
        columns = (
            [rows] if targets == [target] else zip(*(getattr(row, "elts", ()) for row in rows), strict=False)
        )
        named = [
            (name, each) for name, each in zip(targets, columns, strict=False) if isinstance(name, ast.Name)
        ]
        for name, column in named:
            if name.id in self.once:
                self.given[name.id] = column
        by_name = ((name.id.encode(), [self.span(each) for each in column]) for name, column in named)
        asked, places = self.alterations(loop.body), [self.span(each) for each in rows]
        is_own = over is loop.iter or not self.entered  # a parameter is given other rows by another call
        texts = [self.source[begin:end] for begin, end in places]
        again = [text * (is_own and is_repeatable(row)) for row, text in zip(rows, texts, strict=True)]
        begin, passes = self.span(loop.body[0])[0], PASS + (self._line(loop.body[0]) or b"; ")
        yield from rows_anew(self.source, self.span(loop.iter), again, _FOR_ROW, [((begin, begin), passes)])
        yield from in_loop(asked, self.span(loop), places, telling(self.source, by_name, _FOR_ROW))

    def _assert(self, test: ast.expr) -> Iterator[Alteration]:
        begin, _ = self.span(test)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for each in test.values:
                yield from self._assert(each)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from compared(self.source, [self.span(test.operand)], DENIED, b" ")
            end = begin + len(b"not")
            yield Alteration(begin, end + (self.source[end : end + 1] == b" "), others=(b"",))
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            sides = [self.span(left), self.span(right)]
            yield from compared(self.source, sides, COMPARING[type(test.ops[0])], b" ")
            match test.ops[0]:
                case ast.Eq():
                    yield from self.compared(left, right)
                case ast.Is():
                    found = self.compared(left, right, named=True)
                    yield from found or [listed(self.source, *self.span(right), LISTS)]
                case ast.In():
                    span = self.span(left)
                    short = not_held(self.source, constant(self.source, *span))
                    yield from (
                        within(self.source, *span) or (*short,) or (listed(self.source, *span, NOT_IN),)
                    )
                case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
                    yield listed(self.source, *self.span(right), HOLDERS)
            yield from self._operator(left, right)
        elif isinstance(test, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
            yield from compared(self.source, [self.span(test)], TRUE, b" ")
            yield Alteration(begin, begin, others=(b"not ",))
            yield from self._otherwise(test, test, OTHERS["assertTrue"][2])

    def _operator(self, left: ast.expr, right: ast.expr) -> Iterator[Alteration]:
        begin, end = self.span(left)[1], self.span(right)[0]
        found = re.fullmatch(rb"([\s)]*)([!=<>]=?|(?:not )?in|is(?: not)?)([\s(]*)", self.source[begin:end])
        other = OPERATORS.get(found[2].decode()) if found else None
        if found and other:
            yield Alteration(begin + found.start(2), begin + found.end(2), others=(other.encode(),))

    def _method(self, call: ast.Call) -> Iterator[Alteration]:
        name = callee(call)
        if not isinstance(call.func, ast.Attribute):
            return
        sides = [each for each in call.args[:2] if not isinstance(each, ast.Starred)]
        if name in RAISES:
            yield from self._raises(call)
        elif name in EQUAL and len(sides) > 1:
            found = self.compared(*sides)
            if name in UNORDERED:
                found = [each for each in found if each.kind != ORDER]
            yield from far(self.source, found) if name in NEAR else found
            is_first = not isinstance(sides[0], ast.List | ast.Tuple | ast.Dict | ast.Constant)
            about, expected = sides if is_first else sides[::-1]
            parts = len(expected.elts) if isinstance(expected, ast.List | ast.Tuple) else None
            yield from other_subject(self.span(about), found, parts, b"{'none': @drawn@}")
        elif name in CALLED_WITH:
            values = (*call.args, *(each.value for each in call.keywords))
            found = [each for value in values for each in constant(self.source, *self.span(value))]
            yield from held_by_none(self.source, found)
        elif len(sides) > 1 and (place := WITHIN.get(name)) is not None:
            yield from within(self.source, *self.span(sides[place]))
        if name != "assertAlmostEqual" or len(call.args) + len(call.keywords) == len(sides):
            yield from compared(self.source, [*map(self.span, sides)], HOLDS.get(name, ()), b" ")
        if (other := OTHERS.get(name)) and len(sides) > max(other[:2]):
            yield from self._otherwise(sides[other[0]], sides[other[1]], other[2])
        end = self.span(call.func)[1]
        if name in OPPOSITES:
            yield Alteration(end - len(name), end, others=(OPPOSITES[name].encode(),))

    def _otherwise(
        self, place: ast.expr, out_of: ast.expr, patterns: Iterable[bytes]
    ) -> Iterator[Alteration]:
        """An argument's place, with what may stand there: out of its text, or of another's that is a name."""
        begin, end = self.span(out_of)
        others = tuple(each.replace(b"%b", self.source[begin:end]) for each in patterns)
        if place is out_of or isinstance(out_of, ast.Name | ast.Constant):
            yield Alteration(*self.span(place), SUBJECT, others)

    def _raises(self, call: ast.expr) -> Iterator[Alteration]:
        if not isinstance(call, ast.Call):
            return
        for given in call.args[:1]:
            if isinstance(given, ast.Name | ast.Attribute) and callee(given)[:1].isupper():
                others = tuple(each.encode() for each in OTHER_ERRORS if each != callee(given))
                yield Alteration(*self.span(given), RAISED, others)
        for called in call.args[1:2]:
            yield Alteration(*self.span(called), SUBJECT, CALLED)
        for keyword in call.keywords:
            if keyword.arg == "match":
                yield from within(self.source, *self.span(keyword.value))
                yield from anchored(self.source, *self.span(keyword.value))
