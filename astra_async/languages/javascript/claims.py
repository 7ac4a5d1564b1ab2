"""What a chain of names asserts in JavaScript: jest's and chai's `expect`, `should`, and both `assert`s.

All are read as chains that `expect()` begins. See `languages.altering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from astra_async.languages.altering import both_ways
from astra_async.languages.syntax import inside, part, source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node


# `assert`'s names, node's and chai's, by the names that say the same behind `expect`.
_BEHIND_EXPECT = {
    "": "ok", "ok": "ok", "isOk": "ok", "notOk": "not.ok", "isNotOk": "not.ok",
    "isTrue": "true", "isFalse": "false", "isNull": "null", "isNotNull": "not.null",
    "isUndefined": "undefined", "isDefined": "not.undefined", "exists": "exist", "notExists": "not.exist",
    "equal": "==", "strictEqual": "equal", "deepStrictEqual": "eql", "deepEqual": "deepEqual",
    "notEqual": "not.==", "notStrictEqual": "not.equal", "notDeepStrictEqual": "not.eql",
    "notDeepEqual": "not.deepEqual",
    "throws": "throws", "doesNotThrow": "not.throws", "rejects": "rejects.throw",
    "doesNotReject": "not.rejects.throw",
    "match": "match", "doesNotMatch": "not.match", "notMatch": "not.match",
    "include": "include", "notInclude": "not.include", "lengthOf": "lengthOf",
    "sameMembers": "members", "notSameMembers": "not.members", "notInstanceOf": "not.instanceof",
    "propertyVal": "property", "closeTo": "closeTo", "approximately": "closeTo", "isAbove": "above",
    "isAtLeast": "least", "isBelow": "below", "isAtMost": "most", "instanceOf": "instanceof",
}  # fmt: skip
_TAKING = {"property": 2} | dict.fromkeys(("ok", "true", "false", "null", "undefined", "exist"), 0)
OPPOSITES = both_ways({
    "equal": "notEqual", "strictEqual": "notStrictEqual", "deepEqual": "notDeepEqual",
    "deepStrictEqual": "notDeepStrictEqual", "throws": "doesNotThrow", "rejects": "doesNotReject",
    "match": "doesNotMatch", "isTrue": "isFalse", "isOk": "isNotOk", "isNull": "isNotNull",
    "isUndefined": "isDefined", "exists": "notExists", "include": "notInclude",
    "sameMembers": "notSameMembers", "instanceOf": "notInstanceOf",
})  # fmt: skip


class Claim(NamedTuple):
    """A chain of names that asserts something, what it is about, and what it is given.

    `is_before`: what it is about stands before it, as in chai's `it.should.be.null`.
    """

    chain: list[str]
    about: Node | None
    given: list[Node]
    is_before: bool = False

    def subjects(self, others: Iterable[bytes]) -> tuple[bytes, ...]:
        """Expressions in the place of that: before a name they stand in parentheses, and nothing has none."""
        if not self.is_before:
            return tuple(others)
        return tuple(b"(%b)" % each for each in others if not each.startswith((b"void", b"null")))


def claim_of(node: Node) -> Claim:
    """What a call, or a name, asserts: `expect(it).to.equal(5)`, `it.should.be.null`, `assert(it)`."""
    is_call = node.type == "call_expression"
    member, given = (node.child_by_field_name("function") if is_call else node), inside(node)
    chain = chain_of(member)
    if chain[0] == "assert" and given and (name := _BEHIND_EXPECT.get(".".join(chain[1:]))):
        taken = _TAKING.get(name.rpartition(".")[2], 1)  # behind it stands what a failure says
        return Claim(["expect()", *name.split(".")], given[0], given[1 : 1 + taken])
    if "should" not in chain[1:-1]:
        begun = "expect()" if chain[0] == "should()" else chain[0]
        about = None if member is None else next(iter(inside(_root_of(member))), None)
        return Claim([begun, *chain[1:]], about, given)
    at = member
    while at is not None and part(at, "property") != "should":
        at = _holder(at)
    about = None if at is None else _holder(at)
    return Claim(["expect()", *chain[len(chain_of(at)) :]], about, given, is_before=True)


def _holder(node: Node) -> Node | None:
    return node.child_by_field_name("object") or node.child_by_field_name("function")


def _root_of(node: Node) -> Node:
    """The call with which a chain begins."""
    holder = _holder(node)
    if holder is None or (node.type == "call_expression" and holder.type == "identifier"):
        return node
    return _root_of(holder)


def chain_of(node: Node | None) -> list[str]:
    """`a().b.c` as ["a()", "b", "c"]."""
    names: list[str] = []
    called = ""
    while node is not None:
        if node.type == "member_expression":
            names.append(part(node, "property") + called)
            node, called = node.child_by_field_name("object"), ""
        elif node.type == "call_expression":
            node, called = node.child_by_field_name("function"), "()"
        else:
            names.append((source(node) if node.type == "identifier" else node.type) + called)
            node = None
    return names[::-1] or [""]
