"""Statements that fail, in Ruby: expectations of the kinds that a test uses itself, and plain exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.integrity.rewriting import different, distinct
from astra_async.integrity.syntax import inside, source, walk

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from astra_async.integrity.rewriting import Manner, Value

_EXCEPTIONS = ("RuntimeError", "ArgumentError", "KeyError", "StandardError", "TypeError", "IOError")
# {a} and {b} are two different constants of one kind, {more} is a number greater than {less}.
_MATCHERS = {
    "eq": "expect({a}).to eq({b})",
    "eql": "expect({a}).to eql({b})",
    "be": "expect({a}).to be({b})",
    "equal": "expect({a}).to equal({b})",
    "include": "expect([{a}]).to include({b})",
    "match": "expect('{less}').to match('{more}')",
    "match_array": "expect([{a}]).to match_array([{b}])",
    "contain_exactly": "expect([{a}]).to contain_exactly({b})",
    "be_nil": "expect({b}).to be_nil",
    "be_truthy": "expect(nil).to be_truthy",
    "be_falsey": "expect([{b}]).to be_falsey",
    "be_falsy": "expect([{b}]).to be_falsy",
    "be_empty": "expect([{b}]).to be_empty",
    "be_present": "expect([]).to be_present",
    "be_valid": "expect(Struct.new(:valid?).new(false)).to be_valid",
    "be_success": "expect(Struct.new(:success?).new(false)).to be_success",
    "be_successful": "expect(Struct.new(:successful?).new(false)).to be_successful",
    "be_a": "expect([{b}]).to be_a(Hash)",
    "be_an": "expect([{b}]).to be_an(Hash)",
    "be_kind_of": "expect([{b}]).to be_kind_of(Hash)",
    "be_instance_of": "expect([{b}]).to be_instance_of(Hash)",
    "be_within": "expect({less}).to be_within(0.1).of({more})",
    "start_with": "expect('a{less}').to start_with('b')",
    "end_with": "expect('{less}a').to end_with('b')",
    "have_key": "expect({{ {a} => 1 }}).to have_key({b})",
    "have_attributes": "expect(Struct.new(:size).new({less})).to have_attributes(size: {more})",
    "have_http_status": "expect(ActionDispatch::TestResponse.new(404)).to have_http_status(200)",
    "change": "expect {{ {a} }}.to change {{ {b} }}",
    "raise_error": "expect {{ {b} }}.to raise_error({error})",
    "not_to": "expect({b}).not_to eq({b})",
    "to_not": "expect({b}).to_not eq({b})",
}
_METHODS = {
    "assert": "assert {a} == {b}",
    "assert_equal": "assert_equal {a}, {b}",
    "assert_not_equal": "assert_not_equal {b}, {b}",
    "refute_equal": "refute_equal {b}, {b}",
    "refute": "refute {a} != {b}",
    "assert_not": "assert_not {a} != {b}",
    "assert_nil": "assert_nil {b}",
    "refute_nil": "refute_nil nil",
    "assert_not_nil": "assert_not_nil nil",
    "assert_same": "assert_same [{a}], [{b}]",
    "assert_includes": "assert_includes [{a}], {b}",
    "refute_includes": "refute_includes [{b}], {b}",
    "assert_empty": "assert_empty [{b}]",
    "refute_empty": "refute_empty []",
    "assert_match": "assert_match '{more}', '{less}'",
    "assert_instance_of": "assert_instance_of Hash, [{b}]",
    "assert_kind_of": "assert_kind_of Hash, [{b}]",
    "assert_operator": "assert_operator {less}, :>, {more}",
    "assert_in_delta": "assert_in_delta {less}, {more}",
    "assert_predicate": "assert_predicate {more}, :zero?",
    "assert_respond_to": "assert_respond_to {b}, :no_{less}",
    "assert_raises": "assert_raises({error}) {{ {b} }}",
    "assert_raise": "assert_raise({error}) {{ {b} }}",
    "assert_difference": "assert_difference('{less}') {{ {b} }}",
    "assert_response": "assert_equal 200, 404",
    "must_equal": "_({a}).must_equal({b})",
    "must_be_nil": "_({b}).must_be_nil",
    "must_include": "_([{a}]).must_include({b})",
    "must_raise": "_(-> {{ {b} }}).must_raise({error})",
    "flunk": "flunk '{more}'",
}
_USUAL = {True: ("eq", "include", "be_truthy"), False: ("assert_equal", "assert", "assert_includes")}
_MOST = 4  # assertions in a body
_LONGEST = 60  # characters of a constant: a line stays readable


class Symbol(str):
    """A symbol of a test file: a constant of a kind of its own."""

    __slots__ = ()


def constants(root: Node) -> list[Value]:
    """Short constants of a file, from which falsehoods are made."""
    return distinct(each for node in walk(root) for each in _constant(node))


def failing(body: Node, pool: Sequence[Value], rng: random.Random, manner: Manner, *, rspec: bool) -> str:
    """One line that fails, by expectations of rspec or by methods of minitest.

    Assertions stand one behind the other, each where the one before has failed: if any does not, none does.
    """
    if not manner.assertion:
        return f"raise {rng.choice(_EXCEPTIONS)}, {_written(different('', pool, rng))}"
    templates = _MATCHERS if rspec else _METHODS
    kinds = list(dict.fromkeys(_kinds(body, templates))) or [(kind, None, "") for kind in _USUAL[rspec]]
    line = ""
    for kind, value, error in rng.sample(kinds, min(len(kinds), _MOST)):
        false = _false(templates[kind], value, pool, rng).replace("{error}", error or "ZeroDivisionError")
        line = f"begin; {false}; rescue Exception; {line}; end" if line else false
    return line


def _false(template: str, value: Value, pool: Sequence[Value], rng: random.Random) -> str:
    if value is None:
        value = rng.choice(pool or [rng.randint(2, 999)])
    less = rng.randint(1, 999)
    other = different(value, pool, rng)
    return template.format(
        a=_written(other), b=_written(value), less=less, more=less + rng.randint(1, 99), error="{error}"
    )


def _written(value: Value) -> str:
    if isinstance(value, Symbol):
        return f":{value}"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _kinds(body: Node, templates: dict[str, str]) -> Iterator[tuple[str, Value, str]]:
    """What a body asserts that there is a falsehood for: kind, expected constant, the exception's name."""
    for node in walk(body):
        if node.type == "identifier" and (name := source(node)) in templates:
            is_called = node.parent is not None and node.parent.type == "call"
            given = inside(node.parent) if is_called else []
            value = next((each for argument in given for each in _constant(argument)), None)
            errors = (source(each) for each in given if each.type in {"constant", "scope_resolution"})
            yield name, value, next(errors, "")


def _constant(node: Node) -> Iterator[Value]:
    text = source(node)
    if len(text) > _LONGEST:
        return
    if node.type == "integer" and text.isdecimal() and not text.startswith("0"):
        yield int(text)
    elif node.type == "simple_symbol" and text[1:].isidentifier():
        yield Symbol(text[1:])
    elif node.type == "string" and [each.type for each in node.named_children] == ["string_content"]:
        content = text[1:-1]
        if not set(content) & set("'\\\n#") and text[0] in "'\"":
            yield content
