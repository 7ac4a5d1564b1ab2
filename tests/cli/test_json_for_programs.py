"""`astra show --json` and `astra problems --json` hold what docs/formats.md says, whatever is in them."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec import structs
from test_show import ANSWER, COMPLETION, HOSTILE, RESULT, write

from astra_async.cli.problems import problems
from astra_async.cli.show import show
from astra_async.log import encode
from astra_async.types import NamedOutcome

if TYPE_CHECKING:
    from pathlib import Path

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
FLAG, OBJECT = {"type": "boolean"}, {"type": "object"}
TEXTS = {"type": "array", "items": TEXT}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def table(fields: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields) if required is None else required,
        "additionalProperties": False,
    }


SAMPLE = table(
    {
        "schema": {"const": 1},
        "key": table(
            {"model": TEXT, "format": {"enum": ["xml", "json"]}, "problem_id": TEXT, "sample": WHOLE}
        ),
        "result": maybe({"type": "object", "required": ["passed", "total", "status", "failure", "tests"]}),
        "answer": maybe({"type": "object", "required": ["text", "finish_reason", "usage"]}),
        "prompt": maybe(TEXT),
        "changes": {
            "type": "array",
            "items": table({"path": TEXT, "kind": TEXT, "unified": TEXT, "cut": FLAG}),
        },
        "changes_note": TEXT,
        "output": maybe(OBJECT),
        "events": {"type": "array", "items": {"type": "object", "required": ["at", "kind"]}},
        "transcript": {
            "type": "array",
            "items": {"type": "object", "required": ["step", "messages", "text"]},
        },
        "label": maybe(TEXT),
        "turns": {
            "type": "array",
            "items": table(
                {
                    "turn": {"type": "integer", "minimum": 1},
                    "answer": maybe({"type": "object"}),
                    "result": maybe({"type": "object"}),
                }
            ),
        },
    }
)
_USABLE = {
    **dict.fromkeys(("main_skill", "family", "image", "test_command", "project", "project_sha256"), TEXT),
    **dict.fromkeys(("sub_skills", "result_files", "readonly_paths", "hidden_paths"), TEXTS),
    **dict.fromkeys(("statement_characters", "input_files", "input_characters"), WHOLE),
    "timeout_s": maybe(NUMBER),
    "project_pinned_sha256": maybe(TEXT),
    "total": maybe(WHOLE),
    "tests": {
        "type": "array",
        "items": table({"name": TEXT, "file": maybe(TEXT), "type": maybe(TEXT), "weight": maybe(NUMBER)}),
    },
    "has_reference": {"type": "boolean"},
    "reference": maybe(table(dict.fromkeys(("output_characters", "lines_written", "files_changed"), WHOLE))),
    "prompt_characters": {"type": "object", "additionalProperties": WHOLE},
    "prompt_sha256": {"type": "object", "additionalProperties": TEXT},
}
PROBLEM = {"id": TEXT, "error": maybe(TEXT), "name": TEXT, "warnings": TEXTS}
PROBLEMS = table(
    {
        "schema": {"const": 1},
        "columns": {"type": "object", "additionalProperties": TEXT},
        "unused": TEXTS,
        "warnings": TEXTS,
        "problems": {
            "type": "array",
            "items": {"anyOf": [table({**PROBLEM, "error": TEXT}), table({**PROBLEM, **_USABLE})]},
        },
        "table_1": {"type": "object", "required": ["title", "notes", "columns", "rows"]},
    }
)


def shown(folder: Path) -> str:
    done = CliRunner().invoke(show, [str(folder), "m", "p", "0", "--json", "-"], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_sample_is_whole_and_as_documented(tmp_path: Path) -> None:
    write(tmp_path, COMPLETION, RESULT)
    (tmp_path / "labels.csv").write_text("model,format,problem_id,sample,label\nm,xml,p,0,logic\n")
    both = tuple(structs.replace(test, outcome="passed") for test in RESULT.tests)
    solved = structs.replace(RESULT, turn=1, passed=2, score=1.0, failure=None, tests=both)
    doubted = structs.replace(solved, turn=2, passed=1)  # its own tests say otherwise: not counted, not shown
    lines = [encode(each) + b"\n" for each in (solved, doubted)]
    (tmp_path / "turn_results.jsonl").write_bytes(b"".join(lines))
    found = json.loads(shown(tmp_path))
    jsonschema.validate(found, SAMPLE)
    assert found["answer"]["text"] == ANSWER
    assert (found["result"]["passed"], found["label"]) == (1, "logic")
    assert [(each["path"], each["kind"]) for each in found["changes"]] == [
        ("src/a.js", "changed"),
        ("src/new.js", "new"),
    ]
    assert [(each["turn"], each["result"]["passed"], each["answer"]) for each in found["turns"]] == [
        (1, 2, None)
    ]


def test_hostile_text_arrives_unchanged_and_a_terminal_obeys_none_of_it(tmp_path: Path) -> None:
    hostile = structs.replace(
        RESULT,
        output_tail=HOSTILE,
        tests=(NamedOutcome(name=HOSTILE, outcome="failed"),) * 2,
        passed=0,
        score=0,
    )
    write(tmp_path, replace(COMPLETION, text=HOSTILE), hostile)
    text = shown(tmp_path)
    controls = {unicodedata.category(each) for each in text.replace("\n", "")}
    assert not controls & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    found = json.loads(text)
    jsonschema.validate(found, SAMPLE)
    assert found["answer"]["text"] == found["result"]["output_tail"] == HOSTILE


def test_a_lone_surrogate_in_a_record_does_not_stop_it(tmp_path: Path) -> None:
    write(tmp_path, COMPLETION, RESULT)
    lines = (tmp_path / "results.jsonl").read_text()
    (tmp_path / "results.jsonl").write_text(lines.replace("the tail", "\\ud800"))
    assert json.loads(shown(tmp_path))["result"]["output_tail"] == "\ud800"


@pytest.mark.parametrize("text", ["plain", HOSTILE.replace("\r", "")])
def test_problems_are_as_documented_those_that_cannot_be_used_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good/a.test.js").write_text("test('x', () => {})")
    (tmp_path / "good/a.js").write_text(text)
    name = '"' + text.replace('"', '""') + '"'
    (tmp_path / "p.csv").write_text(
        "id,problem_statement,project,name,test_command,sub_skills\n"
        f"one,Do it.,good,{name},npm test,a;b\ntwo,Do it.,nowhere,,npm test,\n"
    )
    words = ["--problems", str(tmp_path / "p.csv"), "--json", "-"]
    done = CliRunner().invoke(problems, words, catch_exceptions=False, standalone_mode=False)
    assert done.return_value == 1
    controls = {unicodedata.category(each) for each in done.stdout.replace("\n", "")}
    assert not controls & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    found = json.loads(done.stdout)
    jsonschema.validate(found, PROBLEMS)
    one, two = found["problems"]
    assert (one["name"], one["error"], one["sub_skills"]) == (text.strip(), None, ["a", "b"])
    assert "folder or file not found" in two["error"]
    assert found["table_1"]["rows"][0]["value"] == 1
