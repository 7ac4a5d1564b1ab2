"""How a JavaScript test file asserts: of which library, by which names, about which constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.integrity.syntax import part, source, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

Library = Literal["expect", "chai", "should", "assert", "supertest", "screen"]

_SIMPLE = frozenset({"string", "number", "true", "false", "null"})
# Where a name stands that is given a meaning.
_DECLARING = frozenset(
    {
        *(
            "formal_parameters",
            "required_parameter",
            "optional_parameter",
            "assignment_pattern",
            "rest_pattern",
        ),
        *("assignment_expression", "function_declaration", "class_declaration", "catch_clause"),
    }
)
_PLAIN = _SIMPLE | {"array", "object", "pair", "string_fragment", "property_identifier", ",", ":", "'", '"'}
_PLAIN |= {"[", "]", "{", "}"}
_LONGEST = 120  # characters of a constant that is repeated


@dataclass(frozen=True, slots=True)
class Kind:
    """An assertion as a test uses it: of which library, by which name, about which constant."""

    library: Library
    matcher: str
    constant: str = ""
    type: str = ""


def kinds(root: Node, agent: str) -> Iterator[Kind]:
    """The assertions of a file or a test's body; `agent` is what the file calls supertest."""
    for node in walk(root):
        if node.type == "call_expression":
            kind = _called(node, agent)
        else:
            kind = _property(node) if node.type == "expression_statement" else None
        if kind is not None:
            yield kind


def _called(node: Node, agent: str) -> Kind | None:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return None
    given, chain = arguments.named_children, _chain(function)
    if chain == ["assert"]:
        return Kind("assert", "")
    library = _library(chain, agent)
    if library is None:
        return None
    expected = given[1:2] if library == "assert" else given[:1]
    plain = next(((source(each), each.type) for each in expected if is_plain(each)), ("", ""))
    return Kind(library, chain[-1], *plain)


def _library(chain: list[str], agent: str) -> Library | None:
    """Whose assertion it is that is called by this chain of names."""
    if chain[0] == "assert":
        return "assert"
    if chain[0] == "screen":
        return "screen" if chain[-1].startswith("getBy") else None
    if chain[0] == "expect()":
        return "chai" if _is_chai(chain) else "expect"
    if "should" in chain[1:]:
        return "should"
    return "supertest" if agent and chain[0] == f"{agent}()" and chain[-1] == "expect" else None


def _property(node: Node) -> Kind | None:
    """Chai's assertions without a call: `expect(x).to.be.true`."""
    inner = node.named_children[0] if node.named_children else None
    if inner is None or inner.type != "member_expression":
        return None
    chain = _chain(inner)
    return Kind("chai", chain[-1]) if chain[:1] == ["expect()"] and _is_chai(chain) else None


def _is_chai(chain: list[str]) -> bool:
    return bool({"to", "be", "is", "have", "been"}.intersection(chain[1:-1]))


def _chain(node: Node) -> list[str]:
    """`a().b.c` as ["a()", "b", "c"]."""
    names: list[str] = []
    at: Node | None = node
    called = ""
    while at is not None:
        if at.type == "member_expression":
            names.append(part(at, "property") + called)
            at, called = at.child_by_field_name("object"), ""
        elif at.type == "call_expression":
            at, called = at.child_by_field_name("function"), "()"
        elif at.type in {"await_expression", "parenthesized_expression"}:
            at = at.named_children[0] if at.named_children else None
        else:
            names.append((source(at) if at.type == "identifier" else at.type) + called)
            at = None
    return names[::-1]


def agent_of(root: Node) -> str:
    """What the file calls supertest."""
    for node in walk(root):
        if node.type in {"import_statement", "variable_declarator"} and "supertest" in source(node)[-40:]:
            names = (source(each) for each in walk(node) if each.type == "identifier")
            if agent := next((name for name in names if name != "require"), ""):
                return agent
    return ""


def hides_libraries(root: Node) -> bool:
    """Whether `expect` or `assert` may be another thing in some test: a parameter, a function's own name."""
    names = {"identifier", "shorthand_property_identifier_pattern"}
    for node in walk(root):
        if node.type not in names or source(node) not in {"expect", "assert"} or node.parent is None:
            continue
        holder, inner = node.parent, node
        while holder.type in {"object_pattern", "pair_pattern"} and holder.parent is not None:
            holder, inner = holder.parent, holder
        if holder.type == "variable_declarator":
            scope = holder.parent.parent if holder.parent is not None else None
            is_outermost = scope is not None and scope.type in {"program", "export_statement"}
            if holder.child_by_field_name("name") == inner and not is_outermost:
                return True
        elif holder.type in _DECLARING or holder.child_by_field_name("parameter") == inner:
            return True
    return False


def is_plain(node: Node) -> bool:
    """Whether the expression is a constant without a name, call or escape in it."""
    text = source(node)
    if len(text) > _LONGEST or "\n" in text or "\\" in text:  # as a string of JSX may have them
        return False
    if node.type in {"array", "object"} and not node.named_children:
        return False
    return all(each.type in _PLAIN for each in walk(node))
