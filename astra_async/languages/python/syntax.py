"""Python's syntax trees, as the reader of its tests reads them."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
_OF_LANGUAGE = {*dir(builtins), "date", "datetime", "timedelta", "Decimal"}
_ACTING = ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr
_PLAIN_WORDS = re.compile(r"\^?[\w ,:-]+\$?")
_PLAIN = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Load)


def leaves(body: Iterable[ast.AST]) -> bool:
    """Whether statements may leave the function that they stand in."""
    nodes = list(body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return False


def used_once(function: Function) -> frozenset[str]:
    """Names of a function that are given something in one place, and are used in one."""
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name))
    used = Counter(each.id for each in names if isinstance(each.ctx, ast.Load))
    return stored_once(function) & {name for name, count in used.items() if count == 1}


def stored_once(function: Function) -> frozenset[str]:
    """Names of a function that are given something in one place."""
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name))
    stored = Counter(each.id for each in names if isinstance(each.ctx, ast.Store))
    stored += Counter(each.arg for each in (*function.args.args, *function.args.kwonlyargs))
    return frozenset(name for name, count in stored.items() if count == 1)


def made_of(call: ast.Call) -> set[str]:
    """The arguments of a call, written out."""
    return {ast.dump(each) for each in (*call.args, *(keyword.value for keyword in call.keywords))}


def parameters_with_rows(test: Function) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """The parameters of a test that it uses once, with what rows give them."""
    once = used_once(test)
    for call in test.decorator_list:
        if isinstance(call, ast.Call) and callee(call) == "parametrize" and len(call.args) > 1:
            for name, column in _columns(*call.args[:2]):
                if name in once and len(column) > 1:
                    yield name, column


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that stand in expressions."""
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def _columns(names: ast.expr, rows: ast.expr) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """The parameters of a test with what each row gives them."""
    plain = getattr(names, "value", None)
    listed = re.split(r"\s*,\s*", plain) if isinstance(plain, str) else []
    listed = listed or [str(getattr(each, "value", "")) for each in getattr(names, "elts", ())]
    given = [getattr(row, "elts", [row]) for row in getattr(rows, "elts", ())]
    if all(len(row) == len(listed) for row in given):
        yield from zip(listed, zip(*given, strict=True), strict=False)


def is_fixture(node: Function) -> bool:
    """Whether pytest calls a function for other tests, whatever its name."""
    names = (each for decorator in node.decorator_list for each in ast.walk(decorator))
    return any("fixture" in (getattr(each, "attr", "") or getattr(each, "id", "")) for each in names)


def is_plain(node: ast.expr) -> bool:
    """Whether a value is made of constants alone, and lists and tables of them."""
    return all(isinstance(each, _PLAIN) for each in ast.walk(node))


def is_fixed(value: ast.expr) -> bool:
    """Whether an expression has no names but its own, and those of the language."""
    names = [each for each in ast.walk(value) if isinstance(each, ast.Name)]
    own = {each.id for each in names if isinstance(each.ctx, ast.Store)} | _OF_LANGUAGE
    return not isinstance(value, ast.Await) and own >= {each.id for each in names}


def is_repeatable(row: ast.expr) -> bool:
    """Whether nothing but its value can come of it that an expression is asked for once more."""
    return not any(isinstance(each, _ACTING) for each in ast.walk(row))


def kinds_asked(call: ast.expr) -> list[ast.expr]:
    """The kinds of an error that is asked for, if there are any: what has one of these names is one kind."""
    given: list[ast.expr] = getattr(call, "args", [])[:1]
    kinds = (kind for each in given for kind in getattr(each, "elts", [each]))
    return [each for each in kinds if isinstance(each, ast.Name | ast.Attribute)]


def said(call: ast.expr) -> str:
    """What an error that is asked for has to say among other things, if that is written in plain words."""
    given = [
        *getattr(call, "args", ())[1:2],
        *(each.value for each in getattr(call, "keywords", ()) if each.arg == "match"),
    ]
    texts = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return "".join(each.strip("^$") for each in texts if _PLAIN_WORDS.fullmatch(each))


def unsigned(node: ast.expr) -> ast.expr:
    """A number without the sign before it."""
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node


def callee(node: ast.expr) -> str:
    """The last name of what a call calls, or of what stands there without a call."""
    function = node.func if isinstance(node, ast.Call) else node
    return str(getattr(function, "attr", "") or getattr(function, "id", ""))


def asked_of(node: ast.expr) -> str:
    """What an expression gives, in the word that its text ends with."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return callee(node)
