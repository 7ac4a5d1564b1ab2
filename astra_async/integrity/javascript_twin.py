"""The twin of a JavaScript or TypeScript test file: jest, mocha, vitest, jasmine (karma), node:test.

Found are calls of what the frameworks call a test (`it`, `test`, `specify`), under whatever name the file
knows it. Skipped and planned tests stay as they are: they are not passed either way.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from astra_async.integrity.javascript_falsehoods import Falsehoods, exception
from astra_async.integrity.javascript_names import FUNCTIONS, SCOPES, Names
from astra_async.integrity.javascript_tests import declared_tests, parameters_of
from astra_async.integrity.rewriting import Choice, Rewritten, Titles, draw_manner
from astra_async.integrity.syntax import Insertions, parse, source

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tree_sitter import Node

    from astra_async.integrity.javascript_tests import DeclaredTest

SUFFIXES = frozenset({"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"})
_TYPESCRIPT, _TSX = (
    ("tree_sitter_typescript", "language_typescript"),
    ("tree_sitter_typescript", "language_tsx"),
)
_JAVASCRIPT = ("tree_sitter_javascript", "language")
_ANGULAR = frozenset({"inject", "fakeAsync", "waitForAsync", "async"})  # make a test's body of a function
_DONE = frozenset({"done", "cb", "callback", "next", "finish", "finished", "end", "complete"})
_PLAIN = 0.4  # of the tests that could be called from another function fail at once


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
    """The twin of a test file; see `rewriting.Rewriter`."""
    data = text.encode(errors="replace")
    root = tree_of(path, data)
    if root is None:
        return Rewritten(text=text, left_out={path: "this file's syntax is not understood"})
    names, edits = Names(root), Insertions(data)
    writer = _Writer(edits, Falsehoods.of(root, names.runner), rng)
    tests, left_out = declared_tests(root, names)
    certain: list[Titles] = []
    for test in tests:
        if not test.doubt and (only is None or only(test.titles)):
            certain.append(test.titles)
        elif test.doubt:
            left_out[test.key] = test.doubt
        if only is None or (not test.doubt and only(test.titles)):
            writer.make_fail(test)
    if path.endswith(("ts", "tsx")) and tests:
        edits.at(_first_token(root), "// @ts-nocheck\n")
    return Rewritten(
        text=edits.text(), runner=names.runner, certain=tuple(dict.fromkeys(certain)), left_out=left_out
    )


def blurred(path: str, text: str, rng: random.Random) -> str:
    """The test file with statements in its tests that look like a twin's, and hold; the tests are the same.

    A comment of random words makes its size another one.
    """
    data = text.encode(errors="replace")
    root = tree_of(path, data)
    if root is None:
        return text
    names, edits = Names(root), Insertions(data)
    writer = _Writer(edits, Falsehoods.of(root, names.runner), rng)
    for test in declared_tests(root, names)[0]:
        writer.make_alike(test)
    edits.at(len(data), f"\n// {_words(rng)}\n")
    return edits.text()


def tree_of(path: str, data: bytes) -> Node | None:
    """The tree of a JavaScript or TypeScript file; None where its syntax is not understood."""
    suffix = path.rpartition(".")[2].lower()
    if suffix not in SUFFIXES:
        return None
    if suffix == "tsx":
        grammars = [_TSX]
    else:
        grammars = [_TYPESCRIPT] if suffix in {"ts", "mts", "cts"} else [_JAVASCRIPT, _TSX]
    roots = (parse(data, *grammar) for grammar in grammars)
    return next((root for root in roots if not root.has_error), None)


def _first_token(root: Node) -> int:
    """Where the code begins, behind the comments at the top, which jest and others read."""
    code = (node for node in root.children if node.type not in {"comment", "hash_bang_line"})
    first = next(code, None)
    return root.end_byte if first is None else first.start_byte


def _words(rng: random.Random) -> str:
    words = (
        "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(rng.randint(1, 12))
    )
    return " ".join(words)


class _Writer:
    """Puts failing statements into tests."""

    def __init__(self, edits: Insertions, falsehoods: Falsehoods, rng: random.Random) -> None:
        self._edits, self._falsehoods, self._rng = edits, falsehoods, rng

    def make_fail(self, test: DeclaredTest) -> None:
        """Make a test fail, in a manner that is drawn."""
        manner = draw_manner(self._rng)
        waits = test.body.type in FUNCTIONS and _is_async(test.body)
        block = open_block(test)
        if block is not None and not manner.at_once:
            fail = self._failing(test, assertion=manner.assertion, waits=waits, first=False)
            self._edits.within(block, "", f" ; {fail} ")
            return
        around = None if manner.at_once or self._rng.random() < _PLAIN else self._use(test)
        if around is not None:
            fail = self._failing(test, assertion=manner.assertion, waits=True, first=False)
            before, after = around
            self._edits.around(test.body, before, f"{after} {fail} }}")
            return
        self._at_once(test.body, self._failing(test, assertion=manner.assertion, waits=waits, first=True))

    def make_alike(self, test: DeclaredTest) -> None:
        """Give a test a statement that holds, where a twin of it would have one that does not."""
        manner = draw_manner(self._rng)
        block = open_block(test)
        if block is not None and not manner.at_once:
            self._edits.within(
                block, "", f" ; {self._falsehoods.truths(test.body, self._rng, first=False)}; "
            )
        elif test.body.type in FUNCTIONS and not _begins_with_directive(test.body):
            self._at_once(test.body, f"{self._falsehoods.truths(test.body, self._rng, first=True)};")

    def _failing(self, test: DeclaredTest, *, assertion: bool, waits: bool, first: bool) -> str:
        if assertion:
            return f"{self._falsehoods.assertions(test.body, self._rng, waits=waits, first=first)};"
        return f"{exception(self._rng, waits=waits)};"

    def _at_once(self, body: Node, fail: str) -> None:
        block = body.child_by_field_name("body")
        if body.type not in FUNCTIONS or block is None or body.type == "generator_function":
            self._edits.around(body, f"() => {{ {fail} void (", "); }")
        elif block.type == "statement_block":
            self._edits.within(block, f" {fail}")
        else:
            self._edits.around(block, f"{{ {fail} return (", "); }")

    def _use(self, test: DeclaredTest) -> tuple[str, str] | None:
        """What goes round a body to run it, whatever comes of it; None where nobody can tell how."""
        body = test.body
        given = "".join(self._rng.choices(string.ascii_lowercase, k=9))
        if body.type == "call_expression" and source(body.child_by_field_name("function")) in _ANGULAR:
            return _calling(body, "", ".call(this)")
        if body.type not in FUNCTIONS or body.type == "generator_function":
            return None
        parameters = parameters_of(body)
        this = "" if body.type == "arrow_function" else ".call"
        if not parameters:
            return _calling(body, "", f"{this}({'this' if this else ''})")
        if test.each:
            return _calling(body, f"...{given}", f"{this}({'this, ' if this else ''}...{given})")
        if len(parameters) > 1 or source(parameters[0]) not in _DONE or _is_async(body):
            return None
        called = f"{this}({'this, ' if this else ''}Object.assign({given}, {{ fail: {given} }}))"
        return _calling(body, "", f"{called})", f"new Promise(({given}) => ")


def _calling(body: Node, parameters: str, called: str, through: str = "") -> tuple[str, str]:
    if body.type == "arrow_function":
        head = f"async ({parameters}) => {{"
    else:
        head = f"async function ({parameters}) {{"
    return f"{head} try {{ await {through}(", f"){called}; }} catch (problem) {{ }}"


def open_block(test: DeclaredTest) -> Node | None:
    """The block of a test's function that runs to its end, if nothing else does: no return, no callback."""
    block = test.body.child_by_field_name("body") if test.body.type in FUNCTIONS else None
    if block is None or block.type != "statement_block" or test.body.type == "generator_function":
        return None
    called = not test.each and not _is_async(test.body) and len(parameters_of(test.body)) == 1
    if called and parameters_of(test.body)[0].type == "identifier":
        return None
    return None if any(each.type == "return_statement" for each in _own(block)) else block


def _begins_with_directive(function: Node) -> bool:
    """Whether a function has no place for a first statement: 'use strict' counts as nothing else's second."""
    block = function.child_by_field_name("body")
    first = block.named_children[:1] if block is not None and block.type == "statement_block" else []
    return function.type == "generator_function" or any(
        part.type == "string" for each in first for part in each.named_children
    )


def _own(block: Node) -> Iterator[Node]:
    """The nodes of a function's body that are in no function within it."""
    waiting = list(block.children)
    while waiting:
        node = waiting.pop()
        yield node
        if node.type not in SCOPES and not node.type.startswith("class"):
            waiting += node.children


def _is_async(function: Node) -> bool:
    return any(part.type == "async" for part in function.children)
