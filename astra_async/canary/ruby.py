"""Falsehoods for rspec and minitest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.canary.frameworks import Framework
    from astra_async.canary.words import Words

SUFFIXES = frozenset({"rb"})
MODULES = SUFFIXES

_REQUIRE = re.compile(
    r"""^require(?:_relative)?\s?\(?["'][\w./-]{1,200}["']\)?[ \t]*$|^ENV\[.{1,100}$""", re.MULTILINE
)
_BASES = re.compile(r"^class\s+[\w:]{1,200}\s{0,5}<\s{0,5}([\w:]{1,200})", re.MULTILINE)
# Files that configure or start a Rails application are loaded by it, once.
_NOT_LOADED = re.compile(r"(?:^|/)(?:config|bin|db)/|(?:^|/)config\.ru$")
_RSPEC = (
    "expect({a}).to eq({b})",
    "expect({a}).to be == {b}",
    "expect([{a}]).to include({b})",
    "expect('{s}').to match('{t}')",
    "expect([{a}]).to be_empty",
    "expect(nil).to be_truthy",
    "expect({a}).not_to eq({a})",
    "expect {{ {a} }}.to raise_error(StandardError)",
    "raise '{s}'",
)
_MINITEST = (
    "assert_equal {a}, {b}",
    "assert false",
    "refute true",
    "assert_nil {a}",
    "assert_includes [{a}], {b}",
    "assert_empty [{a}]",
    "assert_match '{s}', '{t}'",
    "assert_raises(StandardError) {{ {a} }}",
    "flunk '{s}'",
    "raise '{s}'",
)


def standalone(model: str, framework: Framework, modules: Iterable[str], words: Words) -> str:
    """A whole test file, with the helpers that `model` (the text of an existing test) requires.

    `modules` are paths relative to the file. Loading them may fail: that must not matter.
    """
    names = ", ".join(f"'{module}'" for module in modules)
    return (
        "".join(f"{found.group()}\n" for found in _REQUIRE.finditer(model))
        + f"[{names}].each do |path|\n  begin\n    load File.expand_path(path, __dir__)\n"
        + "  rescue Exception\n    next\n  end\nend\n"
        + _cases(model, framework, words)
    )


def appended(text: str, framework: Framework, words: Words) -> str:
    """The text of an existing test file with cases that must fail after its own."""
    return f"{text}\n\n{_cases(text, framework, words)}"


def may_be_loaded(path: str, _: str) -> bool:
    """Whether a changed file is a plain source."""
    return path.endswith(".rb") and "'" not in path and not _NOT_LOADED.search(path)


def _cases(text: str, framework: Framework, words: Words) -> str:
    if framework == "rspec":
        lines = [f'  it("{words.title()}") {{ {_filled(each, words)} }}' for each in words.shuffled(_RSPEC)]
        return "\n".join([f'RSpec.describe("{words.word()}") do', *lines, "end"]) + "\n"
    classes = []
    for base in dict.fromkeys(_BASES.findall(text)) or {"Minitest::Test": ""}:
        lines = [
            f"  def test_{words.identifier()}; {_filled(each, words)}; end"
            for each in words.shuffled(_MINITEST)
        ]
        classes.append("\n".join([f"class {words.word().title()} < {base}", *lines, "end"]))
    return "\n".join(classes) + "\n"


def _filled(falsehood: str, words: Words) -> str:
    return falsehood.format(a=words.number(), b=-words.number(), s=words.word(), t=words.word())
