#!/usr/bin/env python3
"""Count constructs that make this project's English hard to read, and fail above their limits.

.venv/bin/python scripts/prose.py                   print each construct with its rates and limit
.venv/bin/python scripts/prose.py --list NUMBER     print every place of one construct

Code units are docstrings, blocks of comments, messages of raised exceptions and help texts of
astra_async/. Page units are paragraphs, list items and table rows of README.md, CONTRIBUTING.md, CHANGELOG.md
and docs/. A rate is the number of units with the construct per 1,000 units. Exit code: 0, or 1 if a rate is
above its limit.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/development/*.md")
_SHORTEST_MESSAGE = 12  # characters
_NO_PROSE = r"^```.*?^```|^<!-- begin .*?<!-- end[^\n]*"  # code, and tables that scripts/docs.py generates


@dataclass(frozen=True, slots=True)
class Construct:
    """A pattern to avoid, with the highest allowed number of units per 1,000 units."""

    name: str
    limit: int
    pattern: str


_OPENINGS = "What|Who|Whose|How|Which|Where|Whether|Under which|By what|Of what"
_IF = "it|they|there|that|this|one|an?|no|its|the [a-z]+ (?:is|has|was|cannot|does)"
_COMING = "its|their|an|that|no|nothing"
_AFTER_OF = "all|those|these|it|which|whom|what|them|that|a|the|several|both|each|every|an"
_IDIOMS = "brings? about|[Gg]oes on|go on|went on|in vain|in the midst|at hand|meanwhile|beside"

CONSTRUCTS = (
    Construct("'who' for code", 1, r"\b[Ww]hoever\b|(?:^|[.;:] )Who (?!is the)\w+|\bfor who\b"),
    Construct("'nobody', 'somebody' for values", 1, r"\b(?:[Nn]o|[Ee]very|[Aa]ny|[Ss]ome)body(?:'s)?\b"),
    Construct("opens with What, Who, How, Which, Where, Whether", 11, rf"^(?:{_OPENINGS})\b"),
    Construct("'is no NOUN'", 23, r"\b(?:is|are|was|were|be) no [a-z]+"),
    Construct(
        "'is none', 'of none'", 2,
        r"\b(?:is|are|was|were|has|have|had|gave|where there (?:is|are|was|were)|of) none\b",
    ),
    Construct(
        "'of its own', 'of ours', \"of another's\"", 4,
        r"\bof (?:its|their) own\b|\bof (?:ours|theirs|yours)\b|\bof [a-z]+'s\b",
    ),
    Construct("'where' for 'if' or 'when'", 9, rf"\bwhere (?:{_IF})\b"),
    Construct(
        "'comes to', 'come of'", 1,
        rf"\b(?:com(?:e|es|ing)|came) to (?:{_COMING})\b|\bhas come to\b|\bcome of\b|\bcomes to\b",
    ),
    Construct(
        "'tells of', 'is told'", 10,
        r"\b(?:tells?|told) (?:of|that|which|apart|the|it|so|by|once|in)\b|\bis told\b",
    ),
    Construct(
        "'stands in', 'lies beside' for 'is'", 1,
        r"\b(?:stands?|stood|lies|lie|lay) (?:in|at|beside|by|there|behind|for|on|upon|within)\b",
    ),
    Construct("', too' at the end", 1, r", too\b"),
    Construct("a clause opens with Of", 1, rf"(?:^|[.;:,] )[Oo]f (?:{_AFTER_OF}) "),
    Construct(
        "opens with The same, The other, The rest, As", 1,
        r"^(?:The same|The other|The rest|As `|As [A-Za-z]+ (?:does|has|says|is))",
    ),
    Construct("'bring about', 'go on', 'in vain', 'beside'", 2, rf"\b(?:{_IDIOMS})\b"),
    Construct("clause opens with so", 1, r"(?:^|[.;:,] )[Ss]o (?:many|much|long|often|far)\b(?! as)"),
)  # fmt: skip


def code_units(name: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield (place, text) for each docstring, message, help text and comment block of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{name}:{getattr(node, 'lineno', 1)}", ast.get_docstring(node) or ""
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = _literal(node.exc.args[0])
            yield f"{name}:{node.lineno}", text if len(text) >= _SHORTEST_MESSAGE else ""
        elif isinstance(node, ast.Call):
            helps = [word.value for word in node.keywords if word.arg == "help"]
            if isinstance(node.func, ast.Name) and node.func.id in {"Setting", "Option"}:
                helps += node.args[:1]
            yield from ((f"{name}:{node.lineno}", _literal(value)) for value in helps)
    yield from _comments(name, source)


def _literal(node: ast.expr) -> str:
    parts = (
        item for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )
    return "".join(str(part.value) for part in parts)


def _comments(name: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield blocks of consecutive comment lines, without markers for tools."""
    first, last, block = 0, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(noqa|type:|pragma|fmt|!)", token.string):
            continue
        row = token.start[0]
        if row != last + 1:
            yield f"{name}:{first}", block
            first, block = row, ""
        last, block = row, f"{block} {token.string.lstrip('#').strip()}"
    yield f"{name}:{first}", block


def page_units(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield (place, text) for each paragraph, list item and table row of a Markdown page."""
    without_code = re.sub(
        _NO_PROSE, lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    for found in re.finditer(r"[^\n]+(?:\n(?![-|#\n]|\d+\.|    )[^\n]+)*", without_code):
        if not found[0].startswith(("    ", "<!--", "![")):
            line = without_code.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}", re.sub(r"^(?:- |\d+\. |#+ |\| )", "", found[0])


def units(root: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the units of the code and of the pages below `root`, with single spaces."""
    modules = [path for path in sorted(root.glob("astra_async/**/*.py")) if "bundled" not in path.parts]
    pages = [path for pattern in _PAGES for path in sorted(root.glob(pattern))]
    code = [unit for path in modules for unit in code_units(f"{path.relative_to(root)}", path.read_text())]
    text = [unit for path in pages for unit in page_units(str(path.relative_to(root)), path.read_text())]
    return _normal(code), _normal(text)


def _normal(found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(place, " ".join(text.split())) for place, text in found if text.strip()]


def hits(pattern: str, found: Sequence[tuple[str, str]]) -> list[str]:
    """Return `place: excerpt` for each unit with the construct."""
    matches = ((place, text, re.search(pattern, text)) for place, text in found)
    return [f"{place}: {text[max(0, m.start() - 40) : m.end() + 60]}" for place, text, m in matches if m]


def main(arguments: Sequence[str]) -> int:
    """Print the rates, or the places of one construct; return the exit code."""
    parser = argparse.ArgumentParser(description="Count constructs that make English hard to read.")
    parser.add_argument(
        "--list", type=int, choices=range(len(CONSTRUCTS)), metavar="NUMBER", help="print places"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout to read (default: this one)")
    options = parser.parse_args(arguments)
    code, pages = units(options.root)
    if options.list is not None:
        print("\n".join(hits(CONSTRUCTS[options.list].pattern, code + pages)))
        return 0
    over = 0
    print(f"{len(code)} code units and {len(pages)} page units; units with a construct per 1,000, and limit")
    for number, item in enumerate(CONSTRUCTS):
        rates = [1000 * len(hits(item.pattern, found)) / max(1, len(found)) for found in (code, pages)]
        over += max(rates) > item.limit
        print(f"{number:2d} {rates[0]:7.1f} {rates[1]:7.1f} of {item.limit:2d}  {item.name}")
    print(f"{over} of {len(CONSTRUCTS)} constructs above their limits (--list NUMBER prints the places)")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
