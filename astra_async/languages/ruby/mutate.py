"""Find the parts of Ruby tests that a mutation may change (RSpec, minitest and Rails)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.mutations import (
    Assertion,
    FoundTest,
    Grammar,
    MutableTest,
    TestFile,
    arguments,
    both_ways,
    part,
    read_files,
    renamed,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_BLOCKS = frozenset({"block", "do_block", "lambda"})
_GRAMMAR = Grammar(
    module="tree_sitter_ruby",
    literals={
        "integer": "number", "float": "number", "string": "text", "true": "truth", "false": "truth",
        "simple_symbol": "symbol", "bare_string": "bare text", "bare_symbol": "bare symbol",
    },
    names=frozenset({"identifier", "constant"}),
    opaque=frozenset({
        "call", "element_reference", "binary", "conditional", "hash_key_symbol", "regex", *_BLOCKS}),
    conditional=frozenset({
        "if", "unless", "while", "until", "for", "case", "begin", "rescue", "if_modifier", "unless_modifier",
        "while_modifier", "rescue_modifier", "conditional", *_BLOCKS,
    }),
    declarations={"assignment": ("left", "right")},
)  # fmt: skip
_OPPOSITES = both_ways({
    **{
        f"assert_{name}": f"refute_{name}"
        for name in (
            "equal", "nil", "includes", "empty", "match", "same", "kind_of", "instance_of", "predicate",
                     "in_delta", "respond_to", "operator")
    },
    "assert": "refute", "must_equal": "wont_equal", "must_be_nil": "wont_be_nil",
    "must_include": "wont_include",
    "must_be_empty": "wont_be_empty", "must_match": "wont_match", "to": "not_to",
}) | {
    "to_not": "to", "assert_not": "assert", "assert_not_nil": "assert_nil",
    "assert_not_equal": "assert_equal"}  # fmt: skip
_MATCHERS = {"eq", "eql", "equal", "be", "match_array", "contain_exactly"}
_EQUALITIES = {"assert_equal", "assert_same", "must_equal", "assert_response"}


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Ruby files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        title, body = "", None
        if node.type == "method" and text_of(part(node, "name")).startswith("test"):
            title, body = text_of(part(node, "name")), part(node, "body")
        elif node.type == "call" and text_of(part(node, "method")) in {"it", "specify", "example", "test"}:
            given = arguments(node)
            title, body = text_of(given[0])[1:-1] if given else "", part(node, "block")
        if body is not None:
            yield FoundTest(
                file=file,
                title="" if "#{" in title else title,
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
                rows=partial(_rows, file),
                always_runs=lambda above: _table(file, above) is not None,
            )


def _assertion(node: Node) -> Iterator[Assertion]:
    name, on, given = part(node, "method"), part(node, "receiver"), arguments(node)
    called = text_of(name)
    if node.type != "call" or (not given and not called.startswith("must_be")):
        return
    if called in {"to", "not_to", "to_not"} and text_of(part(on, "method")) == "expect":
        if any(text_of(each) == "page" for each in arguments(on)):
            return  # Capybara retries until an expectation holds
        is_equality = called == "to" and text_of(part(given[0], "method")) in _MATCHERS
        yield Assertion(node, renamed(name, _OPPOSITES), arguments(given[0]) if is_equality else ())
    elif (on is None and called.startswith(("assert", "refute"))) or called.startswith(("must_", "wont_")):
        operands = given[:2] if called in _EQUALITIES else ()
        yield Assertion(node, renamed(name, _OPPOSITES), operands)


def _table(file: TestFile, block: Node) -> Node | None:
    """Return the literal array that a block of `each` iterates, if it is in the test file."""
    call = block.parent if block.type in _BLOCKS else None
    over = part(call, "receiver") if text_of(part(call, "method")) == "each" else None
    if over is not None and over.type in _GRAMMAR.names:
        declared = file.declared(over.text or b"", file.root)
        over = declared[1] if declared else None
    return over if over is not None and over.type in {"array", "hash"} and over.named_child_count else None


def _rows(file: TestFile, operand: Node) -> list[tuple[TestFile, Node]]:
    """Return the values that a block parameter takes from a literal table of cases."""
    above = operand.parent
    while above is not None and above.id != file.root.id:
        table, names = _table(file, above), [text_of(each) for each in arguments(above, "parameters")]
        if table is not None and text_of(operand) in names:
            at = names.index(text_of(operand))
            rows = [row.named_children for row in table.named_children]
            return [(file, row[at]) for row in rows if len(row) >= len(names) > 1]
        above = above.parent
    return []
