"""What errors mean by their codes and their words, whoever sent them: the tables, and nothing else.

Codes are believed wherever they stand. Sentences are for what has no code of its own; those that a prompt
may hold, and a message may quote, count only under some statuses, or at a message's beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from astra_async.asking.providers.error_body import ErrorBody

_READ = 2000  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Met by an error with one of the codes or their endings, or with one of the sentences, in small letters.

    Sentences count in the first `within` characters, under one of the `statuses` where there are any.
    """

    codes: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset()
    within: int = _READ

    def meets(self, body: ErrorBody, status: int) -> bool:
        """Whether an error is one of these."""
        if body.codes & self.codes or any(code.endswith(self.endings) for code in body.codes):
            return True
        if self.statuses and status not in self.statuses:
            return False
        message = body.message[: self.within].lower()
        return any(sentence in message for sentence in self.sentences)


# A content filter has refused this one prompt, or its answer: the model's result.
FILTERED = Rule(
    codes=frozenset(
        {
            *("content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation"),
            *("data_inspection_failed", "DataInspectionFailed"),  # DashScope
        }
    ),
    sentences=(
        "blocked by content filtering policy",  # Anthropic
        "content violates usage guidelines",  # xAI
        "content exists risk",  # DeepSeek
        "may contain inappropriate content",  # DashScope
        "may contain sensitive information",  # Ark
        "potentially unsafe or sensitive content",  # Zhipu
        "\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9",  # the same
        "it was considered high risk",  # Moonshot
        "flagged as potentially violating",  # OpenAI
    ),
    statuses=frozenset({400, 403, 424, 451}),
    within=300,
)
# No request of the pool can succeed: quota, spend, key, model; whatever the status that carries it.
UNUSABLE = Rule(
    codes=frozenset(
        {
            *("insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"),
            *("billing_error", "billing_not_active", "BILLING_DISABLED", "SERVICE_DISABLED"),
            "account_deactivated",
            "exceeded_current_quota_error",  # Moonshot
            "Arrearage",  # DashScope
            "AccountOverdueError",  # Ark
            *("permission_error", "PERMISSION_DENIED", "AccessDeniedException", "invalid_issuer"),
            *("invalid_api_key", "API_KEY_INVALID", "UnrecognizedClientException", "ExpiredTokenException"),
            *("InvalidSignatureException", "enforced_spend_limit_reached", "model_not_found"),
            *("unsupported_country_region_territory", "DeploymentNotFound"),
        }
    ),
    endings=("_spend_limit_exceeded", "_spend_limit_reached", "_usage_limit_exceeded"),
    sentences=(
        "credit balance is too low",
        "reached your specified api usage limits",
        "api key not valid",
        "api key expired",
        "location is not supported for the api use",
        "too many tokens per day",  # Bedrock, as a ThrottlingException
    ),
)
# The same in words that a prompt may hold.
QUOTA_IS_USED_UP = Rule(
    sentences=(
        "insufficient balance",  # Zhipu's 1113, DeepSeek, Moonshot
        "\u4f59\u989d\u4e0d\u8db3",  # the same
        "balance is insufficient",
        "used all available credits",  # xAI
    ),
    statuses=frozenset({402, 403, 429}),
)
_TOO_LONG = Rule(
    codes=frozenset(
        {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
    ),
    sentences=(  # no numbers, but the sentence speaks of the input only (Bedrock, Gemini, Anthropic)
        "prompt is too long",
        "input is too long for requested model",
        "input length exceeds context window",
        "input token count exceeds the maximum",
        "exceeds the available context size",  # llama.cpp
        "your input exceeds the context window",
        "prompt exceeds max length",
        "please reduce the length of the prompt",
        "reduce the length of the messages",
        "number of input tokens exceeds maximum length",  # Nova
        "range of input length should be",  # Alibaba
        "initial prompt is greater than the context length",  # LM Studio
    ),
)
# 500 and 502: llama.cpp, older servers, and routers in front of either.
_STATUS_OF_OVERFLOW = frozenset({400, 413, 422, 500, 502})

# In the sentences below <p> is the prompt's tokens, <a> all tokens asked for, <w> the window, <r> what
# some versions of vLLM call the window: what max_tokens leaves of it, or the window itself.
_SENTENCES = (
    # OpenAI, vLLM, DeepSeek, SGLang
    r"maximum context length \w\w <w>.{0,60}?requested (?:a total of )?<a> tokens.{0,9}?\W<p> (?:in|tokens)",
    r"maximum context length \w\w <w>.{0,120}?(?:resulted in|contains|least|passed) <p> (?:input )?tokens",
    r"maximum context length \w\w <r>.{0,60}?request has <p> input tokens",
    r"maximum context length \w\w <w>.{0,60}?requested about <a> tokens \(<p> of text input",  # OpenRouter
    r"maximum context length \w\w <w>.{0,60}?requested (?:about )?<a> ",
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
    # TGI and Together, Cohere, Fireworks, LM Studio
    r"`inputs` must have less than <w> tokens\. Given: <p>",
    r"`inputs` tokens \+ `max_new_tokens` must be <= <w>\. Given: <p> `inputs`",
    r"tokens in the prompt cannot exceed <w>.{0,40}received <p>",
    r"prompt is too long: <p>, model maximum context length: <w>",
    r"keep the first <p> tokens when.{0,60}context length of only <w> tokens",
)
_MARK, _NUMBER = re.compile(r"<([pawr])>"), r"(?P<\1>\\d[\\d,]{0,11})"


def overflow(body: ErrorBody, status: int, max_tokens: int | None) -> Literal["prompt", "max_tokens"] | None:
    """`prompt`: too long by itself; `max_tokens`: only together with max_tokens; None: something else.

    `max_tokens` is what the request asked for, to be taken off where only the sum is told.
    """
    if status not in _STATUS_OF_OVERFLOW:
        return None
    message = body.message[:_READ]
    found = next((found for shape in _shapes() if (found := shape.search(message))), None)
    if found:
        numbers = {name: int(text.replace(",", "")) for name, text in found.groupdict().items()}
        prompt = numbers["p"] if "p" in numbers else numbers["a"] - (max_tokens or 0)
        window = numbers["w"] if "w" in numbers else numbers["r"] + (max_tokens or 0)
        return "prompt" if prompt >= window else "max_tokens"
    if _TOO_LONG.meets(body, status):
        return "prompt"
    lower = message.lower()
    return "max_tokens" if "max_tokens" in lower and "exceed context limit" in lower else None


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_MARK.sub(_NUMBER, sentence)) for sentence in _SENTENCES)
