"""How a test in JavaScript ends: with its last statement, a promise, or a call when it is done.

See `languages.altering`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.javascript.assertions import FUNCTIONS
from astra_async.languages.javascript.noting import ALL_SAME, ALL_SAME_THEN, BEFORE, NOTING
from astra_async.languages.syntax import TestFile, inside, source, spans, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from astra_async.languages.rows import Written


_DONE = frozenset({"done", "cb", "callback", "next"})
# What gives an error, if there is one, to the function that a test calls when it is done.
_FAILING = re.compile(r"if \((\w+)\)\s*\{?\s*(?:return )?\w+\(\1\);?\s*\}?")


def around(function: Node, file: TestFile) -> list[Written]:
    """What notes comparisons before and behind a test's statements, if it goes through them to its end."""
    body = function.child_by_field_name("body")
    held = [] if body is None or body.type != "statement_block" else body.named_children
    if not held or b"concurrent" in file.text:
        return []
    before = [((at, at), text) for at, text in ((held[0].start_byte, BEFORE), (len(file.text), NOTING))]
    if done := done_of(function):
        ends = list(_ends(function, done))
        return [*before, ((ends[0].start_byte,) * 2, ALL_SAME)] if len(ends) == 1 and ends[0] else []
    if held[-1].type != "return_statement":
        return [*before, ((held[-1].end_byte,) * 2, ALL_SAME)]
    for begin, end in spans([each for each in held[-1].named_children if each.type == "call_expression"]):
        return [*before, ((begin, begin), b"Promise.resolve("), ((end, end), ALL_SAME_THEN)]
    return []


def done_of(function: Node) -> str:
    """The parameter that a test's function calls when it is done, if it has one."""
    alone = function.child_by_field_name("parameter")
    parameters = inside(function, "parameters") if alone is None else [alone]
    return source(parameters[-1]) if parameters and source(parameters[-1]) in _DONE else ""


def leaves_early(body: Node, done: str) -> bool:
    """Whether a statement of the function itself, but its last one, may end it."""
    last = body.named_children[-1:]
    waiting = [each for each in body.named_children if each not in last]
    waiting += [each for each in last if each.type != "return_statement"]
    while waiting:
        node = waiting.pop()
        if node.type == "return_statement":
            if not done or not re.match(rf"return {done}\(\s*\w", source(node)):
                return True
        elif node.type not in FUNCTIONS and "function" not in node.type and not node.type.startswith("class"):
            waiting += node.named_children
    return False


def callbacks_that_end(statement: Node, done: str) -> Iterator[Node]:
    """Functions in it of which one has to have run for the test to have ended."""
    for node in walk(statement):
        body = node.child_by_field_name("body") if node.type in FUNCTIONS else None
        if body is not None and any(source(each).rstrip(";") == f"{done}()" for each in body.named_children):
            yield node


def _ends(function: Node, done: str) -> Iterator[Node | None]:
    """The statements that end a test; None for what may end it otherwise than with an error."""
    for each in walk(function.child_by_field_name("body") or function):
        if each.type != "identifier" or source(each) != done:
            continue
        held = list(_holding(each))
        texts = [source(at).rstrip(";") for at in held]
        if texts[:2] == [f"{done}()"] * 2:
            yield held[1]
        elif not (any(map(_FAILING.fullmatch, texts)) or "".join(texts[1:2]).endswith(f".catch({done})")):
            yield None


def _holding(node: Node) -> Iterator[Node]:
    while node.parent is not None and node.parent.type not in FUNCTIONS:
        node = node.parent
        yield node
