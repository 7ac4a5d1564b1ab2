r"""When a file's content is repaired (fences round it, `\n` written as two characters), and when never."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from astra_async.answers import parse_solution
from astra_async.answers.contents import repaired
from astra_async.types import Solution

if TYPE_CHECKING:
    from astra_async.types import Format

WRONGLY_ESCAPED = [
    ("const a = 1;\\nfoo(a);\\n", "const a = 1;\nfoo(a);\n"),
    ("import os\\nimport sys\\n\\nprint(os)\\n", "import os\nimport sys\n\nprint(os)\n"),
    ("def f():\\n\\treturn 1", "def f():\n\treturn 1"),
    ("const a = 1;\\r\\nfoo(a);\\r\\n", "const a = 1;\r\nfoo(a);\r\n"),
    ('console.log("a\\nb");\\nfoo();\\n', 'console.log("a\\nb");\nfoo();\n'),
    ('console.log(\\"a\\\\nb\\");\\nfoo();\\n', 'console.log("a\\nb");\nfoo();\n'),
    ('{\\n  \\"name\\": \\"x\\"\\n}\\n', '{\n  "name": "x"\n}\n'),
    ("// don't panic\\nfoo();\\nbar();\\n", "// don't panic\nfoo();\nbar();\n"),
    ('"""Docs.\\n\\nMore."""\\nimport os\\nx = 1\\n', '"""Docs.\\n\\nMore."""\nimport os\nx = 1\n'),
    ('x();\\ns.match(/["]/);\\nif (a) {\\n  b();\\n}\\n', 'x();\ns.match(/["]/);\nif (a) {\n  b();\n}\n'),
    ("x = /^\\\\d+$/;\\ny();\\n", "x = /^\\d+$/;\ny();\n"),
    ("<p>\\n  Hello\\n</p>\\n", "<p>\n  Hello\n</p>\n"),
    (".a {\\n  color: red;\\n}\\n", ".a {\n  color: red;\n}\n"),
    ("const s = `a\\nb`;\\nfoo();", "const s = `a\\nb`;\nfoo();"),
    ("require 'json'\\nputs JSON.parse('1')\\n", "require 'json'\nputs JSON.parse('1')\n"),
]

RIGHT_AS_IT_IS = [
    'export const css = ".a {\\n  color: red;\\n}\\n";',
    'console.log("a\\nb")',
    "console.log('a\\n');",
    "module.exports = s => s.split(/\\r?\\n/);",
    "module.exports = s => s.split(/\\n/g).join('\\n')",
    "module.exports = s => s.replace(/[\\r\\n]+/g, '').replace(/\\n|\\r/, ' ');",
    "export const x = s => s.split(/(\\n\\n)/);",
    'module.exports = s => s.replace(/"/g, "\\n")',
    '{"text": "one\\ntwo\\n"}',
    "print('a\\tb\\n')",
    "x = 'one\\ntwo'\n",
    'const a = "x\\n";\nconst b = 2;\n',
    "no escapes at all",
    "",
    'text = """a\\nb\\n"""',
    "const t = `a\\n${b}\\n`;",
    r"const path = 'C:\\new\\table';",
]


@pytest.mark.parametrize(("written", "meant"), WRONGLY_ESCAPED)
def test_line_ends_written_as_two_characters_become_line_ends(written: str, meant: str) -> None:
    assert repaired("src/app.js", written) == (meant, ("unescaped",))


@pytest.mark.parametrize("content", RIGHT_AS_IT_IS)
def test_escapes_that_belong_to_the_code_stay(content: str) -> None:
    assert repaired("src/app.js", content) == (content, ())


def test_a_fence_round_the_whole_content_is_dropped() -> None:
    assert repaired("a.js", "```js\nfoo();\n```\n") == ("foo();\n", ("fence",))
    assert repaired("a.js", "~~~\n~~~") == ("", ("fence",))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("README.md", "```js\nfoo();\n```\n"),
        ("a.js", "```js\nfoo();\n```\ntext\n```js\nbar();\n```\n"),
        ("a.js", "const a = `\n```js\nx\n```\n`;"),
        ("a.js", "```js\nfoo();\n"),
    ],
)
def test_fences_that_belong_to_the_file_stay(path: str, content: str) -> None:
    assert repaired(path, content) == (content, ())


def test_a_backspace_is_the_word_boundary_of_a_regular_expression() -> None:
    assert repaired("a.js", "/\bsrc\b/;\n") == ("/\\bsrc\\b/;\n", ("backspace",))


# Each of them would be repaired if it came in an answer that does not parse.
MEANT_AS_WRITTEN = [
    r"path = C:\Users\name\nest",
    r"m=a\nb;\nc=d",
    r"printf '%s\n' one\ttwo; echo done\n",
    "```js\nfoo();\n```\n",
    "~~~\n~~~",
    "// one\\ntwo\n",
]


@pytest.mark.parametrize("content", MEANT_AS_WRITTEN)
@pytest.mark.parametrize("around", ["{}", "Here it is:\n\n{}\n\nDone.", "```\n{}\n```"])
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_a_content_that_was_parsed_strictly_is_taken_to_the_byte(
    fmt: Format, around: str, content: str
) -> None:
    answers = {
        "xml": f'<solution><file path="a.conf"><![CDATA[{content}]]></file></solution>',
        "json": json.dumps({"a.conf": content}),
    }
    solution = parse_solution(around.format(answers[fmt]), fmt)
    assert isinstance(solution, Solution)
    assert solution.files == {"a.conf": content}
    assert not {"unescaped", "fence"} & set(solution.repairs) or around.startswith("```")


def test_a_backspace_in_valid_json_is_one() -> None:
    solution = parse_solution('{"a.txt": "a\\b"}', "json")
    assert isinstance(solution, Solution)
    assert solution.files == {"a.txt": "a\b"}


@pytest.mark.parametrize(
    ("fmt", "answer"),
    [
        ("xml", r"<solution><file path='a.js'>foo();\nbar();\n</file></solution>"),
        ("xml", r"<solution><file path='a.js'><![CDATA[foo();\nbar();\n]]></solution>"),
        ("json", r'{"a.js": "foo();\\nbar();\\n",}'),
        ("json", '{"a.js": "foo();\\\\nbar();\\\\n\n"}'),
    ],
)
def test_a_content_of_an_answer_that_does_not_parse_is_repaired(fmt: Format, answer: str) -> None:
    solution = parse_solution(answer, fmt)
    assert isinstance(solution, Solution)
    assert solution.files["a.js"].startswith("foo();\nbar();\n")
    assert "unescaped" in solution.repairs


def test_of_two_objects_only_the_broken_one_is_repaired() -> None:
    whole, broken = r'{"a.conf": "a\\nb;\\nc"}', r'{"b.js": "foo();\\nbar();",}'
    solution = parse_solution(f"{whole}\n\n{broken}", "json")
    assert isinstance(solution, Solution)
    assert solution.files == {"a.conf": r"a\nb;\nc", "b.js": "foo();\nbar();"}
