"""Statements that fail, in JavaScript that also passes as TypeScript: false assertions and exceptions.

An assertion is of a kind that the test itself uses, about constants like its own, where it has any.
A name that is not in scope there, or a matcher that its library does not have, is an exception: the
statement fails as it must.
"""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.integrity.javascript_assertions import agent_of, hides_libraries, is_plain, kinds
from astra_async.integrity.rewriting import quoted
from astra_async.integrity.syntax import source, walk

if TYPE_CHECKING:
    import random

    from tree_sitter import Node

    from astra_async.integrity.javascript_assertions import Kind, Library

_OWN = 0.75  # of the assertions are of the test's own kinds, or else the file's; about its own constants
_ALIKE = 0.4  # of them are such as a scored run's tests have too
_MOST = 4  # assertions of a test
# {a} and {b} are unlike numbers, {s} and {t} unlike words.
_GENERAL: dict[str, tuple[str, ...]] = {
    "expect": (
        "expect({a}).toBe({b})",
        "expect({s}).toBe({t})",
        "expect({{ value: {a} }}).toEqual({{ value: {b} }})",
        "expect([{s}]).toEqual([{t}])",
        "expect([{a}]).toContain({b})",
        "expect({s}).toMatch({t})",
        "expect(() => {a}).toThrow()",
        "expect(0).toBeTruthy()",
        "expect({s}).toBeFalsy()",
        "expect({a}).toBeNull()",
        "expect({a}).toBeUndefined()",
        "expect({a}).toBeGreaterThan({a} + 1)",
        "expect({a}).not.toBe({a})",
        "expect([{s}]).not.toEqual([{s}])",
    ),
    "chai": (
        "expect({a}).to.equal({b})",
        "expect({s}).to.equal({t})",
        "expect({{ value: {a} }}).to.deep.equal({{ value: {b} }})",
        "expect([{s}]).to.eql([{t}])",
        "expect([{a}]).to.include({b})",
        "expect({s}).to.contain({t})",
        "expect(false).to.be.true",
        "expect({a}).to.be.null",
        "expect({s}).to.be.an('array')",
        "expect([{a}]).to.be.empty",
        "expect({a}).to.be.above({a})",
        "expect({a}).to.not.equal({a})",
        "expect({{}}).to.have.property({s})",
        "expect(() => {a}).to.throw()",
    ),
    "should": (
        "({a}).should.equal({b})",
        "({s}).should.equal({t})",
        "[{a}].should.deep.equal([{b}])",
        "[{s}].should.eql([{t}])",
    ),
    "assert": (
        "assert.equal({a}, {b})",
        "assert.strictEqual({s}, {t})",
        "assert.deepEqual([{a}], [{b}])",
        "assert.deepEqual({{ value: {s} }}, {{ value: {t} }})",
        "assert.notEqual({a}, {a})",
        "assert.throws(() => {a})",
        "assert.ok(0)",
    ),
}
_WAITING = (
    "await expect(Promise.resolve({a})).resolves.toBe({b})",
    "await expect(Promise.reject(new Error({s}))).resolves.toBe({a})",
    "await expect(Promise.resolve({s})).rejects.toThrow()",
)
_EXCEPTIONS = (
    "throw new Error({s})",
    "throw new TypeError({s})",
    "throw new RangeError({s})",
    "throw Object.assign(new Error({s}), {{ code: {t} }})",
    'JSON.parse("{{" + {s})',
    'decodeURIComponent("%" + {s})',
)
_REJECTIONS = ("await Promise.reject(new Error({s}))", "await Promise.reject(new TypeError({s}))")
# The kinds that a test may use. {L} is a constant of the test, {O} another of its kind that differs from it.
_EQUAL, _UNEQUAL = "expect({O}).{m}({L})", "expect({L}).not.{m}({L})"
_ELEMENT = 'expect(document.createElement("{tag}")).{m}({s})'
_KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "expect": {
        **dict.fromkeys(("toBe", "toEqual", "toStrictEqual"), (_EQUAL, _UNEQUAL)),
        "toMatchObject": ("expect({{ value: {a} }}).toMatchObject({{ value: {b} }})",),
        "toContain": ("expect([{O}]).toContain({L})", "expect([{L}]).not.toContain({L})"),
        "toContainEqual": ("expect([{O}]).toContainEqual({L})",),
        "toHaveLength": ("expect(new Array({a})).toHaveLength({b})", "expect([{s}]).not.toHaveLength(1)"),
        "toMatch": ("expect({s}).toMatch({t})",),
        "toHaveProperty": ("expect({{ value: {a} }}).toHaveProperty({s})",),
        "toBeCloseTo": ("expect({a}).toBeCloseTo({b})",),
        **dict.fromkeys(("toBeGreaterThan", "toBeLessThan"), ("expect({a}).{m}({a})",)),
        "toBeGreaterThanOrEqual": ("expect({a}).toBeGreaterThanOrEqual({a} + 1)",),
        "toBeLessThanOrEqual": ("expect({a} + 1).toBeLessThanOrEqual({a})",),
        **dict.fromkeys(("toThrow", "toThrowError"), ("expect(() => {a}).{m}()",)),
        "toBeTruthy": ("expect(0).toBeTruthy()", 'expect("").toBeTruthy()', "expect({s}).not.toBeTruthy()"),
        "toBeFalsy": ("expect({s}).toBeFalsy()", "expect({a}).toBeFalsy()"),
        "toBeTrue": ("expect(false).toBeTrue()",),
        "toBeFalse": ("expect(true).toBeFalse()",),
        "toBeNull": ("expect({s}).toBeNull()", "expect({a}).toBeNull()"),
        "toBeUndefined": ("expect({s}).toBeUndefined()",),
        "toBeDefined": ("expect(undefined).toBeDefined()",),
        "toBeInstanceOf": ("expect([{a}]).toBeInstanceOf(Map)",),
        **dict.fromkeys(
            ("toHaveBeenCalled", "toHaveBeenCalledTimes", "toHaveBeenCalledWith"),
            ('expect((typeof jest === "undefined" ? vi : jest).fn()).{m}({a})',),
        ),
        "toHaveValue": ('expect(document.createElement("input")).toHaveValue({s})',),
        "toBeInTheDocument": (
            'expect(document.createElement("p")).toBeInTheDocument()',
            "expect(document.body).not.toBeInTheDocument()",
        ),
        "toBeDisabled": ('expect(document.createElement("button")).toBeDisabled()',),
        "toBeEnabled": ('expect(document.createElement("button")).not.toBeEnabled()',),
        "toBeChecked": (
            'expect(Object.assign(document.createElement("input"), {{ type: "checkbox" }})).toBeChecked()',
        ),
        "toBeVisible": ('expect(document.createElement("p")).toBeVisible()',),
        **dict.fromkeys(
            ("toHaveTextContent", "toHaveAttribute", "toHaveClass"),
            ('expect(document.createElement("p")).{m}({s})',),
        ),
    },
    "chai": {
        **dict.fromkeys(
            ("equal", "equals", "eq", "eql"),
            ("expect({O}).to.{m}({L})", "expect({O}).to.deep.{m}({L})", "expect({L}).to.not.deep.{m}({L})"),
        ),
        **dict.fromkeys(
            ("include", "includes", "contain", "contains"),
            ("expect([{O}]).to.{m}({L})", "expect([{L}]).to.not.{m}({L})"),
        ),
        **dict.fromkeys(("length", "lengthOf"), ("expect(new Array({a})).to.have.{m}({b})",)),
        "property": ("expect({{ value: {a} }}).to.have.property({s})",),
        "status": ("expect({{ status: {a} }}).to.have.status({b})",),
        "match": ("expect({s}).to.match(/^[0-9]+$/)",),
        **dict.fromkeys(("a", "an"), ("expect({s}).to.be.{m}('function')",)),
        **dict.fromkeys(("above", "gt", "greaterThan", "below", "lt"), ("expect({a}).to.be.{m}({a})",)),
        **dict.fromkeys(("throw", "throws"), ("expect(() => {a}).to.{m}()",)),
        "true": ("expect(false).to.be.true", "expect({a}).to.be.true"),
        "false": ("expect(true).to.be.false",),
        **dict.fromkeys(("null", "undefined", "empty"), ("expect({s}).to.be.{m}",)),
        **dict.fromkeys(("ok", "exist"), ("expect({s}).to.not.{m}", "expect(null).to.{m}")),
    },
    "should": {
        **dict.fromkeys(("equal", "eql", "be"), ("({O}).should.equal({L})", "[{O}].should.eql([{L}])")),
    },
    "assert": {
        **dict.fromkeys(
            ("equal", "strictEqual", "deepEqual", "deepStrictEqual"),
            ("assert.{m}({O}, {L})",),
        ),
        **dict.fromkeys(
            ("notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual"),
            ("assert.{m}({L}, {L})",),
        ),
        "ok": ("assert.ok(0)", 'assert.ok("")', "assert.ok(null)"),
        "throws": ("assert.throws(() => {a})",),
        "isTrue": ("assert.isTrue(false)",),
        "isFalse": ("assert.isFalse(true)",),
        **dict.fromkeys(("isNull", "isUndefined", "isEmpty"), ("assert.{m}({s})",)),
        **dict.fromkeys(("include", "includes"), ("assert.{m}([{O}], {L})",)),
        "lengthOf": ("assert.lengthOf([{a}, {b}], 1)",),
        "match": ("assert.match({s}, /^[0-9]+$/)",),
        "": ("assert({a} < 0)", "assert(false)"),
    },
    "supertest": {"": ('await {agent}((_, answer) => answer.end()).get("/").expect(4{n}, {s})',)},
    "screen": {"": ("screen.{m}({s})",)},
}
# What a twin's test and that of a scored run look alike with: an equality of what has to be computed first.
_EQUALITIES: dict[Library, dict[str, str]] = {
    "expect": dict.fromkeys(("toBe", "toEqual", "toStrictEqual"), "expect({one}).{m}({other})"),
    "chai": dict.fromkeys(("equal", "equals", "eq", "eql"), "expect({one}).to.{m}({other})"),
    "assert": dict.fromkeys(
        ("equal", "strictEqual", "deepEqual", "deepStrictEqual"), "assert.{m}({one}, {other})"
    ),
}


