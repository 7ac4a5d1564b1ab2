"""Answers as models really write them, in both formats, and the repairs that the record names."""

from __future__ import annotations

import json
import pickle
from xml.sax.saxutils import escape

import pytest

from astra_async.answers import REPAIRS, parse_leniently, parse_solution, parse_strictly
from astra_async.types import FinishReason, Format, Solution, Unusable

APP = 'const a = 1;\nif (a < 2 && a > 0) console.log("a\\n");\n'


def read(text: str, fmt: Format = "xml", finish_reason: FinishReason = "stop") -> Solution:
    solution = parse_strictly(text, fmt, finish_reason)
    assert isinstance(solution, Solution), solution
    assert set(solution.repairs) <= set(REPAIRS)
    return solution


def unusable(text: str, fmt: Format = "xml", finish_reason: FinishReason = "stop") -> Unusable:
    verdict = parse_solution(text, fmt, finish_reason)
    assert isinstance(verdict, Unusable), verdict
    return verdict


def element(path: str = "src/app.js", content: str = APP) -> str:
    return f'<file path="{path}"><![CDATA[{content}]]></file>'


def test_the_form_that_was_asked_for_needs_no_repair() -> None:
    solution = read(f"<solution>{element()}\n{element('b.css', 'a{}')}</solution>")
    assert solution.files == {"src/app.js": APP, "b.css": "a{}"}
    assert solution.repairs == ()


def test_one_newline_after_the_opening_of_cdata_is_dropped_and_the_rest_kept() -> None:
    text = "<solution>\n<file path='a.py'>\n<![CDATA[\n\nx = 1\n\n]]>\n</file>\n</solution>"
    assert read(text).files == {"a.py": "\nx = 1\n\n"}


def test_split_cdata_sections_are_joined() -> None:
    text = f"<solution>{element('a.js', 'x = y[z[0]]]]><![CDATA[>1')}</solution>"
    assert read(text).files == {"a.js": "x = y[z[0]]>1"}
    assert read(text).repairs == ()


XML_VARIANTS = [
    (f"<answer>{element()}</answer>", ["other_root"]),
    (f"<project><files>{element()}</files></project>", ["other_root"]),
    (f"{element()}", ["no_root", "not_well_formed"]),
    (f"Here it is:\n\n<solution>{element()}</solution>\nGood luck!", ["prose"]),
    (f"```xml\n<solution>\n{element()}\n</solution>\n```", ["fence"]),
    (f"Sure.\n```xml\n<solution>\n{element()}\n</solution>\n```\nDone.", ["fence", "prose"]),
    (f"\ufeff<solution>{element()}</solution>", ["bom"]),
    (f"<solution>{element()}</solution>".replace("\n", "\r\n"), []),
    (f'<?xml version="1.0" encoding="UTF-8"?>\n<solution>{element()}</solution>', []),
    (f"<think>\n<file path='x.js'>draft</file></think>\n<solution>{element()}</solution>", ["thinking"]),
    (
        f"<solution><file><path>src/app.js</path><content><![CDATA[{APP}]]></content></file></solution>",
        ["child_path"],
    ),
    (
        f"<solution><file path='src/app.js'><content><![CDATA[{APP}]]></content></file></solution>",
        ["child_content"],
    ),
    (f"<solution><file path='src/app.js'>\n{APP}</file></solution>", ["not_well_formed", "no_cdata"]),
    (
        f"<solution><file path='src/app.js'>\n{escape(APP)}</file></solution>",
        ["no_cdata"],
    ),
    (f"<solution><file path=src/app.js><![CDATA[{APP}]]></file></solution>", ["not_well_formed"]),
    (f"<solution><file path=“src/app.js”><![CDATA[{APP}]]></file></solution>", ["not_well_formed"]),
    (f"<solution><file name='src/app.js' lang='js'><![CDATA[{APP}]]></file></solution>", []),
    (f"<solution><FILE PATH='src/app.js'><![CDATA[{APP}]]></FILE></solution>", ["not_well_formed"]),
    (f"<solution>{element()}", ["not_well_formed", "unclosed_root"]),
    (
        f"<solution><file path='src/app.js'><![CDATA[{APP}]]></solution>",
        ["not_well_formed", "unclosed_file"],
    ),
    (
        f"<solution><file path='src/app.js'><![CDATA[{APP}</file></solution>",
        ["not_well_formed", "unclosed_cdata"],
    ),
    (
        f"<solution>\n<file path='src/app.js'>\n```js\n{APP}```\n</file>\n</solution>",
        ["not_well_formed", "no_cdata", "fence"],
    ),
    (
        f"<solution>{element('src/app.js', 'draft')}</solution>\nBetter:\n<solution>{element()}</solution>",
        ["not_well_formed", "duplicate_path", "several_blocks"],
    ),
    (
        f"<solution>{element('src/app.js', 'draft')}{element()}</solution>",
        ["duplicate_path"],
    ),
]


