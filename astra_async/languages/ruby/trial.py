"""Ruby's tests for trials: rspec, minitest with its specs, Rails' test cases. See `languages.altering`."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    KEYS,
    NAME,
    ORDER,
    SOMETHING,
    SUBJECT,
    SYMBOL,
    Alteration,
    DeclaredTest,
    another,
    backwards,
    both_ways,
    constant,
    far,
    listed,
    named,
    not_held,
    nothing,
    renamed,
    table_key,
    unequal,
    within,
)
from astra_async.languages.syntax import (
    TestFile,
    elements,
    inside,
    once,
    parse,
    part,
    source,
    walk,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tree_sitter import Node

    # What may stand in the place of a node of the text, by a word for what is compared.
    _Rule = Callable[[Node, TestFile, str], Iterable[Alteration]]

_EXAMPLES = frozenset({"it", "specify", "example", "scenario", "fit", "its", "test", "should"})
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
) | {"to_not": "to", "assert_not": "assert"}
# Matchers that no answer declares, and that hold of no list.
_LISTABLE = frozenset({"match", "start_with", "end_with", "respond_to", "have_key", "be_within", "cover"})
_MAKING = frozenset({"map", "collect", "pluck", "ids"})  # a list
# Assertions that call their block, once.
_CALLING = frozenset({"assert_difference", "assert_no_difference", "assert_changes", "assert_no_changes"})
# Exceptions of which none is another's kind: who raises one does not raise another.
_RAISED = ("ArgumentError", "TypeError", "KeyError", "ZeroDivisionError", "RuntimeError", "IOError")
# Errors are equal whose class and message are, whatever else they were given.
_ERROR = re.compile(r"(?:Error|Exception|Found|Invalid|Denied|Missing|Failed|Failure)$")
_SCOPES = frozenset({"method", "block", "do_block"})
_NO_VALUES = frozenset({"pair", "splat_argument", "hash_splat_argument", "block_argument"})
# Kinds of answers, of which another may be one, too: 200 and 201 are `:success`.
_KINDS = frozenset(
    {":success", ":successful", ":redirect", ":missing", ":error", ":client_error", ":server_error"}
)
_PLAIN = frozenset({"string", "integer", "float", "unary", "true", "false", "simple_symbol"})
_ARRAYS, _HASHES = frozenset({"array", "string_array", "symbol_array"}), frozenset({"hash"})
_WORDS = frozenset({"bare_string", "bare_symbol", "nil"})
_TARGETS = frozenset({"identifier", "destructured_parameter"})
_UNPAIRED = frozenset({"pair", "bare_string", "bare_symbol"})
_LEAVING = frozenset({"return", "next", "break", "redo", "rescue", "rescue_modifier"})


def read_tests(_: str, text: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    root = parse(text, "tree_sitter_ruby")
    if root.has_error:
        return ()
    functions = once((part(each, "name"), each) for each in walk(root) if each.type == "method")
    tests = _tests(root, TestFile(root=root, text=text, scopes=_SCOPES, functions=functions))
    return tuple(named(tests, text, _declared(root), b"%b.reverse"))


def _declared(root: Node) -> dict[bytes, bytes]:
    """The file's constants that are written as one constant each, or a list of them."""
    found = (
        (each.child_by_field_name(name) for name in ("left", "right"))
        for each in walk(root)
        if each.type == "assignment"
    )
    return {
        source(name).encode(): source(value).encode()
        for name, value in found
        if name is not None and name.type == "constant" and value is not None
        if value.type in _PLAIN or (elements(value) and all(each.type in _PLAIN for each in elements(value)))
    }


def _tests(node: Node, file: TestFile) -> Iterator[DeclaredTest]:
    """Methods by the name of a test, and blocks of examples, in their order."""
    for child in node.named_children:
        name = part(child, "method") if child.type == "call" else part(child, "name")
        if child.type == "method" and name.startswith("test_"):
            yield DeclaredTest((name,), _asked_by(child, file))
            continue
        block = child.child_by_field_name("block") if child.type == "call" else None
        if block is not None and name in _EXAMPLES and child.child_by_field_name("receiver") is None:
            title = _title(child) if name != "its" else ""
            titles = (title, "test_" + re.sub(r"\s+", "_", title)) if name == "test" else (title,)
            yield DeclaredTest(titles if title else (), _asked_by(block, file))
            continue
        yield from _tests(child, file)


def _title(call: Node) -> str:
    """The title as far as it stands in the source as it is."""
    first = next(iter(inside(call)), None)
    strings = [] if first is None else first.named_children if first.type == "chained_string" else [first]
    pieces = [piece for each in strings for piece in each.named_children]
    is_plain = {each.type for each in strings} <= {"string"} and {each.type for each in pieces} <= {
        "string_content"
    }
    return "".join(map(source, pieces)) if is_plain else ""


def _asked_by(test: Node, file: TestFile) -> tuple[Alteration, ...]:
    """What every run of a test's method or block asks."""
    body = test.child_by_field_name("body")
    if body is None or any(each.type in _LEAVING for each in walk(test)):
        return ()
    return tuple(_statements(body, file))


def _statements(body: Node, file: TestFile) -> Iterator[Alteration]:
    """What each run of these statements asks."""
    calls = [body] if body.type == "call" else [each for each in body.named_children if each.type == "call"]
    for call in calls:
        own = file.functions.get(part(call, "method")) if part(call, "receiver") in {"", "self"} else None
        if own is not None:
            yield from file.called(call, own, partial(_asked_by, own, file))
        elif part(call, "method") == "each":
            yield from _loop(call, file)
        else:
            yield from _assertion(call, file)
            block = call.child_by_field_name("block") if part(call, "method") in _CALLING else None
            yield from _asked_by(block, file) if block is not None else ()


