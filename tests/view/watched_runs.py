"""Run directories to look into: line for line as a run writes them, with everything that a model may try."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.prompt import build_prompt
from fakes import a_problem, a_project
from made_runs import Made, MadeProblem, agreeing, made_problems, write_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.types import SampleKey

Lines = list[dict[str, Any]]

RUNS_SCRIPT = "<img src=x onerror=\"window.canary='ran'\"><script>window.canary='ran'</script>"
TURNED = "\u202etxt.exe"
NASTY_ID = f"p<b>&/?#é%2F {TURNED}"
NASTY_TEST = f"javascript:window.canary='ran' {RUNS_SCRIPT} {TURNED}"
SUSPICION = "patched_global:src/a,b.py"
NASTY_PATH = f"src/{TURNED}.jsx"
COLOURED = f"\x1b[1m\x1b[31mFAIL\x1b[39m\x1b[22m App.test.js\r\n\x1b[2J{RUNS_SCRIPT}\x1b[32m{TURNED}\x1b[0m"
LONG_LINE = "y" * 10_000_000
ANSWER = f"""Sure! <solution>
<file path="src/answer.txt"><![CDATA[3
{RUNS_SCRIPT}
]]></file>
<file path="{NASTY_PATH}"><![CDATA[export default function App() {{
  return "{TURNED}"; // {RUNS_SCRIPT}
}}
]]></file>
</solution>"""

KEY = ("model", "format", "problem_id", "sample")
PLAIN = Made(skill={"alpha": 0.9, "beta": 0.5}, problems=made_problems(6), samples=4)
NASTY = Made(
    skill={"alpha": 0.9, "beta": 0.5},
    problems=(MadeProblem(id=NASTY_ID, total=3, main_skill=f"skill {RUNS_SCRIPT}"), *made_problems(3)),
    samples=3,
    leave_out=frozenset({("beta", "xml", "p02", 1)}),
)


def change_lines(path: Path, change: Callable[[Lines], Lines]) -> None:
    lines = change([orjson.loads(line) for line in path.read_bytes().splitlines()])
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def key_of(line: dict[str, Any]) -> tuple[str, str, str, int]:
    model, answer_format, problem, sample = (line[name] for name in KEY)
    return model, answer_format, problem, sample


def nasty_run(directory: Path) -> Path:
    """Two models; the first sample of the first failed and has everything, its next has 10 MB in one line."""
    write_run(directory, NASTY)
    prompt = build_prompt(a_problem(), a_project(), "xml").text
    sha256 = hashlib.sha256(prompt.encode()).hexdigest()
    (directory / "prompts").mkdir()
    (directory / "prompts" / f"{sha256}.txt").write_text(prompt, encoding="utf-8")

    def results(lines: Lines) -> Lines:
        return [_failed(line) if key_of(line) == ("alpha", "xml", NASTY_ID, 0) else line for line in lines]

    def completions(lines: Lines) -> Lines:
        texts = {0: ANSWER, 1: f"<solution>{LONG_LINE}</solution>"}
        mine = [line for line in lines if key_of(line)[:3] == ("alpha", "xml", NASTY_ID)]
        for line in mine:
            line |= {"text": texts.get(line["sample"], line["text"]), "prompt_sha256": sha256}
        return lines

    change_lines(directory / "results.jsonl", results)
    change_lines(directory / "completions.jsonl", completions)
    key = dict(zip(KEY, ("alpha", "xml", NASTY_ID, 0), strict=True))
    left_out = "\n[... 123000 bytes of output left out ...]\nend"
    graded = {"finished_at": "2026-11-20T10:00:30.000Z"}  # that of the result
    output = {"schema": 1, **key, **graded, "output": f"{COLOURED}{left_out}", "output_bytes": 123_456}
    (directory / "outputs.jsonl").write_bytes(orjson.dumps(output) + b"\n")
    return directory


def _failed(line: dict[str, Any]) -> dict[str, Any]:
    failed = agreeing(line, 1, total=3)
    failed["tests"][1] |= {"name": NASTY_TEST, "message": f"Expected 1 {RUNS_SCRIPT}"}
    return failed | {
        "dropped": [{"path": f"test/{TURNED}", "reason": "read-only"}],
        "suspicions": [SUSPICION],
        "repairs": ["prose"],
        "note": "",
        "output_tail": COLOURED,
        "changes": [
            {"path": "src/answer.txt", "kind": "changed", "added": 2, "removed": 1},
            {"path": NASTY_PATH, "kind": "new", "added": 3, "removed": 0},
        ],
    }


def model_call(key: SampleKey, step: int, messages: list[dict[str, Any]], **answer: Any) -> bytes:
    """A line of calls.jsonl, of an agent that works from this program."""
    request = {"set": {"system": f"You work. {RUNS_SCRIPT}", "tools": [], "messages": messages}}
    line = {"schema": 1, **key._asdict(), "step": step, "sha256": "0" * 64, "since": None, "request": request}
    said = {"text": "", "finish_reason": "stop", "returned_model": "m", "ttft_s": None, "latency_s": 1.0}
    usage = {"input_tokens": 1200, "output_tokens": 34}
    line |= {"seconds": 1.5, **said, "usage": usage, "calls": [], "at": "2026-11-20T10:00:00.000Z", **answer}
    return orjson.dumps(line) + b"\n"
