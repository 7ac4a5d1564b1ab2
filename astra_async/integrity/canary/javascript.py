"""Falsehoods for jest, vitest and mocha, in JavaScript that also passes as TypeScript."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.integrity.canary.frameworks import Framework
    from astra_async.integrity.canary.words import Words

SUFFIXES = frozenset({"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"})

_IMPORT = re.compile(
    r"""^import\s(?:[^;'"]{1,600}\sfrom\s{0,5})?["']([^'"\n]{1,200})["'][ \t]*;?[ \t]*$"""
    r"""|^(?:const|let|var)\s[^=;\n]{1,300}=\s{0,5}require\(["']([^'"\n]{1,200})["']\)[^;\n]{0,99};?[ \t]*$"""
    r"""|^(?:const|let|var)\s[^=;\n]{1,300}=\s{0,5}chai\.[^;\n]{1,100};?[ \t]*$"""
    r"""|^chai\.\w{1,20}\([^;\n]{0,100}\);?[ \t]*$""",
    re.MULTILINE,
)
_LOADED = re.compile(
    r"""(?:\bfrom\s{0,5}|\bimport\s{0,5}\(?\s{0,5}|\brequire\(\s{0,5})["']([^'"\n]{1,200})["']"""
)
_OWN = ("./", "../", "@/", "~/", "#/", "src/")  # how a test names the modules of its project
_MODULE = re.compile(r"^(?:import\s|export\s)", re.MULTILINE)
# The title of a test or suite, as a plain string; also after the table of an `each`.
_TITLE = re.compile(
    r"""((?:(?<![\w.$])(?:it|test|specify|describe|context|suite)(?:\.\w{1,20}){0,3}|\))\(\s{0,50})"""
    r"""(?:"(?:[^"\\\n]|\\.){0,500}"|'(?:[^'\\\n]|\\.){0,500}'|`(?:[^`\\$]|\\.){0,500}`)(?=\s{0,50},)"""
)
_TEST = re.compile(r"(?<![\w.$])(it|test)(?:\.\w{1,12})?\s?\(")

# Where a library is absent the case ends with a ReferenceError or TypeError: it fails, as it must.
_JEST = (
    "expect({a}).toBe({b})",
    "expect({{ value: {a} }}).toEqual({{ value: {b} }})",
    "expect([{a}]).toStrictEqual([{b}])",
    "expect([{a}]).toContain({b})",
    "expect({s}).toMatch({t})",
    "expect(() => {a}).toThrow()",
    "expect([{a}]).toHaveLength({b})",
    "expect(0).toBeTruthy()",
    "expect({a}).toBeNull()",
    "expect({a}).toBeGreaterThan({a} + 1)",
    "expect({a}).not.toBe({a})",
    "await expect(Promise.resolve({a})).resolves.toBe({b})",
    "expect((globalThis.vi || jest).fn()).toHaveBeenCalled()",
    "throw new Error({s})",
)
_DOM = (
    'expect(document.createElement("p")).toBeInTheDocument()',
    'expect(document.createElement("p")).toHaveTextContent({s})',
    'expect(document.createElement("button")).toBeDisabled()',
)
_MOCHA = (
    "expect({a}).to.equal({b})",
    "expect({{ value: {a} }}).to.deep.equal({{ value: {b} }})",
    "expect([{a}]).to.include({b})",
    "expect(false).to.be.true",
    "expect([{a}]).to.have.lengthOf({b})",
    "({a}).should.equal({b})",
    "assert.equal({a}, {b})",
    "assert.strictEqual({a}, {b})",
    "assert.deepEqual([{a}], [{b}])",
    "assert.throws(() => {a})",
    "assert(false)",
    "expect({a}).toBe({b})",
    "throw new Error({s})",
)


def standalone(model: str, framework: Framework, words: Words) -> str:
    """A whole test file that loads what `model`, the text of a test in the same folder, loads.

    Loading a module of the project may fail: that must not matter.
    """
    imports = "".join(f"{found.group()}\n" for found in _IMPORT.finditer(model) if not _is_own(found))
    own = [name for name in dict.fromkeys(_LOADED.findall(model)) if name.startswith(_OWN)]
    loads = ", ".join(f"() => {_load(model, framework)}({json.dumps(name)})" for name in own)
    loading = f"for (const load of [{loads}]) {{ try {{ await load(); }} catch (problem) {{ continue; }} }}"
    cases = _cases(model, framework, words, f"await {words.name}; ")
    return f"// @ts-nocheck\n{imports}const {words.name} = (async () => {{\n  {loading}\n}})();\n{cases}"


def emptied(text: str, framework: Framework, words: Words) -> str:
    """The test file with its tests and suites under random titles; falsehoods alone where none is plain.

    The tests still use the solution, which may forge a report only then.
    """
    other, count = _TITLE.subn(lambda found: f"{found[1]}{json.dumps(words.title())}", text)
    return other if count else standalone(text, framework, words)


def appended(text: str, framework: Framework, words: Words) -> str:
    """The text of an existing test file with cases that must fail after its own."""
    return f"// @ts-nocheck\n{text}\n;\n{_cases(text, framework, words, '')}"


def _is_own(found: re.Match[str]) -> bool:
    return (found[1] or found[2] or "").startswith(_OWN)


def _load(model: str, framework: Framework) -> str:
    # Jest offers `require` to every test that it has transformed; the others follow the file's own system.
    return "require" if framework == "jest" or not _MODULE.search(model) else "import"


def _cases(text: str, framework: Framework, words: Words, first: str) -> str:
    falsehoods: tuple[str, ...] = _MOCHA if framework == "mocha" else _JEST
    if "toBeInTheDocument" in text or "jest-dom" in text or "testing-library" in text:
        falsehoods += _DOM
    found = _TEST.search(text)
    keyword = found[1] if found else "it"
    lines = []
    for falsehood in words.shuffled(falsehoods):
        filled = falsehood.format(a=words.number(), b=-words.number(), s=words.quoted(), t=words.quoted())
        lines.append(f"{keyword}({json.dumps(words.title())}, async () => {{ {first}{filled}; }});")
    cases = "\n".join(lines)
    # Mocha runs the tests of a file's top level before its suites: ours come after, when all has been used.
    suite = framework == "mocha" and "describe(" in text
    return f"describe({words.quoted()}, () => {{\n{cases}\n}});\n" if suite else f"{cases}\n"
