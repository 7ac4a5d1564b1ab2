"""Falsehoods for pytest, unittest and Django's test runner."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.integrity.canary.frameworks import Framework
    from astra_async.integrity.canary.words import Words

SUFFIXES = frozenset({"py"})

_TEST = re.compile(r"^([ \t]{0,40}(?:async )?def )test\w{0,200}\s?\(", re.MULTILINE)
_BASES = re.compile(
    r"^class\s+\w{1,100}\(\s{0,5}((?:\w{1,60}\.){0,3}(?:\w{0,40}TestCase))\s{0,5}\):", re.MULTILINE
)
_IMPORT = re.compile(
    r"^(?:from\s+(?:django|rest_framework|unittest|pytest|aiohttp|tornado|starlette|fastapi|flask|parameterized)[\w.]*"
    r"\s+import\s+[\w, ]+|import\s+(?:unittest|pytest|django)[\w.]*)[ \t]*$",
    re.MULTILINE,
)
_LOADED = re.compile(
    r"^(?:from\s+([\w.]{1,200})\s+import\s+([\w, ]{1,500})|import\s+([\w.]{1,200}))", re.MULTILINE
)
_PLAIN = (
    "assert {a} == {b}",
    "assert [{a}] == [{b}]",
    "assert {{'value': {a}}} == {{'value': {b}}}",
    "assert {s!r} in {t!r}",
    "assert isinstance({s!r}, int)",
    "assert not {a}",
    "raise AssertionError({s!r})",
)
_METHODS = (
    "self.assertEqual({a}, {b})",
    "self.assertListEqual([{a}], [{b}])",
    "self.assertDictEqual({{'value': {a}}}, {{'value': {b}}})",
    "self.assertTrue({a} == {b})",
    "self.assertFalse({a} > {b})",
    "self.assertIn({s!r}, [{t!r}])",
    "self.assertIsNone({a})",
    "self.assertGreater({b}, {a})",
    "self.assertRaises(Exception, int, '{a}')",
    "self.fail({s!r})",
    *_PLAIN,
)


def standalone(model: str, framework: Framework, words: Words) -> str:
    """A whole test module that imports what `model`, the text of a test in the same folder, imports.

    Importing a module of the project may fail: that must not matter.
    """
    imports = "".join(f"{found.group()}\n" for found in _IMPORT.finditer(model))
    loading = (
        f"for {words.name} in {_modules(model)!r}:\n"
        f"    try:\n        importlib.import_module({words.name}, __package__)\n"
        "    except BaseException:\n        pass\n"
    )
    roots = set(re.findall(r"\w+", imports))
    bases = [base for base in _bases(model) if base.partition(".")[0] in roots]
    return f"import importlib\n{imports}{loading}{_cases(bases, framework, words)}"


def emptied(text: str, framework: Framework, words: Words) -> str:  # noqa: ARG001 - as in each language
    """The test module with its tests under random names, and the fixtures that they need.

    The tests still use the solution, which may forge a report only then.
    """

    def renamed(found: re.Match[str]) -> str:
        above = text[text.rfind("\n", 0, max(0, found.start() - 1)) + 1 : found.start()].strip()
        is_fixture = above.startswith("@") and "fixture" in above
        return found[0] if is_fixture else f"{found[1]}test_{words.identifier()}("

    return _TEST.sub(renamed, text)


def appended(text: str, framework: Framework, words: Words) -> str:
    """The text of an existing test module with cases that must fail after its own."""
    return f"{text}\n\n{_cases(_bases(text), framework, words)}"


def _modules(model: str) -> list[str]:
    """What is imported, and imported names too, since they may be modules."""
    found: dict[str, None] = {}
    for package, names, module in _LOADED.findall(model):
        found[package or module] = None
        joint = "" if package.endswith(".") else "."
        found |= {f"{package}{joint}{name.split()[0]}": None for name in names.split(",") if name.strip()}
    return list(found)


def _bases(text: str) -> list[str]:
    """Classes from which the test classes of a module are made."""
    return list(dict.fromkeys(_BASES.findall(text)))


def _cases(bases: list[str], framework: Framework, words: Words) -> str:
    pieces = [_functions(words)] if framework == "pytest" else []
    if framework != "pytest" and not bases:
        bases = ["__import__('unittest').TestCase"]
    return "\n\n".join([*pieces, *(_class(base, words) for base in bases)]) + "\n"


def _functions(words: Words) -> str:
    return "\n".join(
        f"def test_{words.identifier()}():\n    {_filled(falsehood, words)}"
        for falsehood in words.shuffled(_PLAIN)
    )


def _class(base: str, words: Words) -> str:
    lines = [f"class {words.word().title()}({base}):"]
    lines += [
        f"    def test_{words.identifier()}(self):\n        {_filled(falsehood, words)}"
        for falsehood in words.shuffled(_METHODS)
    ]
    return "\n".join(lines)


def _filled(falsehood: str, words: Words) -> str:
    return falsehood.format(a=words.number(), b=-words.number(), s=words.word(), t=words.word())
