"""Falsehoods for pytest, unittest and Django's test runner."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.canary.frameworks import Framework
    from astra_async.canary.words import Words

SUFFIXES = frozenset({"py"})
MODULES = SUFFIXES

_BASES = re.compile(
    r"^class\s+\w{1,100}\(\s{0,5}((?:\w{1,60}\.){0,3}(?:\w{0,40}TestCase))\s{0,5}\):", re.MULTILINE
)
_IMPORT = re.compile(
    r"^(?:from\s+(?:django|rest_framework|unittest|pytest|aiohttp|tornado|starlette|fastapi|flask|parameterized)[\w.]*"
    r"\s+import\s+[\w, ]+|import\s+(?:unittest|pytest|django)[\w.]*)[ \t]*$",
    re.MULTILINE,
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


def standalone(model: str, framework: Framework, modules: Iterable[str], words: Words) -> str:
    """A whole test module, with the test libraries that `model` (the text of an existing test) imports.

    `modules` are dotted names. Importing them may fail: that must not matter.
    """
    names = ", ".join(repr(module) for module in modules)
    imports = "".join(f"{found.group()}\n" for found in _IMPORT.finditer(model))
    loading = (
        f"for {words.name} in [{names}]:\n"
        f"    try:\n        importlib.import_module({words.name})\n"
        "    except BaseException:\n        pass\n"
    )
    return f"import importlib\n{imports}{loading}{_cases(model, framework, words)}"


def appended(text: str, framework: Framework, words: Words) -> str:
    """The text of an existing test module with cases that must fail after its own."""
    return f"{text}\n\n{_cases(text, framework, words)}"


def dotted(path: str) -> str:
    """The module's name for a path relative to an import root."""
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def may_be_loaded(path: str, _: str) -> bool:
    """Whether a changed file can be imported at all; a main module starts the application."""
    parts = path.removesuffix(".py").split("/")
    return path.endswith(".py") and all(part.isidentifier() for part in parts) and parts[-1] != "__main__"


def _cases(text: str, framework: Framework, words: Words) -> str:
    bases = dict.fromkeys(_BASES.findall(text))
    pieces = [_functions(words)] if framework == "pytest" else []
    if framework != "pytest" and not bases:
        bases = {"__import__('unittest').TestCase": ""}
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
