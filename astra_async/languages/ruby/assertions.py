"""What Ruby's assertions could ask otherwise: rspec's matchers, minitest's assertions and expectations.

See `languages.altering`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    KEYS,
    NAME,
    ORDER,
    RAISED,
    SOMETHING,
    SUBJECT,
    SYMBOL,
    Alteration,
    both_ways,
    compared,
    constant,
    far,
    listed,
    not_held,
    nothing,
    other_subject,
    renamed,
    table_key,
    unequal,
    within,
)
from astra_async.languages.other_values import made_list, of_other_parts
from astra_async.languages.ruby.noting import DENIED, HOLDS, PASSED, RUN, SAID
from astra_async.languages.syntax import TestFile, elements, inside, part, source, spans, walk, word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tree_sitter import Node

    # What may stand in the place of a node of the text, by a word for what is compared.
    _Rule = Callable[[Node, TestFile, str], Iterable[Alteration]]

PLAIN = frozenset({"string", "integer", "float", "unary", "true", "false", "simple_symbol"})
_EXACT = frozenset({
    "eq", "eql", "be", "equal", "have_attributes", "have_http_status", "contain_exactly", "match_array",
    "by", "from", "to",
})  # fmt: skip
# What these hold of, whatever else is there: no other order is another question, nor is another attribute.
_LEFT_OUT = {"contain_exactly": (ORDER,), "match_array": (ORDER,), "have_attributes": KEYS}
# Matchers of capybara, which wait until they hold.
_WAITING = (
    "have_content", "have_text", "have_css", "have_selector", "have_link", "have_button", "have_field",
    "have_current_path", "have_title", "have_table", "have_select", "have_checked_field", "have_xpath",
    "have_unchecked_field", "have_no_", "have_element", "match_css", "match_selector", "match_xpath",
)  # fmt: skip
_ASSERTIONS = (
    "equal", "nil", "includes", "empty", "match", "predicate", "operator", "kind_of", "instance_of",
    "respond_to", "same", "in_delta", "in_epsilon",
)  # fmt: skip
_EXPECTATIONS = (
    "equal", "include", "match", "respond_to", "be", "be_nil", "be_empty", "be_kind_of", "be_instance_of",
    "be_close_to", "be_within_delta", "be_within_epsilon", "be_same_as",
)  # fmt: skip
_OPPOSITES = both_ways(
    {"assert": "refute", "to": "not_to"}
    | {f"assert_{each}": f"refute_{each}" for each in _ASSERTIONS}
    | {f"must_{each}": f"wont_{each}" for each in _EXPECTATIONS}
    | {"assert_difference": "assert_no_difference"}
) | {
    "to_not": "to", "assert_not": "assert", "assert_not_nil": "assert_nil", "assert_no_match": "assert_match",
    "assert_not_equal": "assert_equal", "assert_not_includes": "assert_includes",
}  # fmt: skip
# Matchers that no answer declares, and that hold of no list.
_LISTABLE = frozenset({"match", "start_with", "end_with", "respond_to", "have_key", "be_within", "cover"})
_MAKING = frozenset({"map", "collect", "pluck", "ids"})  # a list
ARRANGING = b"(%b).reverse", b"(%b).drop(1)", b"(%b).then { |each| each + each.take(1) }"
_RANGE = re.compile(rb"\(?([0-9]+)\.{2,3}([0-9]+)(?:\)\.to_a|\))?")
# Exceptions of which none is another's kind: who raises one does not raise another.
_RAISED = ("ArgumentError", "TypeError", "KeyError", "ZeroDivisionError", "RuntimeError", "IOError")
# Of the answer's own it may be one of these by its kind, and hardly one of those.
_UNUSUAL = ("FiberError", "ThreadError", "RegexpError", "EncodingError")
# Errors are equal whose class and message are, whatever else they were given.
_ERROR = re.compile(r"(?:Error|Exception|Found|Invalid|Denied|Missing|Failed|Failure)$")
_NO_VALUES = frozenset({"pair", "splat_argument", "hash_splat_argument", "block_argument"})
# Kinds of answers, of which another may be one, too: 200 and 201 are `:success`.
_KINDS = frozenset(
    {":success", ":successful", ":redirect", ":missing", ":error", ":client_error", ":server_error"}
)
_ARRAYS, _HASHES = frozenset({"array", "string_array", "symbol_array"}), frozenset({"hash"})
_CHANGES = (b"change { Object.new }", b"change { rand }"), (b"change { @drawn@ }",)
_SAID = frozenset({"string", "regex"})
_WORDS = frozenset({"bare_string", "bare_symbol", "nil"})


def assertion(call: Node, file: TestFile) -> Iterator[Alteration]:
    """What a call asks, if it is an assertion."""
    name, given, at = part(call, "method"), inside(call), call.child_by_field_name("method")
    receiver = call.child_by_field_name("receiver")
    if name in {"to", "not_to", "to_not"}:
        begun = _begun(given[0]) if given else ""
        if not given or begun.startswith(_WAITING) or "expect" not in _begun(receiver):
            return  # it waits, or sets up (`allow`)
        if name == "to" and not begun.startswith("receive"):  # `and_return`: what is given need not be used
            yield from _matched(given[0], receiver, file)
        matcher = part(given[0], "method") or part(given[0], "operator") or source(given[0])
        patterns = (HOLDS if name == "to" else DENIED).get(matcher, ())
        right = [given[0].child_by_field_name("right")]  # of `be > 3`
        yield from _compared(patterns, [_subject(receiver), *inside(given[0]), *right], file)
        if matcher == "change":
            yield Alteration(*spans(given)[0], SUBJECT, _CHANGES[name == "to"])
    elif receiver is None:
        yield from _compared(HOLDS.get(name, ()), given, file)
        yield from _asked(name, given, file, word(next(iter(given[1:]), None)))
        yield from _calling_another(call, given, file) if name == "assert_raises" else ()
    elif name.startswith(("must_", "wont_")):
        yield from _compared(HOLDS.get(name, ()), [_subject(receiver), *given], file)
        yield from _asked(name, [_subject(receiver), *given], file, word(receiver))
        yield from _calling_another(receiver, given, file) if name == "must_raise" else ()
    else:
        return
    has_number = name == "assert_difference" and len(given) > 1  # which its contrary does not take
    if at is not None and not has_number:
        yield from renamed(file.text, at.start_byte, at.end_byte, _OPPOSITES)


def _matched(matcher: Node, expect: Node | None, file: TestFile) -> Iterator[Alteration]:
    """What `expect(subject).to matcher` could ask otherwise."""
    name, given = part(matcher, "method") or source(matcher), inside(matcher)
    subject, asked = _subject(expect), word(expect)
    if name in _EXACT:
        found = [each for node in given for each in _equal(node, file, asked)]
        left_out = _LEFT_OUT.get(name, ())
        yield from (each for each in found if each.kind not in left_out)
        yield from _other_subject(subject, given, found)
    elif any(name in places for places in _ASKED.values()):
        yield from _asked(name, [subject, *given], file, asked)
        yield from _calling_another(expect, given, file) if name == "raise_error" else ()
        said = given[-1:] if name == "raise_error" else []
        yield from compared(file.text, spans(each for each in said if each.type in _SAID), SAID, b" ")
    elif given and name in _LISTABLE:
        yield from _listed(given[0], file, asked)
    elif subject is not None and not part(matcher, "block"):
        # Not what a predicate is given: an answer's own may well take a list. A list has no such predicate.
        yield from _nested(subject, file, asked)


def _compared(
    patterns: Sequence[bytes], given: Sequence[Node | None], file: TestFile
) -> Iterator[Alteration]:
    """What an assertion compares, if these are values; a text in lines of its own stands elsewhere."""
    sides = [each for each in given if each is not None and each.type not in _NO_VALUES]
    pairs = [each for each in given if each is not None and each.type == "pair"]  # a table without braces
    if patterns and not any("heredoc" in each.type for side in [*sides, *pairs] for each in walk(side)):
        is_table = len(sides) == 1 and len(sides) + len(pairs) == len(given)
        *first, last = patterns
        last = last.replace(b"%b", b"{ %b }") if pairs else last
        table = [(pairs[0].start_byte, pairs[-1].end_byte)] if pairs and is_table else []
        yield from compared(file.text, [*spans(sides), *table], (*first, last), b" ")


def _other_subject(subject: Node | None, given: list[Node], found: list[Alteration]) -> Iterator[Alteration]:
    """What is asked about as something else, where no constant is expected."""
    if subject is not None and given:
        place = subject.start_byte, subject.end_byte
        parts = len(elements(given[0])) if given[0].type in _ARRAYS else None
        yield from other_subject(place, found, parts, b"{ 'none' => @drawn@ }")


def _calling_another(call: Node | None, kinds: list[Node], file: TestFile) -> Iterator[Alteration]:
    """The block that is to raise, if it is one statement, as another; that it got to its end."""
    name, block = (None if call is None else call.child_by_field_name(each) for each in ("method", "block"))
    body = None if block is None else block.child_by_field_name("body")
    if name is None or block is None or body is None:
        return
    if len(body.named_children) == 1:
        others = (b"nil", b"raise SecurityError") if kinds else (b"nil",)
        yield Alteration(body.start_byte, body.end_byte, SUBJECT, others)
    if source(name) == "expect":
        yield from compared(file.text, [(name.end_byte, block.end_byte)], [RUN], b" ")
    else:
        yield from compared(b"", [(body.end_byte, body.end_byte)], [PASSED], b" ")


def _begun(chain: Node | None) -> str:
    """The name with which a chain of calls begins."""
    while chain is not None and (before := chain.child_by_field_name("receiver")) is not None:
        chain = before
    return part(chain, "method") or source(chain)


def _subject(expect: Node | None) -> Node | None:
    """What stands in `expect(...)`, or `_(...)` of minitest."""
    is_given = part(expect, "method") in {"expect", "_", "value"}
    return next(iter(inside(expect)), None) if is_given else None


def _asked(name: str, given: Sequence[Node | None], file: TestFile, asked: str) -> Iterator[Alteration]:
    for rule, places in _ASKED.items():
        place = places.get(name, len(given))
        node = given[place] if place < len(given) else None
        if node is not None:
            found = list(rule(node, file, asked))
            yield from found
            if name == "assert_equal" and len(given) > 1:
                yield from _other_subject(given[1], [node], found)


def _equal(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of what is expected; a list of it where there are none, or a class compares."""
    found = list(_constants([node], file, asked))
    yield from found
    if not found or node.type == "call":
        yield from _listed(node, file, asked, unequal)
    yield from file.shapes([node], lists=_ARRAYS, tables=_HASHES, plain=PLAIN | _WORDS)


