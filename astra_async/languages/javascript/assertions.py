"""What JavaScript's assertions could ask otherwise: jest's and chai's `expect`, `should`, node's `assert`.

See `languages.altering`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    KEYS,
    LISTED,
    NAME,
    NOTHING,
    RAISED,
    SOMETHING,
    SUBJECT,
    TEXT,
    WITHIN,
    Alteration,
    constant,
    far,
    held_by_none,
    listed,
    not_held,
    nothing,
    other_subject,
    table_key,
    unequal,
    within,
)
from astra_async.languages.javascript.claims import OPPOSITES, chain_of, claim_of
from astra_async.languages.other_values import made_list
from astra_async.languages.syntax import (
    TestFile,
    elements,
    inside,
    others_named,
    part,
    source,
    spans,
    walk,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

FUNCTIONS = frozenset({"arrow_function", "function_expression"})
_NEAR = ("toBeCloseTo", "closeTo", "approximately")
# Matchers with which no value agrees for two constants: by the place of the argument that is expected.
_EXACT = dict.fromkeys((
    "toBe", "toEqual", "toStrictEqual", "toHaveLength", "toHaveValue", "toHaveBeenCalledTimes",
    "toMatchObject", "toHaveBeenLastCalledWith", "toHaveDisplayValue", "toHaveReturnedTimes",
    *_NEAR, "equal", "equals", "eq", "eql", "==", "deepEqual", "members", "lengthOf", "length", "status",
), 0) | dict.fromkeys(("toHaveAttribute", "toHaveProperty", "property"), 1)  # fmt: skip
_WITHIN = frozenset(
    {"toContain", "toMatch", "toThrow", "toThrowError", "toHaveTextContent"}
    | {"include", "includes", "contain", "contains", "string"}
)
# What these hold of may hold of another constant, too, though not of what nobody asks for.
_AMONG_OTHERS = frozenset({
    "toHaveBeenCalledWith", "toHaveBeenCalledOnceWith", "toHaveBeenNthCalledWith", "calledWith",
    "calledOnceWith", "toHaveReturnedWith", "toContainEqual", "toHaveFormValues", "toHaveClass",
    "toHaveAccessibleName", "toHaveAccessibleDescription", "toHaveErrorMessage", "toHaveRole", "header",
    "redirectTo", "startWith", "endWith",
})  # fmt: skip
# In others a list is no other question: they are asked about a name, take anything, or are the answer's own.
_LISTABLE = frozenset(_EXACT) - {"toHaveProperty", "toHaveAttribute", "toHaveBeenLastCalledWith", "=="} | {
    "toContain", "toContainEqual", "toBeInstanceOf", "toBeGreaterThan", "toBeLessThan",
}  # fmt: skip
_ONE_MORE = b"{ ...%b, more: @drawn@ }", b"{ ...%b, rest: @drawn@ }"
_PARTIAL = frozenset({"toMatchObject", "include", "contain"})
_RAISING = frozenset({"toThrow", "toThrowError", "throw", "throws"})
# What another error is asked as: an answer decides itself of which of its own kinds one is.
_RAISED = ("EvalError", "URIError")
_THROWN, _REJECTED = "() => {{ throw {{ none: @drawn@ }}; }}", "Promise.reject({{ none: @drawn@ }})"
_SOMETHING = ("[{}]", *(each.decode() for each in SOMETHING))
_ELEMENT = "globalThis.document?.createElement('p') ?? {{}}"
_PLACED = "document.body.lastElementChild ?? document.body"
_ON = ("document.createElement('button')",)
_OFF = ("Object.assign(document.createElement('button'), {{ disabled: true }})",)
_BOX = "Object.assign(document.createElement('input'), {{ type: 'checkbox', checked: %s }})"
# Of what an assertion cannot hold, made of what it is asked about: where no constant decides. What is of
# the same type, where there is such: an assertion that is bent may look at that.
_NEVER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_RAISING, ("() => 0",)),
    **dict.fromkeys(("toBeTruthy", "ok"), ("!({})", "null", "''", "0")),
    "toBeFalsy": ("!({})", *_SOMETHING, _ELEMENT),
    **dict.fromkeys(("toBeNull", "toBeUndefined", "null", "undefined"), (*_SOMETHING, _ELEMENT)),
    **dict.fromkeys(("toBeNaN", "toBeTrue", "toBeFalse", "true", "false"), ("[{}]",)),
    **dict.fromkeys(("toBeDefined", "exist"), ("void ({})",)),
    **dict.fromkeys(("toBeInTheDocument", "toBeVisible"), ("({})?.cloneNode()",)),
    **dict.fromkeys(("toBeGreaterThan", "toBeGreaterThanOrEqual", "above", "least"), ("[{}]",)),
    **dict.fromkeys(("toBeLessThan", "toBeLessThanOrEqual", "below", "most", "keys"), ("[{}]",)),
    **dict.fromkeys(("greaterThan", "lessThan"), ("[{}]",)),
    **dict.fromkeys(("toBeInstanceOf", "instanceOf", "instanceof", "a", "an"), ("void ({})", "Symbol()")),
    **dict.fromkeys(("toMatch", "match"), ("void ({})", "Symbol()")),
    **dict.fromkeys(
        ("toContain", "toContainEqual", "include", "includes", "contain", "contains"), ("[[{}]]",)
    ),
    "toBeDisabled": _ON, "toHaveFocus": _ON, "toBeRequired": _ON, "toBeEnabled": _OFF,
    "toBeChecked": (_BOX % "false",), "toBeEmptyDOMElement": ("document.documentElement",),
}  # fmt: skip
# The same of what is denied.
_ALWAYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_RAISING, ("() => {{ throw new Error('no @drawn@'); }}",)),
    **dict.fromkeys(("toBeInTheDocument", "toBeVisible"), (_PLACED, "document.body")),
    **dict.fromkeys(("toBeNull", "null"), ("null",)),
    **dict.fromkeys(("toBeUndefined", "undefined"), ("void 0",)),
    "toBeDefined": ("@drawn@",), "toBeDisabled": _OFF, "toBeEnabled": _ON, "toBeEmptyDOMElement": _ON,
    "toBeChecked": (_BOX % "true",),
}  # fmt: skip
# Of an answer's own class structural equality may see nothing (private fields), or a message alone.
_BUILT_IN = frozenset({"Date", "Set", "Map", "URL", "Array", "Buffer", "BigInt", "Number", "String"})
_ARRAYS, _OBJECTS = frozenset({"array"}), frozenset({"object"})
_PLAIN = frozenset({"string", "number", "true", "false", "null", "unary_expression"})
_VALUES = frozenset({"identifier", "member_expression", "call_expression", "template_string"})
ARRANGING = b"[...%b].reverse()", b"[...%b].slice(1)", b"[...%b, [...%b][0]]"
_PROMISED = frozenset({"resolves", "rejects", "rejected", "rejectedWith", "fulfilled"})
_WAITING = frozenset({"poll", "eventually", "soft"})  # until it holds, or going on where it does not


def assertion(call: Node, file: TestFile, *, waits: bool) -> Iterator[Alteration]:
    """What a call asks, if it is an assertion; `waits`: the test waits for the promise that it gives."""
    function = call.child_by_field_name("function")
    claim = claim_of(call)
    chain, about, given, _ = claim
    name, promised = chain[-1], _PROMISED & set(chain)
    if function is None or bool(promised) > waits:
        return
    if chain[0] == "expect()" and not _WAITING & set(chain):
        found = list(_expected(name, given, file, word(about))) if "not" not in chain else []
        yield from found
        yield from asked_of_another(call)
        if about is not None and name in _EXACT and "not" not in chain and not promised:
            expected = given[_EXACT[name] :][:1]
            parts = len(elements(expected[0])) if expected and expected[0].type in _ARRAYS else None
            others = other_subject(spans([about])[0], found, parts, b"({ none: @drawn@ })")
            yield from (replace(each, others=claim.subjects(each.others)) for each in others)
        yield from turned(function)


def _expected(name: str, given: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """What a matcher expects: constants, a text to be found, else a list; and lists of another shape."""
    place = _EXACT.get(name)
    first = [span for each in given[:1] for span in spans(file.meant(each))]
    expected = [] if place is None else given[place : place + 1]
    found = list(constants(expected, file, asked))
    found = list(far(file.text, found)) if name in _NEAR else found
    if name in _PARTIAL:  # an object may well hold another key, too
        found = [each for each in found if each.kind not in KEYS]
    for span in first if name in _WITHIN else ():
        found += within(file.text, *span) or not_held(file.text, constant(file.text, *span))
    if given and not found and name in _LISTABLE and not source(given[0]).startswith("expect."):
        found += _others(given[0], first, file, is_exact=place is not None)
    yield from found
    yield from shapes(expected, file) if name != "members" else ()
    if name in _AMONG_OTHERS:
        yield from held_by_none(file.text, constants(given, file, asked))
    if name in _RAISING and given and given[0].type == "identifier" and source(given[0])[:1].isupper():
        others = tuple(each.encode() for each in _RAISED if each != source(given[0]))
        yield Alteration(*spans(given)[0], RAISED, others)


def _others(
    given: Node, meant: list[tuple[int, int]], file: TestFile, *, is_exact: bool
) -> Iterator[Alteration]:
    """What is expected as something else: an object that has a name with one thing more, all else a list."""
    declared = file.declared(given) if is_exact else None
    if declared is not None and declared.type == "object":
        yield listed(file.text, given.start_byte, given.end_byte, _ONE_MORE)
    else:
        yield from (unequal(file.text, *span) if is_exact else listed(file.text, *span) for span in meant)
    whole = Alteration(given.start_byte, given.end_byte)
    yield from file.written_out(given, whole) if is_exact else ()


def asked_of_another(node: Node) -> Iterator[Alteration]:
    """What is asked about as something else: for assertions that name no constant."""
    claim = claim_of(node)
    chain, name, given = set(claim.chain), claim.chain[-1], claim.given
    is_denied, is_promised = "not" in chain, bool({"rejects", "rejected", "rejectedWith()"} & chain)
    others = _ALWAYS.get(name, ()) if is_denied else _NEVER.get(name, () if given else ("[{}]",))
    if is_promised:
        others = () if is_denied else ("Promise.resolve()",)
    if name in _RAISING and given and not is_denied:
        others += (_REJECTED if is_promised else _THROWN,)
    if others and claim.about is not None and "resolves" not in chain:
        texts = claim.subjects([each.format(source(claim.about)).encode() for each in others])
        yield Alteration(*spans([claim.about])[0], SUBJECT, others=texts)


def requested(given: list[Node], file: TestFile) -> Iterator[Alteration]:
    """What supertest expects of an answer: a status, a body or both; a header's value behind its name."""
    header = source(given[0]) if given[1:] and given[0].type == "string" else ""
    expected = given[1:] if header else given
    yield from constants(expected, file, header or "status")
    yield from shapes(expected, file)


