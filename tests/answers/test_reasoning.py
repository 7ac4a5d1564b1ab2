"""Reasoning in front of an answer: whatever its marks are, files in it are drafts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from astra_async.answers import parse_solution
from astra_async.types import Solution, Unusable

if TYPE_CHECKING:
    from astra_async.types import Format

HARMONY = (
    "<|channel|>analysis<|message|>draft<|end|><|start|>assistant<|channel|>commentary<|message|>draft<|end|>"
    "<|start|>assistant<|channel|>analysis<|message|>draft<|end|>"
    "<|start|>assistant<|channel|>final <|constrain|>json<|message|>answer"
)
# How models and servers write it: "draft" stands for the reasoning, "answer" for the answer.
WRAPPED = [
    "<think>draft</think>answer",
    "<think>\ndraft\n</think>\n\nanswer",
    "<Thinking>\ndraft\n</Thinking>\nanswer",
    "<reasoning>draft</reasoning>\nanswer",
    "<thought>draft</thought>\nanswer",
    "<reflection>\ndraft\n</reflection>\nanswer",
    "<scratchpad>draft</scratchpad>\nanswer",
    "[THINK]draft[/THINK]answer",
    "<seed:think>draft</seed:think>answer",
    "<mm:think>draft</mm:think>answer",
    "<longcat_think>\ndraft\n</longcat_think>\nanswer",
    "<ifm|think_fast>draft</ifm|think_fast>answer",
    "◁think▷draft◁/think▷answer",
    "<|begin_of_thought|>\n\ndraft\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\nanswer\n\n<|end_of_solution|>",
    "<|START_THINKING|>draft<|END_THINKING|><|START_RESPONSE|>answer<|END_RESPONSE|>",
    "<unused94>thought\ndraft<unused95>answer",
    "<|channel>thought\ndraft<channel|>answer",
    "<|inner_prefix|>draft<|inner_suffix|>answer",
    "<|think:start|>draft<|think:end|>answer",
    "<|open|>think<|sep|>draft<|close|>think<|sep|><|open|>response<|sep|>answer<|close|>response<|sep|>",
    "<|content_thinking|>draft<|end_message|><|message_model|><|content_text|>answer<|end_message|>",
    "[unused16]draft[unused17]answer",
    "<|thinking|>draft<|/thinking|>\n\nanswer",
    "<think:opensource>draft</think:opensource>answer",
    "<antThinking>draft</antThinking>\n\nanswer",
    # The opening of the answer ends the reasoning, too.
    "<|START_THINKING|>draft<|START_TEXT|>answer<|END_TEXT|>",
    "<|open|>think<|sep|>draft<|open|>response<|sep|>answer",
    "<|begin_of_thought|>draft<|begin_of_solution|>answer",
    "<|channel|>analysis<|message|>draft<|end|><|start|>assistant<|channel|>final<|message|>answer<|return|>",
    HARMONY,
    "<|channel|>analysis<|message|>draft<|start|>assistant<|channel|>final<|message|>answer",
    # Several sections, one after the other or one in the other
    "<think>draft</think>\n<think>draft</think>\nanswer",
    "<think>\nplan\n</think>\n\nLet me check it.\n<reflection>\ndraft\n</reflection>\n\nanswer",
    "<think><think>draft</think>draft</think>answer",
    # A server has cut off the opening, or the special tokens.
    "draft\n</think>\n\nanswer",
    "draft[/THINK]answer",
    "draft<|end_of_thought|>\nanswer",
    "draft<channel|>answer",
    "analysisdraftassistantfinalanswer",
    "Here is my thought process:\ndraft\nHere is my response:\nanswer",
    "Thinking...\ndraft\n...done thinking.\n\nanswer",
    "Let me analyze this. ◁think▷draft◁/think▷ Here it is:\n\nanswer",
    "Okay. <think>draft</think>\n\nanswer",
]
ANSWERS: dict[Format, str] = {
    "xml": "<solution>\n<file path='{0}'><![CDATA[{1}]]></file>\n</solution>",
    "json": '{{"{0}": "{1}"}}',
}
# Openings, all of them without an end.
OPEN = sorted({text.partition("draft")[0] for text in WRAPPED if text.partition("draft")[0].strip()})
# What may as well be prose opens nothing.
PROSE = {"analysis", "Here is my thought process:\n", "Thinking...\n", "Okay. <think>"}
OPEN = [opening for opening in OPEN if opening not in PROSE]


def filled(text: str, fmt: Format) -> str:
    form = ANSWERS[fmt]
    answer = form.format("a.py", "x = 1")
    draft = f"I try this:\n\n{form.format('draft.py', 'y = 2')}\n\nand {form.format('a.py', 'no')}\n"
    return text.replace("draft", "\0").replace("answer", answer).replace("\0", draft)


@pytest.mark.parametrize("text", WRAPPED)
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_files_of_reasoning_are_no_files_of_the_answer(fmt: Format, text: str) -> None:
    solution = parse_solution(filled(text, fmt), fmt)
    assert isinstance(solution, Solution)
    assert solution.files == {"a.py": "x = 1"}
    assert "thinking" in solution.repairs


@pytest.mark.parametrize("text", WRAPPED)
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_an_answer_in_the_other_format_is_found_behind_reasoning(fmt: Format, text: str) -> None:
    solution = parse_solution(filled(text, "json" if fmt == "xml" else "xml"), fmt)
    assert isinstance(solution, Solution)
    assert solution.files == {"a.py": "x = 1"}


@pytest.mark.parametrize("before", ["", "\n\n", "I begin.\n\n"])
@pytest.mark.parametrize("opening", OPEN)
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_a_draft_in_reasoning_without_an_end_is_never_graded(fmt: Format, opening: str, before: str) -> None:
    text = filled(f"{before}{opening}draft", fmt)
    for finish, failure in (("length", "truncated"), ("stop", "format_error")):
        verdict = parse_solution(text, fmt, finish)  # type: ignore[arg-type]
        assert isinstance(verdict, Unusable), verdict
        assert (verdict.failure, verdict.repairs) == (failure, ("thinking",))


@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_an_answer_that_was_cut_before_its_first_file_is_truncated(fmt: Format) -> None:
    for text in ("<think>draft</think>\nNow the", "draft\n</think>\n\nNow the", "[THINK]draft[/THINK]"):
        verdict = parse_solution(filled(text, fmt), fmt, "length")
        assert isinstance(verdict, Unusable), text
        assert verdict.failure == "truncated"


MARKED = (
    "<think>\nif x:\n</think>\n[THINK]\n<|channel|>analysis<|message|>\nassistantfinal ◁think▷</reason>\n"
)


@pytest.mark.parametrize(
    "around", ["answer", "<think>draft</think>answer", "Done:\n\nanswer\n\nThat is all."]
)
@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_marks_in_a_file_of_the_answer_are_its_content(fmt: Format, around: str) -> None:
    files = {"parser.py": MARKED, "b.txt": "</think>\n<think>"}
    elements = "\n".join(f'<file path="{path}"><![CDATA[{text}]]></file>' for path, text in files.items())
    answer = f"<solution>{elements}</solution>" if fmt == "xml" else json.dumps(files)
    before, _, after = around.partition("answer")
    solution = parse_solution(filled(before, fmt) + answer + after, fmt)
    assert isinstance(solution, Solution)
    assert solution.files == files


@pytest.mark.parametrize("fmt", ["xml", "json"])
@pytest.mark.parametrize(
    "prose",
    [
        "The parser now drops `<think>` and what follows.\n\n",
        "Changes:\n<think> is dropped, and [/THINK] too.\n\n",
        "An analysis of the problem: assistantfinal was missing.\n\n",
    ],
)
def test_marks_that_are_talked_about_change_nothing(fmt: Format, prose: str) -> None:
    solution = parse_solution(filled(prose + "answer", fmt), fmt)
    assert isinstance(solution, Solution)
    assert solution.files == {"a.py": "x = 1"}


@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_reasoning_behind_an_answer_takes_nothing_from_it(fmt: Format) -> None:
    for after in (
        "\n<think>\nWas that",
        "\n\n<reflection>It works.</reflection>",
        "\nI kept the </think> tag.",
    ):
        solution = parse_solution(filled(f"answer{after}", fmt), fmt)
        assert isinstance(solution, Solution), after
        assert solution.files == {"a.py": "x = 1"}
