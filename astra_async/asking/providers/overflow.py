"""Whether an error says that the prompt does not fit into the context window.

A prompt that is too long for the model is a result. A prompt that would fit, had max_tokens been
lower, is a matter of our settings. Providers say both in nearly the same words, so the numbers decide
where there are numbers, the code where there is one, and without either it is not called an overflow.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
)

# In the sentences below <p> is the prompt's tokens, <a> all tokens asked for, <w> the window, <r> what
# some versions of vLLM call the window: what max_tokens leaves of it, or the window itself.
_SENTENCES = (
    # OpenAI, vLLM, DeepSeek, SGLang
    r"maximum context length \w\w <w>.{0,60}?requested (?:a total of )?<a> tokens.{0,9}?\W<p> (?:in|tokens)",
    r"maximum context length \w\w <w>.{0,120}?(?:resulted in|contains|least|passed) <p> (?:input )?tokens",
    r"maximum context length \w\w <r>.{0,60}?request has <p> input tokens",
    r"maximum context length \w\w <w>.{0,60}?requested <a> ",
    # Anthropic
    r"prompt is too long: <p> tokens > <w>",
    r"exceed context limit: <p> \+ \d{1,9} > <w>",
    # Gemini
    r"input token count \(?<p>\)? exceeds the maximum number of tokens allowed \(?<w>",
    # SGLang, Mistral, xAI, llama.cpp
    r"input \(<p> tokens\) is longer than the model's context length \(<w>",
    r"[Pp]rompt contains <p> tokens.{0,80}?too large for model with <w>",
    r"maximum prompt length is <w> but the request contains <p>",
    r"request \(<p> tokens\) exceeds the available context size \(<w>",
)
_NUMBER = {f"<{name}>": rf"(?P<{name}>\d{{1,9}})" for name in "pawr"}


_PROMPT_ALONE = (  # no numbers, but the sentence speaks of the input only (Bedrock, Gemini, Anthropic)
    "prompt is too long",
    "input is too long for requested model",
    "input length exceeds context window",
    "input token count exceeds the maximum",
)


def overflow(
    codes: frozenset[str], message: str, *, max_tokens: int | None
) -> Literal["prompt", "max_tokens"] | None:
    """`prompt`: too long by itself; `max_tokens`: only together with max_tokens; None: something else.

    Args:
        codes: every code and type in the error.
        message: the error's sentence.
        max_tokens: what the request asked for, to be taken off where only the sum is told.
    """
    message = message[:2000]
    found = next((found for shape in _shapes() if (found := shape.search(message))), None)
    if found:
        numbers = found.groupdict()
        prompt = numbers.get("p") or int(numbers["a"]) - (max_tokens or 0)
        window = numbers.get("w") or int(numbers["r"]) + (max_tokens or 0)
        return "prompt" if int(prompt) >= int(window) else "max_tokens"
    lower = message.lower()
    if codes & _CODES or any(sentence in lower for sentence in _PROMPT_ALONE):
        return "prompt"
    return "max_tokens" if "max_tokens" in lower and "exceed context limit" in lower else None


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    shapes = []
    for sentence in _SENTENCES:
        shape = sentence
        for mark, group in _NUMBER.items():
            shape = shape.replace(mark, group)
        shapes.append(re.compile(shape))
    return tuple(shapes)
