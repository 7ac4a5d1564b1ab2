"""The twin of a JavaScript or TypeScript test file: jest, mocha, vitest, jasmine (karma), node:test.

Found are calls of what the frameworks call a test (`it`, `test`, `specify`), under whatever name the file
knows it. Skipped and planned tests stay as they are: they are not passed either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.integrity.expected_values import in_javascript
from astra_async.integrity.javascript_falsehoods import Falsehoods, exception
from astra_async.integrity.javascript_names import FUNCTIONS, SCOPES, Names
from astra_async.integrity.javascript_tests import declared_tests, parameters_of
from astra_async.integrity.rewriting import NotUnderstoodError, draw_manner, letters, words
from astra_async.integrity.syntax import Insertions, parse, part, source

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator

    from tree_sitter import Node

    from astra_async.integrity.expected_values import Constant
    from astra_async.integrity.javascript_tests import JavaScriptTest

_TYPESCRIPT, _TSX = (
    ("tree_sitter_typescript", "language_typescript"),
    ("tree_sitter_typescript", "language_tsx"),
)
_JAVASCRIPT = ("tree_sitter_javascript", "language")
_ANGULAR = frozenset({"inject", "fakeAsync", "waitForAsync", "async"})  # make a test's body of a function
_DONE = frozenset({"done", "cb", "callback", "next", "finish", "finished", "end", "complete"})
_PLAIN = 0.4  # of the tests that could be called from another function fail at once


class Tests:
    """The tests of a file; see `rewriting.TestFile`."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._data = text.encode(errors="replace")
        self._root = _tree_of(path, self._data)
        names = Names(self._root)
        self.runner = names.runner
        self.tests, self.left_out = declared_tests(self._root, names)

    def twin(self, failing: Collection[JavaScriptTest], rng: random.Random) -> str:
        """The file in which these tests fail."""
        writer = self._writer(rng)
        for test in failing:
            writer.make_fail(test)
        if self._path.endswith(("ts", "tsx")) and self.tests:
            writer.edits.at(_first_token(self._root), "// @ts-nocheck\n")
        return writer.edits.text()

    def blurred(self, rng: random.Random) -> str:
        """The file with statements in its tests that look like a twin's, and hold.

        A comment of random words makes its size another one.
        """
        writer = self._writer(rng)
        for test in self.tests:
            writer.make_alike(test)
        writer.edits.at(len(self._data), f"\n// {words(rng)}\n")
        return writer.edits.text()

    @staticmethod
    def constants(test: JavaScriptTest) -> Iterable[Constant]:
        """What its assertions compare to."""
        block = None if test.doubt else _open_block(test)
        return in_javascript(block.named_children if block is not None else [])

    def _writer(self, rng: random.Random) -> _Writer:
        return _Writer(Insertions(self._data), Falsehoods.of(self._root, self.runner), rng)


def _tree_of(path: str, data: bytes) -> Node:
    suffix = path.rpartition(".")[2].lower()
    if suffix == "tsx":
        grammars = [_TSX]
    else:
        grammars = [_TYPESCRIPT] if suffix in {"ts", "mts", "cts"} else [_JAVASCRIPT, _TSX]
    for grammar in grammars:
        root = parse(data, *grammar)
        if not root.has_error:
            return root
    raise NotUnderstoodError("this file's syntax is not understood")


def _first_token(root: Node) -> int:
    """Where the code begins, behind the comments at the top, which jest and others read."""
    code = (node for node in root.children if node.type not in {"comment", "hash_bang_line"})
    first = next(code, None)
    return root.end_byte if first is None else first.start_byte


class _Writer:
    """Puts failing statements into tests."""

    def __init__(self, edits: Insertions, falsehoods: Falsehoods, rng: random.Random) -> None:
        self.edits, self._falsehoods, self._rng = edits, falsehoods, rng

    def make_fail(self, test: JavaScriptTest) -> None:
        """Make a test fail, in a manner that is drawn."""
        manner = draw_manner(self._rng)
        waits = test.node.type in FUNCTIONS and _is_async(test.node)
        block = _open_block(test)
        if block is not None and not manner.at_once:
            fail = self._failing(test, assertion=manner.assertion, waits=waits, first=False)
            self.edits.within(block, "", f" ; {fail} ")
            return
        around = None if manner.at_once or self._rng.random() < _PLAIN else self._use(test)
        if around is not None:
            fail = self._failing(test, assertion=manner.assertion, waits=True, first=False)
            before, after = around
            self.edits.around(test.node, before, f"{after} {fail} }}")
            return
        self._at_once(test.node, self._failing(test, assertion=manner.assertion, waits=waits, first=True))

    def make_alike(self, test: JavaScriptTest) -> None:
        """Give a test a statement that holds, where a twin of it would have one that does not."""
        manner = draw_manner(self._rng)
        block = _open_block(test)
        if block is not None and not manner.at_once:
            self.edits.within(block, "", f" ; {self._falsehoods.truths(test.node, self._rng, first=False)}; ")
        elif test.node.type in FUNCTIONS and not _begins_with_directive(test.node):
            self._at_once(test.node, f"{self._falsehoods.truths(test.node, self._rng, first=True)};")

    def _failing(self, test: JavaScriptTest, *, assertion: bool, waits: bool, first: bool) -> str:
        if assertion:
            return f"{self._falsehoods.assertions(test.node, self._rng, waits=waits, first=first)};"
        return f"{exception(self._rng, waits=waits)};"

    def _at_once(self, body: Node, fail: str) -> None:
        block = body.child_by_field_name("body")
        if body.type not in FUNCTIONS or block is None or body.type == "generator_function":
            self.edits.around(body, f"() => {{ {fail} void (", "); }")
        elif block.type == "statement_block":
            self.edits.within(block, f" {fail}")
        else:
            self.edits.around(block, f"{{ {fail} return (", "); }")

    def _use(self, test: JavaScriptTest) -> tuple[str, str] | None:
        """What goes round a body to run it, whatever comes of it; None where nobody can tell how."""
        body = test.node
        given = letters(self._rng, 9)
        if body.type == "call_expression" and part(body, "function") in _ANGULAR:
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


def _open_block(test: JavaScriptTest) -> Node | None:
    """The block of a test's function that runs to its end, if nothing else does: no return, no callback."""
    block = test.node.child_by_field_name("body") if test.node.type in FUNCTIONS else None
    if block is None or block.type != "statement_block" or test.node.type == "generator_function":
        return None
    called = not test.each and not _is_async(test.node) and len(parameters_of(test.node)) == 1
    if called and parameters_of(test.node)[0].type == "identifier":
        return None
    return None if any(each.type == "return_statement" for each in _own(block)) else block


def _begins_with_directive(function: Node) -> bool:
    """Whether a function has no place for a first statement: 'use strict' counts as nothing else's second."""
    block = function.child_by_field_name("body")
    first = block.named_children[:1] if block is not None and block.type == "statement_block" else []
    return function.type == "generator_function" or any(
        inner.type == "string" for each in first for inner in each.named_children
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
    return any(each.type == "async" for each in function.children)