@pytest.mark.parametrize(("text", "repairs"), XML_VARIANTS)
def test_xml_is_read_tolerantly_and_every_repair_is_named(text: str, repairs: list[str]) -> None:
    solution = read(text)
    assert solution.files == {"src/app.js": APP}
    assert sorted(solution.repairs) == sorted(repairs)


def test_prose_that_quotes_the_format_is_no_answer() -> None:
    prose = "I answer with a `<solution>` that holds a `<file path='x.js'>` for each file:"
    solution = read(f"{prose}\n\n<solution>\n{element()}\n</solution>\nIt ends with `</solution>`.")
    assert solution.files == {"src/app.js": APP}


def test_an_unsplit_end_of_cdata_stays_in_the_content() -> None:
    solution = read(f"<solution>{element('a.js', 'x = a[b[0]]>1;')}\n{element('b.js', 'y')}</solution>")
    assert solution.files == {"a.js": "x = a[b[0]]>1;", "b.js": "y"}
    assert solution.repairs == ("not_well_formed", "cdata_end")


@pytest.mark.parametrize("closing", ["", "]]>", "</file>"])
def test_a_file_without_its_closing_marks_ends_where_the_next_begins(closing: str) -> None:
    first = f'<file path="a.js"><![CDATA[one\n{closing}'
    text = f"<solution>\n{first}\n{element('b.js', 'two')}</solution>"
    files = read(text).files
    assert {path: content.strip() for path, content in files.items()} == {"a.js": "one", "b.js": "two"}


def test_markup_without_cdata_is_code_and_is_not_unescaped() -> None:
    page = "<!-- home -->\n<p>a &amp; b</p>\n"
    files = read(f"<solution><file path='index.html'>\n{page}</file></solution>").files
    assert files == {"index.html": page}


def test_control_characters_that_xml_forbids_survive() -> None:
    text = "<solution>" + element("a.js", "x\x1b[0m") + "</solution>"
    assert read(text).files == {"a.js": "x\x1b[0m"}


def test_an_answer_within_the_answer_does_not_confuse_well_formed_xml() -> None:
    inner = '\n<file path="inner.js"><![CDATA[x]]]]><![CDATA[></file>\n'
    files = read(f"<solution>{element('doc.md', inner)}</solution>").files
    assert files == {"doc.md": '<file path="inner.js"><![CDATA[x]]></file>\n'}


def test_a_request_to_delete_a_file_does_not_empty_it() -> None:
    solution = read(f'<solution>{element()}<file path="old.js" action="delete"/></solution>')
    assert set(solution.files) == {"src/app.js"}
    assert solution.repairs == ("deletion_ignored",)


@pytest.mark.parametrize("path", ["a/__init__.py", "remove/__init__.py"])
@pytest.mark.parametrize("empty", ["></file>", "><![CDATA[]]></file>", "/>"])
@pytest.mark.parametrize("end", ["</solution>", ""])
def test_an_empty_file_is_a_file(path: str, empty: str, end: str) -> None:
    assert read(f'<solution>{element()}<file path="{path}"{empty}{end}').files[path] == ""


def test_entities_of_the_answers_own_are_never_expanded() -> None:
    bomb = '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    files = read(f"{bomb}<solution><file path='a.txt'>&a;&f;</file></solution>").files
    assert files == {"a.txt": "&a;&f;"}


