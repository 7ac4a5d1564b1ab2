"""What the names in a JavaScript test file stand for: tests, suites, and what has them as members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from astra_async.integrity.syntax import above, inside, part, source, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    Kind = Literal["test", "suite", "namespace"]

FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
SCOPES = FUNCTIONS | {"function_declaration", "method_definition", "generator_function_declaration"}


class Role(NamedTuple):
    """What an expression stands for, and what was said of it: `it.skip.each` is a test, skip and each."""

    kind: Kind
    said: frozenset[str] = frozenset()


_TEST, _SUITE, _NAMESPACE = Role("test"), Role("suite"), Role("namespace")
SUBTEST = _TEST
_SKIPPED, _ALONE = frozenset({"skip"}), frozenset({"only"})
# What test frameworks declare globally, and export under the same names.
_GLOBAL = {
    **dict.fromkeys(("it", "test", "specify"), _TEST),
    **dict.fromkeys(("describe", "context", "suite"), _SUITE),
    **dict.fromkeys(("fit", "ftest"), Role("test", _ALONE)),
    **dict.fromkeys(("fdescribe", "fcontext"), Role("suite", _ALONE)),
    **dict.fromkeys(("xit", "xtest", "xspecify"), Role("test", _SKIPPED)),
    **dict.fromkeys(("xdescribe", "xcontext"), Role("suite", _SKIPPED)),
    **dict.fromkeys(("global", "globalThis", "window", "self"), _NAMESPACE),
}
_RUNNERS = {
    "vitest": "vitest",
    "@jest/globals": "jest",
    "mocha": "mocha",
    "node:test": "node:test",
    "jasmine": "jasmine",
    "@playwright/test": "playwright",
    "bun:test": "bun",
}
# What only one runner has as an object of its own.
_OBJECTS = {"jest": "jest", "vi": "vitest", "jasmine": "jasmine", "mocha": "mocha"}
# Members that say something of a test or suite and leave it one.
_CALLED = frozenset({"each", "for", "skipIf", "runIf", "extend"})  # and are called before it is
_SAYING = _CALLED | {
    *("only", "skip", "todo", "failing", "fails", "fail"),
    *("concurrent", "sequential", "serial", "parallel", "shuffle"),
}


class Names:
    """The names of one file."""

    def __init__(self, root: Node) -> None:
        self._known: dict[str, Role | None] = dict(_GLOBAL)
        self.imported: set[str] = set()  # modules of test frameworks
        self._used: set[str] = set()  # names that are called or have members called
        for node in walk(root):
            if node.type == "import_statement":
                self._import(node)
            elif node.type == "variable_declarator":
                self._declare(node)
            elif node.type in {"function_declaration", "class_declaration"} and _is_outermost(node):
                self._known[part(node, "name")] = None
            elif node.type == "member_expression":
                self._used.add(part(node, "object"))

    @property
    def runner(self) -> str:
        """The runner that the file's own text is written for; empty where it could be several."""
        named = (_RUNNERS[module] for module in sorted(self.imported))
        return next(named, "") or next((each for name, each in _OBJECTS.items() if name in self._used), "")

    def role(self, node: Node | None) -> Role | None:
        """What an expression that is called stands for."""
        if node is None:
            return None
        if node.type == "identifier":
            name = source(node)
            return None if _is_parameter(node, name) else self._known.get(name)
        if node.type == "member_expression":
            return self._member(node)
        if node.type == "call_expression":
            role = self.role(node.child_by_field_name("function"))
            return role if role is not None and role.said & _CALLED else None
        if node.type in {"parenthesized_expression", "non_null_expression", "as_expression"}:
            return self.role(next(iter(node.named_children), None))
        return None

    def _member(self, node: Node) -> Role | None:
        name = part(node, "property")
        role = self.role(node.child_by_field_name("object"))
        if role is None:
            return None
        if role.kind == "namespace":
            return _GLOBAL.get(name)
        if name in _SAYING:
            return Role(role.kind, role.said | {name})
        inner = _GLOBAL.get(name)  # `test.describe`
        return Role(inner.kind, inner.said | role.said) if inner is not None else None

    def _import(self, node: Node) -> None:
        module = part(node, "source")[1:-1]
        for each in walk(node):
            if each.type == "import_specifier":
                name = part(each, "name")
                self._bind(part(each, "alias") or name, module, name)
            elif each.parent is not None and each.parent.type == "import_clause":
                named = each.named_children[0] if each.type == "namespace_import" else each
                if named.type == "identifier":
                    self._bind(source(named), module, "")

    def _declare(self, node: Node) -> None:
        pattern, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if pattern is None or not _is_outermost(node):
            return
        module = _required(value)
        role = self.role(value) if value is not None else None
        if pattern.type == "identifier":
            if module is not None:
                self._bind(source(pattern), module, "")
            elif role is not None or source(pattern) in self._known:
                self._known[source(pattern)] = role
            return
        for key, name in _destructured(pattern):
            if module is not None:
                self._bind(name, module, key)
            elif role is not None and role.kind == "namespace":
                self._known[name] = _GLOBAL.get(key)
            elif name in self._known:
                self._known[name] = None

    def _bind(self, name: str, module: str, exported: str) -> None:
        """A name that comes from a module; `exported` is empty for the module as a whole."""
        if module in _RUNNERS:
            self.imported.add(module)
            whole = _TEST if module == "node:test" else _NAMESPACE
            self._known[name] = _GLOBAL.get(exported) if exported else whole
        elif name in self._known and not module.startswith("."):
            self._known[name] = None  # of another library: ava, tape
        # What a file of the project exports as `it` or `test` is taken for what its name says.


def _is_parameter(node: Node, name: str) -> bool:
    """Whether a function round the node has a parameter of this name, which hides the file's own."""
    for scope in above(node):
        if scope.type in SCOPES:
            given = scope.child_by_field_name("parameters") or scope.child_by_field_name("parameter")
            if given is not None and any(
                each.type in {"identifier", "shorthand_property_identifier_pattern"} and source(each) == name
                for each in walk(given)
            ):
                return True
    return False


def _is_outermost(node: Node) -> bool:
    return not any(scope.type in SCOPES for scope in above(node))


def _required(value: Node | None) -> str | None:
    """The module that `require('...')` or `await import('...')` names."""
    if value is not None and value.type == "await_expression":
        value = next(iter(value.named_children), None)
    if (
        value is None
        or value.type != "call_expression"
        or part(value, "function") not in {"require", "import"}
    ):
        return None
    return next((source(each)[1:-1] for each in inside(value)[:1] if each.type == "string"), None)


def _destructured(pattern: Node) -> Iterator[tuple[str, str]]:
    for each in pattern.named_children:
        if each.type == "shorthand_property_identifier_pattern":
            yield source(each), source(each)
        elif each.type == "pair_pattern":
            yield part(each, "key"), part(each, "value")
