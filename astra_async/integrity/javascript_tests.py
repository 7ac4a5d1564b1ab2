"""The tests that a JavaScript or TypeScript file declares, under the titles by which reports name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.javascript_names import FUNCTIONS, SUBTEST
from astra_async.integrity.rewriting import DeclaredTest
from astra_async.integrity.syntax import above, inside, part, place, source, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from astra_async.integrity.javascript_names import Names, Role
    from astra_async.integrity.rewriting import Titles

_ASKED_LATER = frozenset({"each", "for", "skipIf", "runIf", "extend"})  # `it.each(table)` is no test yet
_SKIPPING, _FAILING = frozenset({"skip", "todo"}), frozenset({"fails", "failing", "fail"})
_REPEATING = frozenset({"forEach", "map"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JavaScriptTest(DeclaredTest):
    """A call that declares a test with a function; `each` if that is called for every row of a table."""

    each: bool = False


def declared_tests(root: Node, names: Names) -> tuple[list[JavaScriptTest], dict[str, str]]:
    """The tests that can be made to fail, and why others cannot."""
    found, left_out = [], {}
    for node in walk(root):
        if node.type != "call_expression":
            continue
        role = _role(node, names)
        body = _body(node) if role is not None and role.kind == "test" else None
        if role is None or body is None:
            continue
        groups, skipped, doubt = _groups(node, names)
        said = role.said | _options(node)
        title = _title(node)
        if skipped or said & _SKIPPING:
            continue
        if said & _FAILING:
            left_out[title or place(node)] = "it is expected to fail"
            continue
        each = bool(said & {"each", "for"})
        key = place(node) if each else title or place(node)
        if title is None:
            doubt = "its title is computed"
        elif each:
            doubt = "its title is made from a table"
        titles = () if doubt or title is None else ((*groups, title),)
        found.append(JavaScriptTest(node=body, titles=titles, key=key, doubt=doubt, each=each))
    return found, left_out


def _role(call: Node, names: Names) -> Role | None:
    function = call.child_by_field_name("function")
    last = part(function, "property")
    if last in _ASKED_LATER:
        return None
    return names.role(function) or (SUBTEST if last == "test" and _is_subtest(function, names) else None)


def _is_subtest(function: Node | None, names: Names) -> bool:
    """Whether `t.test` is called in a test that has a parameter `t` (node:test)."""
    tests = (node for node in above(function) if node.type in FUNCTIONS) if function is not None else ()
    return "node:test" in names.imported and any(
        source(each) == part(function, "object") for node in tests for each in parameters_of(node)[:1]
    )


def _arguments(call: Node) -> list[Node]:
    given = call.child_by_field_name("arguments")
    return inside(call) if given is not None and given.type == "arguments" else []  # else a template


def _body(call: Node) -> Node | None:
    """The function of a test: written there, named, or made by a call."""
    arguments = _arguments(call)
    written = [each for each in arguments if each.type in FUNCTIONS]
    if written:
        return written[-1]
    named = {
        "identifier",
        "call_expression",
        "member_expression",
        "as_expression",
        "parenthesized_expression",
    }
    return next((each for each in arguments[1:] if each.type in named), None)


def _options(call: Node) -> frozenset[str]:
    """What `{ fails: true }` among the arguments says."""
    pairs = (pair for each in _arguments(call) if each.type == "object" for pair in each.named_children)
    return frozenset(
        part(pair, "key") for pair in pairs if pair.type == "pair" and part(pair, "value") != "false"
    )


def _groups(call: Node, names: Names) -> tuple[Titles, bool, str]:
    """The titles of the suites round a test, whether one is skipped, and what leaves the name in doubt."""
    titles: list[str] = []
    skipped, doubt = False, ""
    for node in above(call):
        if node.type in {"function_declaration", "method_definition", "generator_function_declaration"}:
            doubt = "it stands in a function that may be called several times"
        if node.type not in FUNCTIONS:
            continue
        outer = node.parent.parent if node.parent is not None and node.parent.type == "arguments" else None
        role = _role(outer, names) if outer is not None and outer.type == "call_expression" else None
        if outer is not None and role is not None and role.kind == "suite":
            title = _title(outer)
            skipped = skipped or bool(role.said & _SKIPPING)
            if title is None or role.said & {"each", "for"}:
                doubt = "the title of its suite is computed"
            titles.insert(0, title or "")
        elif role is not None:
            doubt = "it stands in another test"
        elif not _repeats(outer):
            doubt = "it stands in a function that may be called several times"
    return tuple(titles), skipped, doubt


def _repeats(call: Node | None) -> bool:
    function = call.child_by_field_name("function") if call is not None else None
    return part(function, "property") in _REPEATING


def _title(call: Node) -> str | None:
    """The title where it is written as one constant string."""
    arguments = _arguments(call)
    return _constant(arguments[0]) if arguments else None


def _constant(node: Node) -> str | None:
    if node.type == "binary_expression" and part(node, "operator") == "+":
        parts = [_constant(each) for each in node.named_children]
        return None if None in parts else "".join(each or "" for each in parts)
    if node.type not in {"string", "template_string"}:
        return None
    pieces = []
    for each in node.named_children:
        if each.type not in {"string_fragment", "escape_sequence"}:
            return None
        pieces.append(_unescaped(source(each)) if each.type == "escape_sequence" else source(each))
    return "".join(pieces)


def _unescaped(text: str) -> str:
    rest = text[1:]
    if rest[:1] in {"u", "x"}:
        return chr(int(rest[1:].strip("{}"), 16))
    return _ESCAPES.get(rest, "" if rest in {"\n", "\r\n"} else rest)


def parameters_of(function: Node) -> list[Node]:
    """The patterns of a function's parameters, without types and without `this`."""
    single = function.child_by_field_name("parameter")
    if single is not None:
        return [single]
    # TypeScript's own: `done: DoneCallback`, and `this: Context`, which is none.
    patterns = [each.child_by_field_name("pattern") or each for each in inside(function, "parameters")]
    return [each for each in patterns if source(each) != "this"]