def _loop(call: Node, file: TestFile) -> Iterator[Alteration]:
    """What a loop asks over rows that stand in the source."""
    over, block = call.child_by_field_name("receiver"), call.child_by_field_name("block")
    body = None if block is None else block.child_by_field_name("body")
    if over is not None and block is not None and body is not None:
        rows = [row for each in file.meant(over) for row in elements(each)]
        given = block.child_by_field_name("parameters")
        if given is not None and {each.type for each in given.named_children} <= _TARGETS:
            is_one = len(given.named_children) == 1
            patterns = b"%b, %b" if is_one else b"(%b), %b", b"[%b, %b]"
            is_paired = not any(each.type in _UNPAIRED for each in rows)
            target, asked = given.named_children[0] if is_one else given, _statements(body, file)
            yield from file.loop(call, target, rows, asked, patterns if is_paired else None)


def _assertion(call: Node, file: TestFile) -> Iterator[Alteration]:
    name, given, at = part(call, "method"), inside(call), call.child_by_field_name("method")
    receiver = call.child_by_field_name("receiver")
    if name in {"to", "not_to", "to_not"}:
        begun = _begun(given[0]) if given else ""
        if not given or begun.startswith(_WAITING) or "expect" not in _begun(receiver):
            return  # it waits, or sets up (`allow`)
        if name == "to" and not begun.startswith("receive"):  # `and_return`: what is given need not be used
            yield from _matched(given[0], receiver, file)
    elif receiver is None:
        yield from _asked(name, given, file, word(next(iter(given[1:]), None)))
        yield from _calling_nothing(call) if name == "assert_raises" else ()
    elif name.startswith(("must_", "wont_")):
        yield from _asked(name, [_subject(receiver), *given], file, word(receiver))
        yield from _calling_nothing(receiver) if name == "must_raise" else ()
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
        yield from _another(subject, given, found)
    elif any(name in places for places in _ASKED.values()):
        yield from _asked(name, [subject, *given], file, asked)
        yield from _calling_nothing(expect) if name == "raise_error" else ()
    elif given and name in _LISTABLE:
        yield from _listed(given[0], file, asked)
    elif subject is not None and not part(matcher, "block"):
        # Not what a predicate is given: an answer's own may well take a list. A list has no such predicate.
        yield from _nested(subject, file, asked)


def _another(subject: Node | None, given: list[Node], found: list[Alteration]) -> Iterator[Alteration]:
    if subject is not None and given:
        place = subject.start_byte, subject.end_byte
        parts = len(elements(given[0])) if given[0].type in _ARRAYS else None
        yield from another(place, found, parts, b"{ 'none' => 731 }")


def _calling_nothing(call: Node | None) -> Iterator[Alteration]:
    """The block that is to raise, if it is one statement, as one that does nothing."""
    block = None if call is None else call.child_by_field_name("block")
    body = None if block is None else block.child_by_field_name("body")
    if body is not None and len(body.named_children) == 1:
        yield Alteration(body.start_byte, body.end_byte, SUBJECT, (b"nil",))


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
            yield from _another(given[1], [node], found) if name == "assert_equal" and len(given) > 1 else ()


def _equal(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of what is expected; a list of it where there are none, or a class compares."""
    found = list(_constants([node], file, asked))
    yield from found
    if not found or node.type == "call":
        yield from _listed(node, file, asked, unequal)
    yield from file.shapes([node], lists=_ARRAYS, tables=_HASHES, plain=_PLAIN | _WORDS)


def _listed(
    node: Node, file: TestFile, _: str, other: Callable[[bytes, int, int], Alteration] = listed
) -> Iterator[Alteration]:
    """A value that no constant is, as a list or another one."""
    for each in [] if node.type in _NO_VALUES else file.meant(node):
        if not any("heredoc" in inner.type for inner in walk(each)):  # its text stands elsewhere, and once
            yield other(file.text, each.start_byte, each.end_byte)


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
    message = node.next_named_sibling
    if source(node) in _RAISED and (message is None or message.type == "string"):
        others = tuple(each.encode() for each in _RAISED if each != source(node))
        yield Alteration(node.start_byte, node.end_byte, "raised", others)
    else:  # it, or another one beside it, may be one of these by its kind
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
        if node.type in {"string", "integer", "float", "unary", "true", "false"}:
            yield from constant(file.text, node.start_byte, node.end_byte, asked)
        elif node.type == "nil":
            yield nothing(file.text, node.start_byte, node.end_byte)
        elif part(node, "method") == "new" and not _ERROR.search(part(node, "receiver")):
            made = [each for each in _constants(inside(node), file, asked) if each.kind not in KEYS]
            yield from made if len(inside(node)) == len(made) == 1 else ()  # `==` may leave out one of two
        elif node.type == "simple_symbol" and source(node) not in _KINDS:
            yield Alteration(node.start_byte + 1, node.end_byte, SYMBOL, asked=asked)
        elif node.type == "constant":
            yield Alteration(node.start_byte, node.end_byte, NAME, asked=asked)
        elif part(node, "method") in _MAKING:
            yield backwards(file.text, (node.start_byte, node.end_byte), b"(%b).reverse")
        elif node.type in {"array", "hash"}:
            yield from _constants(node.named_children, file, asked)
        elif node.type == "pair":
            yield from _paired(node, file)


def _paired(pair: Node, file: TestFile) -> Iterator[Alteration]:
    """The key of a table, and the constants of its value."""
    name, value = map(pair.child_by_field_name, ("key", "value"))
    if name is not None and name.type in {"hash_key_symbol", "string"}:
        yield from table_key(file.text, name.start_byte, name.end_byte, quoted=name.type == "string")
    yield from _constants([value] if value is not None else [], file, part(pair, "key").strip("\"':"))
