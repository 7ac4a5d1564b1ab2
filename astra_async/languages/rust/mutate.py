"""Find what a mutation may change in Rust tests. The arguments of a macro are tokens, not expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.mutations import (
    Assertion,
    FoundTest,
    Grammar,
    MutableTest,
    TestFile,
    both_ways,
    part,
    read_files,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

_GRAMMAR = Grammar(
    module="tree_sitter_rust",
    literals={
        "integer_literal": "number", "float_literal": "float", "string_literal": "text",
        "char_literal": "character",
        "raw_string_literal": "raw text", "boolean_literal": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "call_expression", "field_expression", "index_expression", "binary_expression",
        "closure_expression"}),
    conditional=frozenset({
        "if_expression", "for_expression", "while_expression", "loop_expression", "match_expression",
        "closure_expression", "let_else",
    }),
    declarations={
        "let_declaration": ("pattern", "value"), "const_item": ("name", "value"), "static_item": ("name",
        "value")},
)  # fmt: skip
_OPPOSITES = both_ways({"assert_eq": "assert_ne"})
_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest)\b|#\[test_case\b")
# Words of an expected value that the test writes out: `Some(vec!["a".to_string()])`.
_WRITTEN_OUT = re.compile(
    r"(?:Some|Ok|Err|None|vec|String|from|to_string|to_owned|into|to_vec|as_str|Vec|new|Box|Cow|HashMap|BTreeMap"
    r"|HashSet|BTreeSet|[iuf]\d+|usize|isize|_)"
)


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Rust files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        body = part(node, "body")
        if node.type == "function_item" and body is not None and _TEST.search(_attributes(node)):
            yield FoundTest(
                file=file,
                title=text_of(part(node, "name")),
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
                always_runs=_always_runs,
            )


def _attributes(node: Node) -> str:
    found, before = [], node.prev_named_sibling
    while before is not None and before.type in {"attribute_item", "line_comment", "block_comment"}:
        found += [text_of(before)] if before.type == "attribute_item" else []
        before = before.prev_named_sibling
    return "".join(found)


def _assertion(node: Node) -> Iterator[Assertion]:
    macro = part(node, "macro")
    tokens = next((each for each in node.named_children if each.type == "token_tree"), None)
    if node.type != "macro_invocation" or macro is None or tokens is None:
        return
    parts = _split(tokens.children[1:-1])
    if text_of(macro) in _OPPOSITES and len(parts) > 1:
        edit = macro.start_byte, macro.end_byte, _OPPOSITES[text_of(macro)].encode()
        operands = (
            [each for tokens in parts[:2] for each in _expected(tokens)]
            if text_of(macro) == "assert_eq"
            else []
        )
        yield Assertion(node, edit, tuple(operands))
    elif text_of(macro) == "assert" and parts:
        begin, end = parts[0][0].start_byte, parts[0][-1].end_byte
        condition = (node.text or b"")[begin - node.start_byte : end - node.start_byte]
        yield Assertion(node, (begin, end, b"!(" + condition + b")"))


def _split(tokens: Sequence[Node]) -> list[list[Node]]:
    """Return the tokens of each argument."""
    parts: list[list[Node]] = [[]]
    for each in tokens:
        if each.type == ",":
            parts.append([])
        else:
            parts[-1].append(each)
    return [each for each in parts if each]


def _expected(tokens: Sequence[Node]) -> Iterator[Node]:
    """Yield the literals of an argument that the test writes out, or the one name that it is."""
    if len(tokens) == 1 and tokens[0].type == "identifier":
        yield tokens[0]
        return
    inner = [each for token in tokens for each in walk(token)]
    words = [text_of(each) for each in inner if each.type == "identifier"]
    if all(map(_WRITTEN_OUT.fullmatch, words)):
        yield from (each for each in inner if each.type in _GRAMMAR.literals)


def _always_runs(node: Node) -> bool:
    """Return True for a loop over an array that the test writes out."""
    over = part(node, "value") if node.type == "for_expression" else None
    if over is not None and over.type == "reference_expression":
        over = part(over, "value")
    return over is not None and over.type == "array_expression" and bool(over.named_child_count)