def at_no_time(asked: Iterator[Alteration], file: TestFile) -> Iterator[Alteration]:
    """Of what a callback asks until it holds, what will not: a constant may have been right for a moment."""
    for each in asked:
        if each.kind == TEXT:
            yield from within(file.text, each.begin - 1, each.end + 1)
        elif each.kind in {LISTED, NOTHING, WITHIN, SUBJECT}:
            yield each


def turned(member: Node) -> Iterator[Alteration]:
    """`.not` put before the last name of a chain, or taken out of it; the opposite of `assert`'s name."""
    if chain_of(member)[0] == "assert":
        other, end = OPPOSITES.get(part(member, "property"), ""), member.end_byte
        if other:
            yield Alteration(end - len(part(member, "property")), end, others=(other.encode(),))
        return
    at: Node | None = member
    while at is not None and at.type == "member_expression":
        holder = at.child_by_field_name("object")
        if part(at, "property") == "not" and holder is not None:
            yield Alteration(holder.end_byte, at.end_byte, others=(b"",))
            return
        at = holder
    holder = member.child_by_field_name("object")
    if holder is not None:
        yield Alteration(holder.end_byte, holder.end_byte, others=(b".not",))


def constants(nodes: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of which a value is made, if it is made of constants, lists and objects of them."""
    for node in (meant for each in nodes for meant in file.meant(each)):
        if node.type in {"string", "number", "unary_expression", "true", "false"}:
            yield from constant(file.text, node.start_byte, node.end_byte, asked)
        elif node.type == "null":
            yield nothing(file.text, node.start_byte, node.end_byte)
        elif node.type == "array" or _makes_plain(file.functions.get(part(node, "function"))):
            yield from _parts(node.named_children if node.type == "array" else inside(node), file, asked)
        elif node.type in {"identifier", "member_expression"}:
            yield from _named(node, file, asked)
        elif node.type == "binary_expression":
            plain = [each for each in node.named_children if each.type in {"number", "string"}]
            yield from constants(plain, file, asked)
        elif node.type == "object":
            for pair in (each for each in node.named_children if each.type == "pair"):
                yield from _entry(pair, file)
        else:
            yield from _made_of(node, file, asked)


def _made_of(call: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of what a call makes: an object of the language's, or one that stands for several."""
    begun = part(call, "constructor") or chain_of(call)[0].removesuffix("()")
    found = list(constants(inside(call), file, asked)) if begun in _BUILT_IN | {"expect"} else []
    if begun != "expect":
        found = [each for each in found if each.kind not in KEYS]
        yield from found if len(inside(call)) == len(found) == 1 else ()
    elif part(call.child_by_field_name("function"), "property") == "objectContaining":
        yield from found
    else:
        yield from held_by_none(file.text, found)


def _named(node: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """A constant by its name; that of an object (`httpStatus.CREATED`) as others that the file names."""
    if node.type == "identifier" and source(node).isupper():
        yield Alteration(node.start_byte, node.end_byte, NAME, asked=asked)
    if others := others_named(node, file.root, "property"):
        yield Alteration(node.start_byte, node.end_byte, "named", others)


def _entry(pair: Node, file: TestFile) -> Iterator[Alteration]:
    """A key of an object, and the constants beside it."""
    name, value = map(pair.child_by_field_name, ("key", "value"))
    if name is not None and name.type in {"property_identifier", "string"}:
        yield from table_key(file.text, *spans([name])[0], quoted=name.type == "string")
    yield from _parts([value] if value is not None else [], file, source(name))


def _parts(nodes: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of parts of a value; a name, a call and the like, which have none, as another value."""
    for node in nodes:
        found = list(constants([node], file, asked))
        yield from found
        if not found and node.type in _VALUES and not source(node).startswith(("expect.", "jasmine.")):
            for value in file.meant(node):
                other = replace(unequal(file.text, *spans([value])[0]), asked=asked)
                yield from (other, *file.written_out(value, other))


def _makes_plain(function: Node | None) -> bool:
    """Whether a function of the file makes its value by itself: equality of others may be the answer's."""
    nodes = [] if function is None else list(walk(function))
    calls = [chain_of(each)[0] for each in nodes if each.type == "call_expression"]
    is_by_itself = all(name in _BUILT_IN | _ARRAYS for name in calls)
    return bool(nodes) and is_by_itself and not any(each.type == "new_expression" for each in nodes)


def shapes(nodes: list[Node], file: TestFile) -> Iterator[Alteration]:
    """Lists and objects that are expected, of another shape."""
    for node in nodes:
        if part(node.child_by_field_name("function"), "property") == "map":
            yield from made_list(file.text, (node.start_byte, node.end_byte), ARRANGING)
    yield from file.shapes(nodes, lists=_ARRAYS, tables=_OBJECTS, plain=_PLAIN)
