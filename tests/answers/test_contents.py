r"""When a file's content is repaired: fences round it, and `\n` written as two characters."""

from __future__ import annotations

import pytest

from astra_async.answers.contents import repaired

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