SLASH = "\\"
WITH_A_TITLE = ["ignored_key", "wrapped"]
JSON_VARIANTS = [
    (json.dumps({"src/app.js": APP}), []),
    (json.dumps({"src/app.js": APP}, indent=2).replace("\n", "\r\n"), []),
    ("\ufeff" + json.dumps({"src/app.js": APP}), ["bom"]),
    (f"```json\n{json.dumps({'src/app.js': APP})}\n```", ["fence"]),
    (f"Here:\n{json.dumps({'src/app.js': APP})}\nEnjoy {{}}", ["prose"]),
    (f'POST {{"price": 3}} works now.\n{json.dumps({"src/app.js": APP})}', ["prose"]),
    (json.dumps({"files": [{"path": "src/app.js", "content": APP}]}), ["wrapped"]),
    (json.dumps({"solution": {"src/app.js": APP}}), ["wrapped"]),
    (json.dumps({"solution": {"files": {"src/app.js": APP}}}), ["wrapped"]),
    (json.dumps([{"path": "src/app.js", "content": APP}]), ["wrapped"]),
    (json.dumps({"file_1": {"path": "src/app.js", "content": APP}}), ["wrapped"]),
    (json.dumps({"src/app.js": {"content": APP}}), ["wrapped"]),
    (json.dumps({"src": {"app.js": APP}}), ["nested_folders"]),
    (json.dumps({"src/app.js": APP.splitlines()}), ["lines"]),
    (json.dumps({"solution": json.dumps({"src/app.js": APP})}), ["encoded_twice"]),
    (json.dumps({"explanation": "I did it", "src/app.js": APP}), ["ignored_key"]),
    (f'{{"src/app.js": {json.dumps("draft")}, "src/app.js": {json.dumps(APP)}}}', ["duplicate_path"]),
    (json.dumps({"src/app.js": APP}).replace("\\n", "\n", 1), ["control_characters"]),
    (json.dumps({"src/app.js": APP})[:-1] + ",}", ["trailing_comma"]),
    (
        json.dumps({"src/app.js": "draft"}) + "\n\n" + json.dumps({"src/app.js": APP}),
        ["several_blocks", "duplicate_path"],
    ),
    (f"<think>{{</think>{json.dumps({'src/app.js': APP})}", ["thinking"]),
    (f"<solution>{element()}</solution>", ["other_format"]),
    (json.dumps({"path": "src/app.js", "code": APP}), ["wrapped"]),
    (json.dumps({"name": "Fix search", "text": "Done", "files": {"src/app.js": APP}}), WITH_A_TITLE),
    (json.dumps({"name": "write", "arguments": {"files": {"src/app.js": APP}}}), WITH_A_TITLE),
    (json.dumps(json.dumps({"src/app.js": APP})), ["encoded_twice"]),
    (repr({"src/app.js": APP}), ["single_quotes"]),
    (f'{{ // the app\n"src/app.js": {json.dumps(APP)} /* end */}}', ["comments"]),
    ('{"src/app.js": "const a = 1;\\n" +\n' + json.dumps(APP[13:]) + "}", ["joined_strings"]),
    (f'{{"src/app.js": """{APP.replace(SLASH, 2 * SLASH)}"""}}', ["triple_quotes"]),
    (f'{{"src/app.js": `{APP}`}}\nRun `npm test`.', ["backticks", "prose"]),
]


@pytest.mark.parametrize(("text", "repairs"), JSON_VARIANTS)
def test_json_is_read_tolerantly_and_every_repair_is_named(text: str, repairs: list[str]) -> None:
    solution = read(text, "json")
    assert solution.files == {"src/app.js": APP}
    assert sorted(solution.repairs) == sorted(repairs)


def test_json_for_xml_is_read_as_what_it_is() -> None:
    solution = read(json.dumps({"a.js": "<file path='x.js'>no</file>"}), "xml")
    assert solution.files == {"a.js": "<file path='x.js'>no</file>"}
    assert solution.repairs == ("other_format",)


def test_xml_whose_files_hold_json_is_read_as_what_it_is() -> None:
    package = '{"name": "x", "dependencies": {"socket.io": "^4"}}'
    solution = read(f'Set {{"a": 1}}:\n<solution>{element("package.json", package)}</solution>', "json")
    assert solution.files == {"package.json": package}


def test_an_escape_that_json_does_not_know_is_doubled() -> None:
    solution = read('{"a.js": "const r = /\\d+\\s\\u00e4/;\\n"}', "json")
    assert solution.files == {"a.js": "const r = /\\d+\\sä/;\n"}
    assert solution.repairs == ("invalid_escape",)


def test_quotation_marks_that_are_not_escaped_lose_no_code() -> None:
    files = {
        "src/app.js": 'const a = "x";\nconsole.log("hi\\n", { "b": 1 });\n',
        "package.json": '{\n  "dependencies": {\n    "socket.io": "^4"\n  }\n}\n',
    }
    broken = json.dumps(files, indent=2).replace('\\"', '"')
    solution = read(broken, "json")
    assert solution.files == files
    assert solution.repairs == ("unescaped_quotes",)


def test_contents_in_backticks_are_read() -> None:
    solution = read('{\n"a.js": `const a = \\`x ${b}\\`;\n`,\n"b.js": `y`\n}', "json")
    assert solution.files == {"a.js": "const a = `x ${b}`;\n", "b.js": "y"}
    assert solution.repairs == ("backticks",)


@pytest.mark.parametrize(
    "answer",
    ['{"a.js": "x}"', '{"files": [{"path": "a.js", "content": "x}"}', '[{"path": "a.js", "content": "x}"'],
)
def test_missing_brackets_at_the_end_are_added(answer: str) -> None:
    solution = read(answer, "json")
    assert solution.files == {"a.js": "x}"}
    assert "unclosed_root" in solution.repairs
    assert unusable(answer, "json", "length").failure == "truncated"