@dataclass(frozen=True, slots=True)
class Falsehoods:
    """What a file's tests may be made to fail with."""

    kinds: tuple[Kind, ...]
    constants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    agent: str = ""
    collects: bool = False  # jasmine notes what fails and goes on
    # A test says how many assertions it makes, or its library's name is hidden from some.
    counts: bool = False

    @classmethod
    def of(cls, root: Node, runner: str) -> Falsehoods:
        """Those of a file by its tree, written for this runner as far as it shows."""
        constants: dict[str, dict[str, None]] = {"string": {}, "number": {}}
        for node in walk(root):
            if node.type in constants and is_plain(node):
                constants[node.type][source(node)] = None
        agent = agent_of(root)
        plain = {key: tuple(value) for key, value in constants.items()}
        counts = "ssertions(" in source(root) or hides_libraries(root)
        return cls(tuple(kinds(root, agent)), plain, agent, runner == "jasmine", counts)

    def assertions(self, body: Node, rng: random.Random, *, waits: bool, first: bool) -> str:
        """False assertions for a test with this body, which may hold `await` if `waits`; one if `first`.

        Each of them has to fail: where one does not, nothing else is asserted, and the test passes.
        """
        own = tuple(kinds(body, self.agent))
        near = {key: [text for text in self.constants[key] if text in source(body)] for key in self.constants}
        several = 1 if first or self.collects else rng.randint(1, _MOST)
        return _one_of([self._assertion(own, near, rng, waits=waits) for _ in range(several)])

    def truths(self, body: Node, rng: random.Random, *, first: bool) -> str:
        """What looks like a twin's failing statements and holds; it comes `first` in the test, or last.

        Assertions only by a library that the test itself calls, which no name in the file hides from it.
        """
        equalities = () if self.counts else tuple(filter(_is_equality, kinds(body, self.agent)))
        if not equalities or rng.random() > _OWN:
            return f"if ({quoted(rng)}.length > {rng.randint(11, 15)}) throw new Error({quoted(rng)})"
        several = 1 if first or self.collects else rng.randint(1, _MOST)
        return _one_of([_equality(rng.choice(equalities), rng, holds=True) for _ in range(several)])

    def _assertion(
        self, own: tuple[Kind, ...], near: dict[str, list[str]], rng: random.Random, *, waits: bool
    ) -> str:
        kinds = own if rng.random() < _OWN else self.kinds
        waiting = [kind for kind in kinds if waits or kind.library != "supertest"]
        alike = tuple(filter(_is_equality, waiting))
        if alike and rng.random() < _ALIKE:
            return _equality(rng.choice(alike), rng, holds=False)
        if waiting and rng.random() < _OWN:
            made = self._of_kind(rng.choice(waiting), near, rng)
            if made:
                return made
        libraries = sorted({kind.library for kind in self.kinds} & set(_GENERAL))
        if not libraries:
            return exception(rng, waits=waits)
        library = rng.choice(libraries)
        general = _GENERAL[library] + (_WAITING if waits and library == "expect" else ())
        return _filled(rng.choice(general), rng)

    def _of_kind(self, kind: Kind, near: dict[str, list[str]], rng: random.Random) -> str:
        templates = _KINDS[kind.library].get(kind.matcher) or _KINDS[kind.library].get(
            "" if kind.library in {"supertest", "screen"} else "?", ()
        )
        if not templates:
            return ""
        constant, kind_of = kind.constant, kind.type
        if not constant:
            constant, kind_of = str(rng.randint(2, 9_999)), "number"
        return _filled(
            rng.choice(templates),
            rng,
            m=kind.matcher,
            L=constant,
            O=_other(constant, kind_of, near, rng),
            agent=self.agent,
            n=f"{rng.randint(20, 99)}",
        )


