"""Find and remove reasoning before an answer.

Servers move reasoning into a separate field only for models they know. Otherwise it is part of the text, and
its files are drafts. The marks are those of the reasoning parsers of vLLM and SGLang, the models' chat
templates and common prompts.

Only marks before the first file of an answer count: a project may have `<think>` in its sources.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING

from astra_async.answers.json_answer import first_object
from astra_async.answers.xml_search import first_element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# fmt: off
_TAGS = (
    "think", "thinking", "thought", "thoughts", "reason", "reasoning", "reflection", "analysis", "scratchpad",
    "redacted_thinking", "antThinking", "inner_thoughts", "inner_monologue", "internal_monologue",
    "thought_process", "chain_of_thought", "rationale", "deliberation", "reasoning_content",
    "seed:think", "mm:think", "longcat_think", "think:opensource",
    r"ifm\|think", r"ifm\|think_fast", r"ifm\|think_faster",
)
# Opening and closing marks of reasoning. An empty closing mark means that the opening mark begins the answer.
_TOKENS = {
    r"\[THINK\]": r"\[/THINK\]",                                        # Mistral
    r"\[REASONING\]": r"\[/REASONING\]",
    r"\[unused16\]": r"\[unused17\]",                                   # Pangu
    r"<unused94>(?:thought)?": r"<unused95>",                           # MedGemma
    r"◁think▷": r"◁/think▷",                                            # Kimi
    r"<\|open\|>think<\|sep\|>": r"<\|(?:close\|>think|open\|>response)<\|sep\|>",  # Kimi K3
    r"<\|open\|>response<\|sep\|>": "",
    r"<\|begin_of_thought\|>": r"<\|(?:end_of_thought|begin_of_solution)\|>",  # OpenThoughts
    r"<\|begin_of_solution\|>": "",
    r"<\|START_THINKING\|>": r"<\|(?:END_THINKING|START_(?:RESPONSE|TEXT))\|>",  # Cohere
    r"<\|START_(?:RESPONSE|TEXT)\|>": "",
    r"<\|thinking\|>": r"<\|/thinking\|>",
    r"<\|reflect\|>": r"<\|/reflect\|>",
    r"<\|inner_prefix\|>": r"<\|inner_suffix\|>",                       # Apertus
    r"<\|think:start\|>": r"<\|think:end\|>",                           # Solar
    r"<\|content_thinking\|>": r"<\|end_message\|>",                    # Inkling
    r"<\|message_model\|>": "",
    r"<\|content_text\|>": "",
    r"<\|channel>\s{0,20}\w{0,20}": r"<channel\|>",                     # Gemma
    # gpt-oss (harmony): of its channels only `final` is the answer.
    r"<\|start\|>assistant": "",
    r"<\|channel\|>\s{0,20}final[^<]{0,100}<\|message\|>": "",
    r"<\|channel\|>\s{0,20}(?!final)\w":
        r"<\|(?:(?:end|call|return)\|>|start\|>assistant|channel\|>\s{0,20}final[^<]{0,100}<\|message\|>)",
}
# fmt: on
_WRAPPERS = {rf"<{tag}>": rf"</{tag}>" for tag in _TAGS} | _TOKENS
_CLOSINGS = [re.compile(closing, re.IGNORECASE) if closing else None for closing in _WRAPPERS.values()]


def _any_of(marks: Iterable[str]) -> re.Pattern[str]:
    r"""Match any of the marks, each in a group.

    All begin with `<`, `\[` or `◁`, which makes the search fast.
    """
    split = (re.fullmatch(r"(\\?.)(.*)", mark) for mark in marks)
    options = (f"((?<={each[1]}){each[2]})" for each in split if each)
    return re.compile(r"[<\[◁](?:" + "|".join(options) + ")", re.IGNORECASE)


_OPENING = _any_of(_WRAPPERS)
# Closing marks alone separate reasoning from the answer if the server has removed the opening mark.
_END = _any_of(closing for closing in _WRAPPERS.values() if closing)
# Closing marks in words: harmony without its special tokens, IBM Granite, Ollama's command line.
_END_IN_WORDS = re.compile(r"assistantfinal|Here(?: i|')s my response:|\.\.\.done thinking\.")
_BLANKS = re.compile(r"\s*+")
_LINE_BEGINS = re.compile(r"(?:\A|\n)[ \t]*\Z")
_TAG_OPENS = re.compile(r"[ \t]*(?:\n|\Z)|[^\W\d_]|<")


def without_reasoning(text: str) -> tuple[str, bool, bool]:
    """Remove the reasoning sections before an answer, in linear time.

    Returns:
        The remaining text; whether something was removed; whether the last section has no end. In that case
        all text after its opening mark is removed.
    """
    position, first = 0, -1
    pieces: list[str] = []
    while (opening := _next_opening(text, position)) is not None:
        if text[position : opening.start()].strip():
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


def _next_opening(text: str, position: int) -> re.Match[str] | None:
    """Find the next mark that opens reasoning or an answer.

    A sentence may mention a tag. A tag therefore counts only at the start of the text, or at the start of a
    line with no prose after it. Special tokens always count, because models do not write them by accident.
    """
    blanks = _BLANKS.match(text, position)
    leading = blanks.end() if blanks else position
    for opening in _OPENING.finditer(text, position):
        start = opening.start()
        is_tag = (opening.lastindex or 0) <= len(_TAGS)
        begins_line = _LINE_BEGINS.search(text[max(0, start - 40) : start]) is not None
        if not is_tag or start == leading or (begins_line and _TAG_OPENS.match(text, opening.end())):
            return opening
    return None


def ends_of_reasoning(text: str) -> Iterator[re.Match[str]]:
    """Find every mark that may separate reasoning from the answer."""
    return heapq.merge(_END.finditer(text), _END_IN_WORDS.finditer(text), key=re.Match.start)


def fills_its_line(end: re.Match[str]) -> bool:
    """Return True if the mark fills its line."""
    text = end.string
    before, after = text[: end.start()].rstrip(" \t")[-1:], text[end.end() :].lstrip(" \t")[:1]
    return before in {"", "\n"} and after in {"", "\n"}


def _first_file(text: str, start: int) -> int:
    """Return the start of the answer's first file, or `len(text)`."""
    return int(min(first_element(text, start), first_object(text, start), len(text)))