def test_the_content_of_a_json_file_may_be_given_as_json() -> None:
    solution = read(json.dumps({"package.json": {"name": "x"}, "a.js": "1"}), "json")
    assert solution.files == {"package.json": '{\n  "name": "x"\n}\n', "a.js": "1"}
    assert solution.repairs == ("json_content",)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"title": "Hi", "body": "Text"}, {"title": "Hi", "body": "Text"}),
        ({"name": "x", "source": "a.html", "data": {}}, {"name": "x", "source": "a.html", "data": {}}),
        ({"content": '{"name": "x"}'}, {"name": "x"}),
    ],
)
def test_an_object_of_a_json_file_is_its_content_unless_it_holds_a_text_of_json(
    value: dict[str, object], content: object
) -> None:
    files = read(json.dumps({"locales/en.json": value, "a.js": "1"}), "json").files
    assert json.loads(files["locales/en.json"]) == content


@pytest.mark.parametrize("path", ["src/My Page.html", "My Notes.txt", "Dockerfile", "gradlew", "bin/run"])
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_both_formats_read_the_same_paths(path: str, fmt: Format) -> None:
    texts: dict[Format, str] = {
        "xml": f"<solution>{element(path)}</solution>",
        "json": json.dumps({path: APP, "b.js": "x"}),
    }
    assert read(texts[fmt], fmt).files[path] == APP


@pytest.mark.parametrize("key", ["explanation", "Why / how", "The changes", "see http://a/b.js", "v2"])
def test_a_key_of_prose_is_no_file(key: str) -> None:
    assert set(read(json.dumps({key: "I did it.", "a.js": "x"}), "json").files) == {"a.js"}


def test_lone_surrogates_become_the_replacement_character() -> None:
    solution = read('{"a.js": "x\\ud800y\\ud83d\\ude00"}', "json")
    assert solution.files == {"a.js": "x\ufffdy😀"}
    assert "surrogate" in solution.repairs
    text = "<solution>" + element("a.js", "x\ud800y") + "</solution>"
    assert read(text).files == {"a.js": "x\ufffdy"}


def test_only_the_slow_stage_reads_what_must_be_guessed() -> None:
    text = "{'a.js': 'const a = 1;\\nconst b = 2;\\n', \"b.js\": \"x\"}"
    assert parse_strictly("{\"a.js\" 'const a = 1;'}", "json", "stop") is None
    lenient = parse_leniently(text, "json", "stop")
    assert pickle.loads(pickle.dumps(lenient)) == lenient


def test_json_repair_reads_bare_names_and_keeps_the_last_line_end() -> None:
    line = "const b = require(1000);\\n"
    text = f'{{files: [{{path: "b.js", content: "{10 * line}"}}]}}'
    assert parse_strictly(text, "json", "stop") is None
    solution = parse_leniently(text, "json", "stop")
    assert isinstance(solution, Solution)
    assert solution.files == {"b.js": 10 * "const b = require(1000);\n"}
    assert solution.repairs == ("wrapped", "json_repair")


@pytest.mark.parametrize("fmt", ["xml", "json"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "I am sorry, I cannot do that.",
        "<solution></solution>",
        "{}",
        '{"files": []}',
        "null",
        "[]",
        "<file>",
    ],
)
def test_an_answer_without_files_is_a_format_error(text: str, fmt: Format) -> None:
    assert unusable(text, fmt).failure == "format_error"


@pytest.mark.parametrize(
    ("finish_reason", "failure"),
    [("refusal", "refusal"), ("content_filter", "refusal"), ("context_exceeded", "context_exceeded")],
)
def test_the_finish_reason_decides_before_the_text(finish_reason: FinishReason, failure: str) -> None:
    assert unusable(f"<solution>{element()}</solution>", "xml", finish_reason).failure == failure


@pytest.mark.parametrize(
    ("text", "fmt"),
    [
        ("", "xml"),
        (f"<solution>{element()}", "xml"),
        (f"<solution>{element()}<file path='b.js'><![CDATA[x", "xml"),
        (f"{element()}", "xml"),
        (f"<solution>{element()}</solution><solution><file path='b.js'><![CDATA[x", "xml"),
        ('{"a.js": "x", "b.js": "y', "json"),
        ('{"a.js": "x"}\n{"b.js": "y', "json"),
        ('{"a.js": "x "y" z", "b.js": "q', "json"),
    ],
)
def test_a_cut_answer_is_truncated_unless_its_root_is_closed(text: str, fmt: Format) -> None:
    assert unusable(text, fmt, "length").failure == "truncated"


@pytest.mark.parametrize(
    ("text", "fmt"),
    [
        (f"<solution>{element()}</solution> And so", "xml"),
        (f"<solution>{element('a.js', 'x]]> 1')}</solution> And so", "xml"),
        (json.dumps({"a.js": "x"}) + "\nThis does", "json"),
    ],
)
def test_a_cut_answer_whose_root_is_closed_counts(text: str, fmt: Format) -> None:
    assert read(text, fmt, "length").files
