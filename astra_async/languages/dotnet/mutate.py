"""Find what a mutation may change in C# tests: xUnit, NUnit and MSTest, FluentAssertions and Shouldly."""

from __future__ import annotations

import re
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
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_GRAMMAR = Grammar(
    module="tree_sitter_c_sharp",
    literals={
        "integer_literal": "number", "real_literal": "float", "string_literal": "text",
        "verbatim_string_literal": "verbatim", "character_literal": "character", "boolean_literal": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "invocation_expression", "member_access_expression", "element_access_expression", "binary_expression",
        "lambda_expression", "conditional_expression", "interpolated_string_expression", "argument_list",
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "foreach_statement", "while_statement", "do_statement",
        "try_statement", "switch_statement", "switch_expression", "conditional_expression",
        "conditional_access_expression", "lambda_expression", "anonymous_method_expression",
        "local_function_statement",
    }),
    declarations={},
)  # fmt: skip
_OPPOSITES = both_ways({
    # xUnit
    "Equal": "NotEqual", "True": "False", "Null": "NotNull", "Empty": "NotEmpty", "Same": "NotSame",
    "StrictEqual": "NotStrictEqual", "Contains": "DoesNotContain", "Matches": "DoesNotMatch",
    "IsType": "IsNotType", "InRange": "NotInRange",
    # NUnit and MSTest
    "AreEqual": "AreNotEqual", "AreSame": "AreNotSame", "AreEquivalent": "AreNotEquivalent",
    "IsTrue": "IsFalse", "IsNull": "IsNotNull", "IsEmpty": "IsNotEmpty",
    "IsInstanceOf": "IsNotInstanceOf", "IsInstanceOfType": "IsNotInstanceOfType",
})  # fmt: skip
_FLUENT_OPPOSITES = both_ways({
    "BeTrue": "BeFalse", "ShouldBeTrue": "ShouldBeFalse",
    **{
        name: f"Not{name}"
        for name in (
            *("Be", "BeNull", "BeEmpty", "BeEquivalentTo", "BeOfType", "BeSameAs", "Equal", "Contain"),
            *("HaveCount", "StartWith", "EndWith", "Match"),
        )
    },
    **{f"Should{name}": f"ShouldNot{name}" for name in ("Be", "BeNull", "BeEmpty", "BeOfType", "Contain")},
})  # fmt: skip
_CLASSES = re.compile(r"(?:\w+\.)*(?:Assert|CollectionAssert|StringAssert)")
_EQUALITIES = {"Equal", "StrictEqual", "AreEqual", "AreEquivalent"}
_FLUENT_EQUALITIES = {"Be", "Equal", "BeEquivalentTo", "HaveCount", "ShouldBe"}
_CONSTRAINT = re.compile(r"(Is|Does)\.(?!Not\b)")
_EQUAL_CONSTRAINT = re.compile(r"Is\.(?:EqualTo|EquivalentTo)\(|Has\.(?:Count|Length)\.EqualTo\(")
_TEST_ATTRIBUTES = {"Fact", "Theory", "Test", "TestCase", "TestMethod", "DataTestMethod"}
_ROW_ATTRIBUTES = {"InlineData", "TestCase", "DataRow"}
_DECLARED_AND_ASSERTED = 2  # mentions of a parameter that is an expected value and no input


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of C# files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        body = part(node, "body")
        if node.type != "method_declaration" or body is None:
            continue
        attributes = [each for each in walk(node) if each.type == "attribute"]
        if not any(_name(each) in _TEST_ATTRIBUTES for each in attributes):
            continue
        has_own_title = any("DisplayName" in text_of(each) for each in attributes)
        yield FoundTest(
            file=file,
            title="" if has_own_title else text_of(part(node, "name")),
            body=body,
            assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
            rows=partial(_rows, file, node, attributes),
        )


def _name(attribute: Node) -> str:
    """Return the name of an attribute without its namespace and the suffix `Attribute`."""
    return text_of(part(attribute, "name")).rpartition(".")[2].removesuffix("Attribute")


def _assertion(node: Node) -> Iterator[Assertion]:
    function = part(node, "function")
    if (
        node.type != "invocation_expression"
        or function is None
        or function.type != "member_access_expression"
    ):
        return
    name, on, given = part(function, "name"), text_of(part(function, "expression")), _arguments(node)
    if name is not None and name.type == "generic_name":
        name = name.named_children[0]
    called = text_of(name)
    if called == "That" and _CLASSES.fullmatch(on) and given:
        yield _constraint(node, given)
    elif _CLASSES.fullmatch(on) and called in _OPPOSITES:
        operands = given[:2] if called in _EQUALITIES else ()
        yield Assertion(node, renamed(name, _OPPOSITES), operands)
    elif called in _FLUENT_OPPOSITES and (called.startswith("Should") or ".Should()" in on):
        operands = given[:1] if called in _FLUENT_EQUALITIES else ()
        yield Assertion(node, renamed(name, _FLUENT_OPPOSITES), operands)


def _constraint(node: Node, given: tuple[Node, ...]) -> Assertion:
    """Return NUnit's `Assert.That(condition)` or `Assert.That(actual, constraint)`."""
    constraint = given[1] if len(given) > 1 else None
    if constraint is None or "string" in constraint.type:
        return Assertion(node, wrapped(given[0], "!({})"))
    text = text_of(constraint)
    operands = _arguments(constraint) if _EQUAL_CONSTRAINT.match(text) else ()
    if not (found := _CONSTRAINT.match(text)):
        return Assertion(node, None, operands)
    begin = constraint.start_byte
    return Assertion(node, (begin, begin + len(found[1]), f"{found[1]}.Not".encode()), operands)


def _arguments(node: Node) -> tuple[Node, ...]:
    """Return the values of a call's arguments."""
    return tuple(each.named_children[-1] for each in arguments(node) if each.named_children)


def _rows(file: TestFile, test: Node, attributes: list[Node], operand: Node) -> list[tuple[TestFile, Node]]:
    """Return the cells of `[InlineData(1, 2)]` and the like that belong to a parameter of the test."""
    parameters = part(test, "parameters")
    names = [text_of(part(each, "name")) for each in parameters.named_children] if parameters else []
    uses = sum(each.type == "identifier" and each.text == operand.text for each in walk(test))
    if operand.type != "identifier" or text_of(operand) not in names or uses != _DECLARED_AND_ASSERTED:
        return []
    at = names.index(text_of(operand))
    rows = [_cells(each) for each in attributes if _name(each) in _ROW_ATTRIBUTES]
    return [(file, cells[at]) for cells in rows if at < len(cells)]


def _cells(attribute: Node) -> list[Node]:
    """Return the positional arguments of an attribute."""
    return [
        each.named_children[-1]
        for held in attribute.named_children
        if held.type == "attribute_argument_list"
        for each in held.named_children
        if part(each, "name") is None
    ]
