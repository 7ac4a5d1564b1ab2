"""Values that Python's tests expect: their constants, and lists and tables of another shape."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    FEWER,
    KEYS,
    MORE,
    NAME,
    ORDER,
    SHAPES,
    Alteration,
    constant,
    far,
    nothing,
    table_key,
    unequal,
)
from astra_async.languages.other_values import arranged, made_list, of_other_parts, values_exchanged, varied
from astra_async.languages.python.syntax import (
    Function,
    asked_of,
    callee,
    is_fixed,
    is_plain,
    made_of,
    names_in,
    unsigned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MAKING = {"date", "datetime", "time", "timedelta", "set", "frozenset", "dict", "list", "tuple", "range"}
# A tuple of one element would be written otherwise, and a set has no order.
_SHAPES_LEFT_OUT: dict[type, set[str]] = {ast.Tuple: {FEWER}, ast.Set: {ORDER, MORE}}

ARRANGING = b"%b[::-1]", b"%b[1:]", b"%b + %b[:1]"
HOLDERS = b"{0: %b}", b"{1: %b}"  # a number of an array's equals a list of it, nothing a dictionary


class Values:
    """Reads values in a module's source; places are in bytes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        self.starts = [bom, *(each.end() for each in re.finditer(rb"\r\n|\n|\r", source))]
        # Of the function that is being read: names with one use, and what they are given; rows of parameters.
        self.once: frozenset[str] = frozenset()
        self.given: dict[str, Sequence[ast.expr]] = {}
        self.parameters: dict[str, Sequence[ast.expr]] = {}
        self.fixed: dict[str, ast.expr] = {}  # values that stand there, by their names
        self.functions: dict[str, Function] = {}  # the module's own
        self.made: dict[str, ast.Call] = {}  # by calls with arguments, in its own statements

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column

    def meant(self, node: ast.expr) -> Sequence[ast.expr]:
        """What a name is given, else the expression itself."""
        return self.given.get(node.id, (node,)) if isinstance(node, ast.Name) else (node,)

    def compared(self, left: ast.expr, right: ast.expr, *, named: bool = False) -> list[Alteration]:
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
            meant = (each for each in self.meant(right) if callee(each) != "ANY")
            found = [other for each in meant for other in self._unequal(each, [right])]
        return found + shapes

    def _arranged(self, node: ast.expr) -> Iterator[Alteration]:
        """A list or table that is expected, of another shape; of a list in a list the outer one alone.

        One that calls are made for is what is asked about.
        """
        for each in self.meant(node):
            has_calls = any(isinstance(part, ast.Call) for part in ast.walk(each))
            inner = getattr(each, "elts", []) if not has_calls else []
            if isinstance(each, ast.ListComp) and not has_calls:
                yield from made_list(self.source, self.span(each), ARRANGING)
            if isinstance(each, ast.Dict) and not has_calls and None not in each.keys:
                keys, inner = map(self.span, filter(None, each.keys)), each.values
                parts = [(key[0], self.span(value)[1]) for key, value in zip(keys, inner, strict=True)]
                yield from arranged(self.source, self.span(each), parts, kinds={FEWER})
                values = [self.span(value) for value in inner if is_plain(value)]
                yield from values_exchanged(self.source, self.span(each), values)
            elif inner and not any(isinstance(part, ast.Starred) for part in inner):
                plain = [number for number, part in enumerate(inner) if is_plain(part)]
                kinds = set(SHAPES) - _SHAPES_LEFT_OUT.get(type(each), set())
                yield from arranged(self.source, self.span(each), [*map(self.span, inner)], plain, kinds)
                inner = inner if len(inner) == 1 else []
            for part in inner:
                yield from self._arranged(part)

    def _unequal(self, node: ast.expr, beside: Iterable[ast.expr], asked: str = "") -> Iterator[Alteration]:
        """A value that no constant is, as what it does not equal.

        That is another object which the test has made in the same way of other parts, else what holds it; and
        what stands in the test, also under a name, is written out with another constant.
        """
        made = self.made.get(callee(node)) if isinstance(node, ast.Name) else None
        found, names = unequal(self.source, *self.span(node), HOLDERS), names_in(beside)
        others = tuple(
            name.encode()
            for name, call in self.made.items()
            if made is not None and name not in names and call.lineno < node.lineno
            if callee(call) == callee(made) and made_of(call).isdisjoint(made_of(made))
        )
        value = self.fixed.get(callee(node), node) if isinstance(node, ast.Name) else node
        is_text = isinstance(value, ast.JoinedStr)
        yield replace(found, others=others or found.others, asked=asked)
        if is_text or is_fixed(value):
            text = self.source[slice(*self.span(value))]
            yield from varied(replace(found, asked=asked), text, is_text=is_text)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = [*map(self.span, node.args), *(self.span(each.value) for each in node.keywords)]
            is_made = node.func.id[:1].isupper() or node.func.id in self.functions
            yield from of_other_parts(self.source, found, parts if is_made else ())

    def _constants(self, node: ast.expr, asked: str, *, made: bool) -> Iterator[Alteration]:
        """The constants of which a value is made, if it is made of constants and lists of them.

        `made`: and of objects that are made of constants (`Decimal("1.50")`).
        """
        if isinstance(node, ast.Name):
            yield from self._name(node, asked, made=made)
        elif isinstance(node, ast.Constant) and node.value is None:
            yield nothing(self.source, *self.span(node), HOLDERS)
        elif isinstance(unsigned(node), ast.Constant) and node.lineno == node.end_lineno:
            yield from constant(self.source, *self.span(node), asked)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            sides = [node.left, node.right]
            plain = [each for each in sides if isinstance(unsigned(each), ast.Constant)]
            for each in plain if names_in(sides) else sides:
                yield from self._constants(each, asked, made=made)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from self._parts(node.elts, asked)
        elif made and isinstance(node, ast.Call):
            yield from self._arguments(node, asked)
        elif isinstance(node, ast.Dict):
            yield from self._entries(node, asked)

    def _parts(self, parts: Sequence[ast.expr], asked: str) -> Iterator[Alteration]:
        """The constants of parts of a value; what has none as what it does not equal."""
        for part in parts:
            found = [*self._constants(part, asked, made=False)] or [*self._constants(part, asked, made=True)]
            yield from found
            is_value = not isinstance(part, ast.Starred | ast.List | ast.Tuple | ast.Dict | ast.Set)
            if not found and is_value and not callee(part).isupper():
                yield from self._unequal(part, parts, asked)

    def _entries(self, table: ast.Dict, asked: str) -> Iterator[Alteration]:
        """The keys of a table, and the constants that stand beside them."""
        for name, value in zip(table.keys, table.values, strict=True):
            for key in self.meant(name) if name is not None else ():
                if isinstance(key, ast.Constant):
                    yield from table_key(self.source, *self.span(key), quoted=True)
            yield from self._parts([value], str(getattr(name, "value", asked)))

    def _name(self, node: ast.Name, asked: str, *, made: bool) -> Iterator[Alteration]:
        """What a name is given, or the name of another constant of the file."""
        for each in self.given.get(node.id, ()):
            yield from self._constants(each, asked, made=made)
        if node.id.isupper() and node.id not in {*self.given, "ANY"}:
            yield Alteration(*self.span(node), NAME, asked=asked)
        if given := self.parameters.get(node.id):
            # Where the test's name says what its row expects: what another row does.
            spans = [self.span(each) for each in given if isinstance(each, ast.Constant)]
            rows = dict.fromkeys(self.source[begin:end] for begin, end in spans)
            yield Alteration(*self.span(node), "rows", tuple(rows), asked)

    def _arguments(self, call: ast.Call, asked: str) -> Iterator[Alteration]:
        """The constants out of which a call makes a value; of a program's own class only where it is one."""
        found = [one for each in call.args for one in self._constants(each, asked, made=True)]
        found = [each for each in found if each.kind not in KEYS]
        name, holder = callee(call), callee(getattr(call.func, "value", call.func))
        is_own = name[:1].isupper() or (name == "of" and holder[:1].isupper())
        if name == "approx":
            yield from far(self.source, found)
        elif name in _MAKING or (is_own and len(call.args) + len(call.keywords) == len(found) == 1):
            yield from found