def _other(constant: str, kind: str, near: dict[str, list[str]], rng: random.Random) -> str:
    """A constant of the same kind that differs from this one in any language's opinion.

    Often one of the same test, such as what it hands to the code: a wrong answer may well have given that.
    """
    if kind in {"true", "false"}:
        return "false" if kind == "true" else "true"
    if kind == "null":
        return "false"
    if kind == "number":
        others = [each for each in near["number"] if _number(each) != _number(constant)]
        return rng.choice(others) if others and rng.random() < _OWN else f"{rng.randint(10_000, 99_999)}.5"
    if kind == "string":
        others = [each for each in near["string"] if each[1:-1] != constant[1:-1]]
        return rng.choice(others) if others and rng.random() < _OWN else quoted(rng)
    return f"[{quoted(rng)}]" if kind == "array" else f"{{ {json.loads(quoted(rng))}: {quoted(rng)} }}"


def _one_of(assertions: list[str]) -> str:
    """Assertions of which the first that holds ends the test."""
    tried = (f"try {{ {each}; return; }} catch (problem) {{ }} " for each in assertions[:-1])
    return f"{''.join(tried)}{assertions[-1]}"


def _is_equality(kind: Kind) -> bool:
    return kind.matcher in _EQUALITIES.get(kind.library, {})


