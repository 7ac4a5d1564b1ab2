"""No text makes the parsers raise or take more than linear time, and what was rendered is read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.answers import REPAIRS, parse_leniently, parse_solution, parse_strictly
from astra_async.types import Solution, Unusable
from waiting import cpu_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Format

FORMATS = st.sampled_from(["xml", "json"])
FINISHES = st.sampled_from(["stop", "length"])
MARKS = (
    *(
        "<solution>",
        "</solution>",
        '<file path="a.js">',
        "<file>",
        "</file>",
        "<![CDATA[",
        "]]>",
        "<path>",
        "</path>",
    ),
    *(
        "<content>",
        "</content>",
        "{",
        "}",
        "[",
        "]",
        '"',
        '"a.js":',
        '"path":',
        '"content":',
        ",",
        "\\",
        "\\n",
        "\n",
    ),
    *(
        "```",
        "```json\n",
        "&lt;",
        "<!--",
        "<think>",
        "</think>",
        "[THINK]",
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "\ufeff",
        "\ud800",
        "\x00",
        "text",
        "'",
        " ",
    ),
)


@given(st.lists(st.sampled_from(MARKS), max_size=40).map("".join) | st.text(), FORMATS, FINISHES)
@settings(deadline=None)
def test_any_text_is_a_solution_or_unusable(text: str, fmt: Format, finish: str) -> None:
    verdict = parse_solution(text, fmt, finish)  # type: ignore[arg-type]
    assert set(verdict.repairs) <= set(REPAIRS)
    if isinstance(verdict, Solution):
        assert verdict.files
        "".join([*verdict.files, *verdict.files.values()]).encode()
    else:
        assert isinstance(verdict, Unusable)
        assert "\n" not in verdict.reason


NAMES = st.from_regex(
    r"(?:[a-z][a-z0-9_-]{0,8}/){0,3}[a-z][a-z0-9_-]{0,8}\.(?:js|py|html|json|md)", fullmatch=True
)
# What XML 1.0 can hold, with the line ends that it keeps; JSON is tried with all of Unicode.
XML_CHARACTERS = st.characters(
    exclude_categories=["Cs", "Cc"], include_characters="\t\n", exclude_characters="\ufffe\uffff"
)
XML_PIECES = st.sampled_from(["]]>", "<![CDATA[", "</file>", "&amp;", '"', "{", "\n", "\\n", "```\n"])
XML_TEXT = st.lists(st.text(XML_CHARACTERS, max_size=5) | XML_PIECES, max_size=8).map("".join)
JSON_PIECES = st.sampled_from(["\\n", "\b", "```\n", ";"])
JSON_TEXT = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | JSON_PIECES, max_size=8
).map("".join)


def in_xml(files: Mapping[str, str]) -> str:
    """The form that the XML prompt asks for."""
    parts = (
        f'<file path="{path}"><![CDATA[\n{text.replace("]]>", "]]]]><![CDATA[>")}]]></file>'
        for path, text in files.items()
    )
    return "<solution>\n" + "\n".join(parts) + "\n</solution>"


@given(st.dictionaries(NAMES, XML_TEXT, min_size=1, max_size=5))
@settings(deadline=None)
def test_files_rendered_in_xml_are_read_back_unrepaired(files: dict[str, str]) -> None:
    solution = parse_strictly(in_xml(files), "xml", "stop")
    assert isinstance(solution, Solution)
    assert (solution.files, solution.repairs) == (files, ())


@given(st.dictionaries(NAMES, JSON_TEXT, min_size=1, max_size=5))
@settings(deadline=None)
def test_files_rendered_in_json_are_read_back_unrepaired(files: dict[str, str]) -> None:
    solution = parse_strictly(json.dumps(files, indent=1), "json", "stop")
    assert isinstance(solution, Solution)
    assert solution.files == files
    assert solution.repairs == ()


UNITS = {
    "file heads": "<file",
    "file heads with paths": '<file path="a">',
    "open cdata": '<file path="a"><![CDATA[x</file>',
    "open cdata in lines": '\n<file path="a"><![CDATA[x',
    "cdata ends": "]]>",
    "cdata ends and blanks": "]]>" + " " * 150,
    "closers": "</file>",
    "path children": "<path>" + " " * 1300,
    "path and content": "<path>a.js</path><content>x",
    "content ends": "</content>",
    "content ends and blanks": "</content>" + " " * 199,
    "attributes": "<file " + "path" * 400 + ">",
    "attribute blanks": "<file path" + " " * 1900 + ">",
    "entities": "&lt;",
    "braces": '{"',
    "objects": '{"a.js":',
    "nested": '{"a":{',
    "lists": '[{"',
    "escaped quotes": '\\"',
    "backslashes": "\\",
    "quotes": '"a.js": "',
    "commas": ',\n  "a.js": "x"',
    "comma blanks": "," + " " * 199,
    "line ends": "\\n;",
    "fences": "```\n",
    "thoughts": "<think>",
    "thoughts in lines": "\nx\n<think>\n",
    "ended thoughts": "<think>x</think>",
    "ended thoughts in lines": "\nx\n<think>\nx</think>",
    "thoughts of many kinds": "<think>x</think>[THINK]x[/THINK]◁think▷x◁/think▷",
    "thoughts with files": '<think>x</think>\n\n{"a.js": "x"}\n',
    "channels": "<|channel|>analysis<|message|>x<|end|>",
    "open channels": "<|channel|>analysis<|message|>x",
    "openings of answers": "<|start|>assistant",
    "blanks": " ",
    "lines": "\n",
    "tags": "<a>",
    "closing tags": "</solution>",
    "comments": ",//\n",
    "open comments": ",/*",
    "single quotes": "{'a.js':",
    "joined strings": '"" + ',
    "forms": '\n{"a/b": string}',
    "fenced forms": '\n```json\n{"a.js": "q"w"}',
    "whole objects": '{"a.js": "x"} ',
    "ends of thoughts": "</think>",
    "deep lists": '[{"a.json": ' + "[" * 300 + "]" * 300 + "},",
    "open backticks": '{"a.js": `x` ',
    "split ends": '\n<file path="a"><![CDATA[x]]]]><![CDATA[>',
}
OPENINGS = {
    "nothing": "",
    "solution": "<solution>",
    "a file": '<solution><file path="a.js">',
    "cdata": '<solution><file path="a.js"><![CDATA[',
    "json": '{"a.js": "',
    "prose": "x <file> {",
}


@pytest.mark.long
@pytest.mark.first(unit=lambda unit, **_: unit, opening=lambda opening, **_: opening)
@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_answer_takes_linear_time(unit: str, opening: str) -> None:
    size = 100_000
    text = OPENINGS[opening] + UNITS[unit] * (size // len(UNITS[unit]))
    with cpu_within(5):
        parse_strictly(text, "xml", "stop")
        parse_strictly(text, "json", "stop")
        # Honest answers of this size take 4 ms; what is quadratic takes minutes.


def test_an_answer_beyond_all_bounds_is_refused_unread() -> None:
    text = '{"a.js": "' + "x" * 16_000_001
    assert parse_strictly(text, "json", "stop") is None
    verdict = parse_leniently(text, "json", "stop")
    assert isinstance(verdict, Unusable)
    assert verdict.failure == "format_error"


def test_the_slow_repair_is_not_tried_on_a_large_text() -> None:
    with cpu_within(5):
        verdict = parse_leniently('{"' * 150_000, "json", "stop")
        assert isinstance(verdict, Unusable)