def _listed(
    node: Node, file: TestFile, asked: str, other: Callable[[bytes, int, int], Alteration] = listed
) -> Iterator[Alteration]:
    """A value that no constant is, as a list or another one."""
    for each in [] if node.type in _NO_VALUES else file.meant(node):
        if not any("heredoc" in inner.type for inner in walk(each)):  # its text stands elsewhere, and once
            found = replace(other(file.text, each.start_byte, each.end_byte), asked=asked)
            yield found
            if other is unequal:
                yield from file.written_out(each, found)
                yield from _of_other_parts(each, found, file)


def _of_other_parts(call: Node, place: Alteration, file: TestFile) -> Iterator[Alteration]:
    """What a class, or a function of the file, makes of other parts."""
    receiver, name = part(call, "receiver"), part(call, "method")
    is_made = name == "new" and receiver[:1].isupper() and not _ERROR.search(receiver)
    if is_made or (not receiver and name in file.functions):
        yield from of_other_parts(file.text, place, spans(inside(call)))


def _written(*manners: bytes) -> _Rule:
    def rule(node: Node, file: TestFile, _: str) -> Iterator[Alteration]:
        begin, end = node.start_byte, node.end_byte
        if node.type not in _NO_VALUES:
            others = (each.replace(b"%b", file.text[begin:end]) for each in manners)
            yield Alteration(begin, end, SUBJECT, tuple(others))

    return rule