def _equality(kind: Kind, rng: random.Random, *, holds: bool) -> str:
    """An equality of numbers or words, of which one has to be put together first."""
    if rng.random() < 0.5:  # noqa: PLR2004 - half and half
        one, two = rng.randint(2, 500), rng.randint(2, 500)
        other = one + two if holds else one + two + rng.randint(1, 9)
        made, shown = f"{one} + {two}", str(other)
    else:
        one_word, two_words = (json.loads(quoted(rng)) for _ in range(2))
        whole = one_word + two_words
        at = rng.randrange(len(whole))
        letter = whole[at] if holds else rng.choice(string.ascii_lowercase.replace(whole[at], ""))
        made, shown = f'"{one_word}" + "{two_words}"', f'"{whole[:at]}{letter}{whole[at + 1 :]}"'
    return _EQUALITIES[kind.library][kind.matcher].format(one=made, other=shown, m=kind.matcher)


def exception(rng: random.Random, *, waits: bool) -> str:
    """A statement that throws, such that what follows it counts as reachable."""
    made = _filled(rng.choice(_EXCEPTIONS + (_REJECTIONS if waits else ())), rng)
    return f"if ({quoted(rng)}.length > {rng.randint(0, 4)}) {made}" if made.startswith("throw") else made


def _number(text: str) -> float:
    try:
        return float(int(text, 0)) if text[:2].lower() in {"0x", "0o", "0b"} else float(text.replace("_", ""))
    except ValueError:
        return -1.0


def _filled(template: str, rng: random.Random, **more: str) -> str:
    first, second = rng.sample(range(2, 10_000), 2)
    word = quoted(rng)
    return template.format(a=first, b=second, s=word, t=json.dumps(json.loads(word)[::-1] + "x"), **more)
