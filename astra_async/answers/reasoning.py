"""Reasoning that stands in front of an answer: found by its marks and removed.

Servers move reasoning into a field of its own only if they know the model. Otherwise it is part of the text,
and files in it are drafts. The marks are those of the reasoning parsers of vLLM and SGLang, of the models'
chat templates and of common prompts.

Only marks before the first file of an answer count: a project may have `<think>` in its sources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.answers.json_answer import first_object
from astra_async.answers.xml_search import first_element

if TYPE_CHECKING:
    from collections.abc import Iterator

# fmt: off
_TAGS = (
    "think", "thinking", "thought", "thoughts", "reason", "reasoning", "reflection", "analysis", "scratchpad",
    "seed:think", "mm:think", "longcat_think", "think:opensource",
    r"ifm\|think", r"ifm\|think_fast", r"ifm\|think_faster",
)
# How reasoning opens and closes; an empty closing means that the mark opens the answer itself.
_TOKENS = {
    r"\[THINK\]": r"\[/THINK\]",                                        # Mistral
    r"\[REASONING\]": r"\[/REASONING\]",
    r"\[unused16\]": r"\[unused17\]",                                   # Pangu
    r"<unused94>(?:thought)?": r"<unused95>",                           # MedGemma
    r"◁think▷": r"◁/think▷",                                            # Kimi
    r"<\|open\|>think<\|sep\|>": r"<\|close\|>think<\|sep\|>",          # Kimi K3
    r"<\|open\|>response<\|sep\|>": "",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",                 # OpenThoughts
    r"<\|begin_of_solution\|>": "",
    r"<\|START_THINKING\|>": r"<\|END_THINKING\|>",                     # Cohere
    r"<\|START_(?:RESPONSE|TEXT)\|>": "",
    r"<\|inner_prefix\|>": r"<\|inner_suffix\|>",                       # Apertus
    r"<\|think:start\|>": r"<\|think:end\|>",                           # Solar
    r"<\|content_thinking\|>": r"<\|end_message\|>",                    # Inkling
    r"<\|message_model\|>|<\|content_text\|>": "",
    r"<\|channel>\s{0,20}\w{0,20}": r"<channel\|>",                     # Gemma
    # gpt-oss (harmony): of its channels only `final` is the answer.
    r"<\|start\|>assistant": "",
    r"<\|channel\|>\s{0,20}final[^<]{0,100}<\|message\|>": "",
    r"<\|channel\|>\s{0,20}(?:analysis|commentary)":
        r"<\|(?:end|call|return)\|>|(?=<\|start\|>|<\|channel\|>\s{0,20}final)",
}
# fmt: on
_WRAPPERS = {rf"<{tag}>": rf"</{tag}>" for tag in _TAGS} | _TOKENS
_CLOSINGS = [re.compile(closing, re.IGNORECASE) if closing else None for closing in _WRAPPERS.values()]
# A tag within a line may be talked about: there only tokens count, which no model writes by chance.
_LEADING = re.compile(r"\s*+(?:" + "|".join(f"({opening})" for opening in _WRAPPERS) + ")", re.IGNORECASE)
_ANYWHERE = re.compile(
    "|".join(
        [rf"(?:^[ \t]{{0,40}}(<{tag}>)(?=[ \t]{{0,40}}$|[^\W\d_]|<))" for tag in _TAGS]
        + [f"({opening})" for opening in _TOKENS]
    ),
    re.IGNORECASE | re.MULTILINE,
)
# Marks between reasoning and answer where nothing opens the reasoning: the server has cut that off.
_ENDS = re.compile(
    "|".join(
        [closing for closing in _WRAPPERS.values() if closing]
        # Harmony without its special tokens, and IBM Granite.
        + ["assistantfinal", "Here(?: i|')s my response:"]
    ),
    re.IGNORECASE,
)


def without_reasoning(text: str) -> tuple[str, bool, bool]:
    """Remove the reasoning sections in front of an answer, in linear time.

    Returns:
        The rest; whether something was removed; whether the last section has no end. In that case nothing
        behind its opening is part of the rest.
    """
    position, first = 0, -1
    pieces: list[str] = []
    while (opening := _LEADING.match(text, position) or _ANYWHERE.search(text, position)) is not None:
        if opening.start() > position:
            first = first if first >= position else _first_file(text, position)
            if opening.start() >= first:
                break
        pieces.append(text[position : opening.start()])
        closing = _CLOSINGS[(opening.lastindex or 0) - 1]
        end = closing.search(text, opening.end()) if closing else opening
        if end is None:
            return "".join(pieces), True, True
        position = end.end()
    return "".join([*pieces, text[position:]]), bool(pieces), False


def ends_of_reasoning(text: str) -> Iterator[re.Match[str]]:
    """Find every mark that may stand between reasoning and answer."""
    return _ENDS.finditer(text)


def is_on_its_own(end: re.Match[str]) -> bool:
    """Return True if a mark is all of its line."""
    text = end.string
    before, after = text[: end.start()].rstrip(" \t")[-1:], text[end.end() :].lstrip(" \t")[:1]
    return before in {"", "\n"} and after in {"", "\n"}


def _first_file(text: str, start: int) -> int:
    """Return where the first file of an answer begins, or the length of the text."""
    return int(min(first_element(text, start), first_object(text, start), len(text)))
