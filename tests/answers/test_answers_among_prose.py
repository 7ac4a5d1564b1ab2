"""Prose, examples and drafts round an answer, and answers within its files, cost it no file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from astra_async.answers import parse_solution
from astra_async.types import Solution, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.types import Format

LIST = (
    "export const List = ({ files }) => (\n  <ul>\n    {files.map((f) => (\n"
    "      <File name={f.name} key={f.id} />\n    ))}\n  </ul>\n);\n"
)
PROJECTS: dict[str, dict[str, str]] = {
    "quotes": {
        "src/app.js": 'const a = "x";\nfoo("b\\n", { "k": 1 });\n',
        "package.json": '{\n  "dependencies": {\n    "socket.io": "^4",\n    "lodash.merge": "^1"\n  }\n}\n',
    },
    "fences": {
        "README.md": '# Hi\n\n```json\n{"src/x.js": "content"}\n```\n\n```js\nfoo({ a: 1 })\n```\n',
        "src/b.js": "two\n",
    },
    "about XML": {
        "prompts/form.md": '<solution>\n<file path="a.js"><![CDATA[\nx\n]]></file>\n</solution>\n',
        "pom.xml": "<project>\n  <name>foo</name>\n  <source>8</source>\n</project>\n",
    },
    "about JSON": {
        "fixtures/answer.json": '{"src/app.js": "x\\n", "files": [{"path": "q.js", "content": "z"}]}\n',
        "src/c.ts": 'export const t = s.split("</think>")[1];\n',
    },
    "components": {"src/List.jsx": LIST, "src/My Page.html": "<p>x</p>\n"},
}


def in_xml(files: Mapping[str, str]) -> str:
    parts = (
        f'<file path="{path}"><![CDATA[\n{content.replace("]]>", "]]]]><![CDATA[>")}]]></file>'
        for path, content in files.items()
    )
    return "<solution>\n" + "\n".join(parts) + "\n</solution>"


def ill_formed(files: Mapping[str, str]) -> str:
    unsplit = '<file path="z.js"><![CDATA[\na[b[0]]>1]]></file>\n'
    return in_xml(files).removesuffix("</solution>") + unsplit + "</solution>"


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def described(files: Mapping[str, str]) -> str:
    return json.dumps({"files": [{"path": path, "content": content} for path, content in files.items()]})


FORMS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "xml": in_xml,
    "xml, ill-formed": ill_formed,
    "json": json.dumps,
    "json, fenced": lambda files: fenced(json.dumps(files, indent=2)),
    "json, described": lambda files: fenced(described(files)),
    "json, comma": lambda files: fenced(json.dumps(files, indent=2)[:-2] + ",\n}"),
    "json, comment": lambda files: fenced(json.dumps(files, indent=2).replace("{\n", "{\n  // all\n", 1)),
    "json, bare quotes": lambda files: fenced(json.dumps(files, indent=2).replace('\\"', '"')),
    "json, single quotes": repr,
}
BEFORE = [
    "",
    'A POST with `{"name": "Lamp", "code": "L1"}` answers 201.\n\n',
    'POST takes {"name": "Bob", "email": "b@x", "body": "Nice"}.\n\n',
    'I add `{"socket.io": "^4.0.0"}`, {"app.title": "Hi"} and {"/api": "http://localhost:3000"} to it.\n\n',
    'I answer as `{"relative/path": "full content", ...}`:\n\n',
    'I thought of `{"src/app.js": <content>}` or {"path": content}.\n\n',
    "I answer with `<solution>` and `<file path='x.js'>` for each.\n\n",
    "Use `<path>src/a.js</path><content>y</content>` no.\n\n",
    'The body is {"name": string, "files": [string]}.\n',
    'The form:\n```\n{\n  "relative/path": "full content",\n  ...\n}\n```\n\n',
    'A response:\n```json\n{"name": "Lamp", "price": 3}\n```\n\n',
    'Plan. {"name": "India", "code": "IN"}\nreturn {\n  "x.y": "z"\n};\n</think>\n\n',
    'Draft:\n<file path="draft.js"><![CDATA[x]]></file>\n</think>\n\n',
    '<think>I end with </think> later. {"a.b": "c"}\n</think>\n',
    '<analysis>\n{"name": "x.y", "text": "z"} is it.\n</analysis>\n',
    'It\'s 5" wide { "a": "b" and } "quote\n\n',
]
AFTER = [
    "",
    "\n\nRun `npm test`.",
    '\n\nPOST {"name": "a", "text": "b"} works.',
    "\n\nI changed `<file path='src/app.js'>` first, done.",
    '\n\nIt replies:\n```json\n{"ok": true}\n```\n',
    '\n\nResponses look like:\n```\n{"name": string}\n```',
]


@pytest.mark.parametrize("asked", ["xml", "json"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("project", PROJECTS)
def test_what_stands_round_an_answer_costs_no_file(project: str, form: str, asked: Format) -> None:
    if (form, project, asked) == ("json, bare quotes", "about XML", "xml"):
        pytest.skip("wrong in three ways at once: nobody could tell which format it is")
    files = PROJECTS[project]
    text = FORMS[form](files)
    expected = files | ({"z.js": "a[b[0]]>1"} if form == "xml, ill-formed" else {})
    for before in BEFORE:
        for after in AFTER:
            solution = parse_solution(before + text + after, asked)
            assert isinstance(solution, Solution), (before, after)
            found = {path: content for path, content in solution.files.items() if path in expected}
            assert found == expected, (before, after)


ONE, TWO = '{"a.js": "one"}', '{"b.js": "two"}'
BROKEN = '{"b.js": "two "q" too"}'


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (f"{fenced(ONE)}\n\n{fenced(TWO)}", {"a.js": "one", "b.js": "two"}),
        (f"{fenced(ONE)}\n\n{fenced(BROKEN)}", {"a.js": "one", "b.js": 'two "q" too'}),
        (f"{fenced(BROKEN)}\n\n{fenced(ONE)}", {"a.js": "one", "b.js": 'two "q" too'}),
        (f"### a.js\n{ONE}\n### b.js\n{TWO}", {"a.js": "one", "b.js": "two"}),
        (f'{ONE}\n\nExample: {{"a.js": "unchanged"}}', {"a.js": "one"}),
        (f'{ONE}\n\nNot {{"a.js": "changed"}}, then.', {"a.js": "one"}),
        (f"Here it is: {ONE}", {"a.js": "one"}),
    ],
)
def test_the_objects_that_stand_for_themselves_are_the_answer(text: str, files: dict[str, str]) -> None:
    solution = parse_solution(text, "json")
    assert isinstance(solution, Solution)
    assert solution.files == files


COMPONENT = f'<file path="src/List.jsx"><![CDATA[\n{LIST}]]></file>'


@pytest.mark.parametrize(
    "text",
    [
        f"<solution>\n{COMPONENT}\n</solution>",
        f"<solution>\n{COMPONENT}\n</solution>\n\nFinal:\n\n<solution>\n{COMPONENT}\n</solution>",
        COMPONENT,
        f"<solution>\n{COMPONENT}",
        f'<solution>\n<file path="src/List.jsx">\n{LIST}</file>\n</solution>',
        COMPONENT.replace("<![CDATA[", "<!-- new --><![CDATA["),
    ],
)
def test_a_component_called_file_ends_no_file(text: str) -> None:
    solution = parse_solution(text, "xml")
    assert isinstance(solution, Solution)
    assert solution.files == {"src/List.jsx": LIST}


@pytest.mark.parametrize(
    ("layout", "repair"),
    [
        ('{{"a.js": "{0}",\n "b.js": "y",\n "c.js": "z"}}', "unescaped_quotes"),
        ('{{\n  "a.js": "{0}",\n  // next\n  "b.js": "y",\n  "c.js": "z"\n}}', "unescaped_quotes"),
        ('{{"a.js": """{0}""", "b.js": """y""", "c.js": "z"}}', "triple_quotes"),
    ],
)
def test_bare_quotes_swallow_no_file(layout: str, repair: str) -> None:
    content = 'say("x", { "k": "v" });'
    solution = parse_solution(layout.format(content), "json")
    assert isinstance(solution, Solution)
    assert solution.files == {"a.js": content, "b.js": "y", "c.js": "z"}
    assert repair in solution.repairs


@pytest.mark.parametrize("depth", [100, 600, 990, 1_000, 100_000])
@pytest.mark.parametrize(
    "form",
    ['{{"a.js": "x", "d.json": {}}}', '{{"a.js": "x", "a.js": "y", "k": {}}}', 'See:\n{{"d.json": {}}}'],
)
def test_deep_nesting_gives_a_verdict(form: str, depth: int) -> None:
    solution = parse_solution(form.format("[" * depth + "]" * depth), "json")
    assert isinstance(solution, Solution | Unusable)
    if isinstance(solution, Solution):  # an indented text would grow with the square of the depth
        assert len(solution.files.get("d.json", "")) < 10_000