# A list of a list is not empty, and neither a text nor a number is in it, whatever is asked about.
_nested = _written(b"[[%b]]", b"[[[%b]]]")
_something = _written(b"[[%b]]", *SOMETHING)
_false, _true = _written(b"!(%b)", b"nil"), _written(b"!(%b)", *SOMETHING)


def _held(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """A text or number that is looked for among others."""
    place = node.start_byte, node.end_byte
    yield from within(file.text, *place) or not_held(file.text, constant(file.text, *place, asked))


def _far(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """A number by one that no answer comes near to."""
    yield from far(file.text, constant(file.text, node.start_byte, node.end_byte, asked))


def _raised(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    is_alone = node.next_named_sibling is None or node.next_named_sibling.type == "string"
    if node.type in {"constant", "scope_resolution"} and is_alone:
        kinds = _RAISED if source(node) in _RAISED else _UNUSUAL
        others = tuple(each.encode() for each in kinds if each != source(node))
        yield Alteration(node.start_byte, node.end_byte, RAISED, others)
    else:
        yield from _listed(node, file, asked)


# What could be asked otherwise, by the place of an argument: the first one of a matcher is its subject.
_ASKED: dict[_Rule, dict[str, int]] = {
    _false: {"assert": 0, "be_truthy": 0},
    _true: {"refute": 0, "assert_not": 0, "be_falsey": 0},
    _equal: {"assert_equal": 0, "assert_response": 0, "assert_difference": 1, "must_equal": 1},
    _held: {"assert_includes": 1, "must_include": 1, "include": 1},
    _far: {
        "assert_in_delta": 0, "assert_in_epsilon": 0, "of": 1,
        "must_be_close_to": 1, "must_be_within_delta": 1,
    },
    _raised: {"assert_raises": 0, "must_raise": 1, "raise_error": 1},
    _listed: {
        "assert_kind_of": 0, "assert_instance_of": 0, "must_be_kind_of": 1, "must_be_instance_of": 1,
        "assert_predicate": 1, "assert_operator": 1, "assert_respond_to": 1, "must_be": 1,
        "must_respond_to": 1, "be_a": 1, "be_an": 1, "be_kind_of": 1, "be_a_kind_of": 1,
        "be_instance_of": 1, "be_an_instance_of": 1,
    },
    _something: {"be_nil": 0, "assert_nil": 0, "must_be_nil": 0},
    _nested: {
        "assert_empty": 0, "assert_match": 1, "assert_same": 1, "assert_includes": 0,
        "assert_in_delta": 1, "assert_in_epsilon": 1, "must_be_empty": 0, "must_match": 0,
        "must_be_same_as": 0, "must_include": 0, "must_be_close_to": 0, "must_be_within_delta": 0,
        "include": 0, "of": 0,
    },
}  # fmt: skip


def _constants(nodes: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of which a value is made, if it is made of constants, lists and hashes of them."""
    for node in (meant for each in nodes for meant in file.meant(each)):
        for span in _written_out(node, file):
            yield from constant(file.text, *span, asked)
        if node.type == "nil":
            yield nothing(file.text, node.start_byte, node.end_byte)
        elif part(node, "method") == "new" and not _ERROR.search(part(node, "receiver")):
            made = [each for each in _constants(inside(node), file, asked) if each.kind not in KEYS]
            yield from made if len(inside(node)) == len(made) == 1 else ()  # `==` may leave out one of two
        elif node.type == "simple_symbol" and source(node) not in _KINDS:
            yield Alteration(node.start_byte + 1, node.end_byte, SYMBOL, asked=asked)
        elif node.type == "constant":
            yield Alteration(node.start_byte, node.end_byte, NAME, asked=asked)
        elif part(node, "method") in _MAKING:
            yield from made_list(file.text, (node.start_byte, node.end_byte), ARRANGING)
            yield from _listed(node, file, asked)
        elif node.type in {"array", "hash"}:
            yield from _parts(node.named_children, file, asked)
        elif node.type == "pair":
            yield from _paired(node, file)


def _parts(nodes: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of parts of a value; what has none as another value."""
    for node in nodes:
        found = list(_constants([node], file, asked))
        yield from found
        if not found and node.type not in _ARRAYS | _HASHES | _WORDS:
            yield from _listed(node, file, asked, unequal)


def _written_out(node: Node, file: TestFile) -> list[tuple[int, int]]:
    """Where a constant stands, the two ends of a range of numbers, or constants beside an operator."""
    numbers = _RANGE.fullmatch(file.text, node.start_byte, node.end_byte)
    beside = node.named_children if node.type == "binary" else [node]
    plain = [each for each in beside if each.type in PLAIN - {"simple_symbol"}]
    return [numbers.span(1), numbers.span(2)] if numbers else spans(plain)


def _paired(pair: Node, file: TestFile) -> Iterator[Alteration]:
    """The key of a table, and the constants of its value."""
    name, value = map(pair.child_by_field_name, ("key", "value"))
    if name is not None and name.type in {"hash_key_symbol", "string"}:
        yield from table_key(file.text, name.start_byte, name.end_byte, quoted=name.type == "string")
    yield from _parts([value] if value is not None else [], file, part(pair, "key").strip("\"':"))
