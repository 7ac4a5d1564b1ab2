r"""Table of provider errors: the meaning of each error and the remedy for the user.

The first matching rule applies. Specific rules come first, and rules for a bare status come last. Every
specific rule has recorded errors as evidence in `tests/providers/recorded_errors.toml`.

In texts `<p>` is the number of tokens in the prompt, `<a>` all requested tokens, `<w>` the context window,
and `<r>` either the window or the window minus max_tokens (versions of vLLM differ).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from astra_async.asking.providers.error_body import DAILY_QUOTA, FLAGGED, HTML_PAGE
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, RequestRejected, TransientError

if TYPE_CHECKING:
    from astra_async.asking.providers.error_body import ErrorBody
    from astra_async.errors import ProviderError
    from astra_async.types import FinishReason

QUOTA: Final = "quota"  # RateLimited if the provider says when the quota returns, else PoolUnusable
LOWER_MAX_TOKENS = (
    "prompt and max_tokens together exceed the context window: set a lower max_tokens in [[models]]"
)
PROXY_WANTS_CREDENTIALS = (
    "the proxy requires credentials: write user:password@ before its host in HTTPS_PROXY, HTTP_PROXY or"
    " ALL_PROXY"
)
_MONEY = "check quota, billing and spend limits"
_DAILY = "the daily quota is exhausted: resume tomorrow, or raise the quota"
_KEY = "check the API key"
_ACCESS = "this key may not use this model"
_MODEL = "check the model's name and your access to it"
_PRIVACY = (
    "the privacy settings of the account exclude every provider of this model: change them at the router"
)
_RESPONSES = 'this model has no chat completions: set spec = "openai-responses/..." in [[models]]'
_LONG_CONTEXT = "this account may not send long prompts to this model"
_TOO_LARGE = "this request alone exceeds the rate limit: raise the limit, or lower max_tokens in [[models]]"
_PROXY_LIMIT = "the server did not answer in time; timeout_s cannot extend the limit of its proxy"
_FORBIDDEN = "a filter refuses this prompt, or this key may not use this model"

_FILTERS = (400, 403, 422, 424, 451)
_OVERFLOWS = (400, 413, 422, 500, 502)  # 500 and 502: llama.cpp, older servers, and routers before them
_UNPAID = (402, 403, 412, 429)
_LONGEST = 400  # text after these characters may quote the prompt
_GROUP, _NUMBER = re.compile(r"<([pawr])>"), r"(?P<\1>\\d[\\d,]{0,11})"


class Rule(NamedTuple):
    """Row of the table. An error matches if it satisfies all conditions that are not empty.

    Attributes:
        means: class of the error, finish reason of the result, or QUOTA.
        statuses: HTTP statuses.
        text: regular expression to find in the first 400 characters of the message; ignores case.
        code: regular expression that matches a whole code; ignores case.
        remedy: remedy for the user.
        is_of_item: True if the request names an item that does not exist; other requests may succeed.
        known: False for rules that check only the status; the message then shows the whole body.
    """

    means: type[ProviderError] | FinishReason | Literal["quota"]
    statuses: tuple[int, ...] | range = ()
    text: str = ""
    code: str = ""
    remedy: str = ""
    is_of_item: bool = False
    known: bool = True


def first_rule(body: ErrorBody, status: int) -> tuple[Rule, dict[str, int]]:
    """Return the first matching rule, and the numbers in the message by their letter (`p`, `a`, `w`, `r`)."""
    for rule in RULES:
        fits = not rule.statuses or status in rule.statuses
        if fits and (not rule.code or any(_compiled(rule.code).fullmatch(code) for code in body.codes)):
            found = _compiled(rule.text).search(body.message[:_LONGEST])
            if found:
                numbers = {name: text for name, text in found.groupdict().items() if text}
                return rule, {name: int(text.replace(",", "")) for name, text in numbers.items()}
    raise AssertionError("the last rule matches every error")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_GROUP.sub(_NUMBER, pattern), re.IGNORECASE | re.DOTALL)


RULES: tuple[Rule, ...] = (
    Rule(
        RequestRejected,
        (404,),
        r"^(?:file|cachedcontent) not found"  # Anthropic, Gemini
        r"|^item with id '[^']*' not found"  # OpenAI
        r"|^no endpoints found that support image input",  # OpenRouter
        is_of_item=True,
    ),
    # A content filter refused the prompt or the answer. This counts as a result and is never retried.
    *(
        Rule("content_filter", code=code)
        for code in (
            r"content_filter|content_?policy_?violation(?:Error)?|ResponsibleAIPolicyViolation",
            r"(?:cyber|bio)_policy",  # OpenAI
            r"data_?inspection_?failed",  # DashScope
            FLAGGED,  # OpenRouter
        )
    ),
    *(
        Rule("content_filter", _FILTERS, text)
        for text in (
            r"flagged as potentially violating|flagged for possible \w+ risk",  # OpenAI
            r"blocked by content filtering policy",  # Anthropic
            r"content violates usage guidelines",  # xAI
            r"content exists risk",  # DeepSeek
            r"may contain inappropriate content",  # DashScope
            r"may contain sensitive information",  # Ark
            r"unsafe or sensitive content|\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9",  # Z.ai
            r"(?:input|output) new_sensitive",  # MiniMax
        )
    ),
    # The prompt exceeds the context window, or fits only without max_tokens; the numbers decide.
    Rule(RequestRejected, _OVERFLOWS, r"maximum input length of (?:0|-\d+) tokens", remedy=LOWER_MAX_TOKENS),
    *(
        Rule("context_exceeded", _OVERFLOWS, text)
        for text in (
            # OpenAI, vLLM, DeepSeek, SGLang, OpenRouter
            r"context length \w\w <w>.{0,60}?requested (?:a total of )?<a> tokens.{0,9}?\W<p> (?:in|tokens)",
            r"context length \w\w <w>.{0,120}?(?:resulted in|contains|least|passed) <p> (?:input )?tokens",
            r"context length \w\w <r>.{0,60}?request has <p> input tokens",
            r"context length \w\w <w>.{0,60}?requested about <a> tokens \(<p> of text input",
            r"context length \w\w <w>.{0,60}?requested (?:about )?<a> ",
            r"passed <p> input tokens.{0,90}?context length is only <w>",  # vLLM
            r"exceed context limit: <p> \+ \d{1,9} > <w>",  # Anthropic
            r"exceeded model token limit(?:: <w> \(re ?quested: <a>)?",  # Moonshot
            r"`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than) <w>.{0,9}given: <p>",
        )
    ),
    *(
        Rule("context_exceeded", code=code)
        for code in (
            r"context_length_exceeded|ContextWindowExceededError",
            r"exceed_context_size_error",  # llama.cpp
            r"model_max_prompt_tokens_exceeded",  # GitHub
        )
    ),
    *(
        Rule("context_exceeded", _OVERFLOWS, text)
        for text in (
            r"(?:input|prompt|token count)\b.{0,40} exceeds (?:the )?(?:model's )?max(?:imum context)? len",
            r"exceeds the maximum allowed input length",  # OpenRouter
            r"input tokens exceed the configured limit|exceeds the context window",  # OpenAI
            r"prompt token count of \d+ exceeds the limit of \d+",  # GitHub
            r"input token count .{0,20}exceeds the maximum",  # Gemini
            r"input is too long for requested model|number of input tokens exceeds maximum length",  # Bedrock
            r"prompt is too long",  # Anthropic, Fireworks
            r"too large for model with \d+ maximum context",  # Mistral
            r"maximum prompt length is \d+ but the request contains",  # xAI
            r"context window exceeds limit",  # MiniMax
            r"range of input length should be",  # DashScope
            r"total number of tokens in the prompt (?:exceeds|cannot exceed)",  # Cohere
            r"is longer than the model's context length",  # SGLang, Together
            r"too long to fit into the model \(context length",  # vLLM
            r"exceeds the available context size",  # llama.cpp
            r"keep the first \d+ tokens when|initial prompt is greater than the context length",  # LM Studio
            r"prompt too long; exceeded (?:max )?context length",  # Ollama
            r"reduce the length of the (?:messages|prompt|input)",  # Groq, Cerebras, vLLM
        )
    ),
    # No request can succeed until the user pays or raises a limit. The status varies: 400, 429, 500.
    Rule(
        PoolUnusable,
        code=r"insufficient_quota|credit_balance_exhausted|billing_(?:error|not_active|hard_limit_reached)"
        r"|\w*_(?:spend|usage)_limit_(?:exceeded|reached)|BILLING_DISABLED|exceeded_current_quota_error"
        r"|insufficient_balance\w*|NOT_ENOUGH_BALANCE|Arrearage|AccountOverdueError|budget_exceeded"
        r"|blocked_api_access",  # Groq's spend alert
        remedy=_MONEY,
    ),
    *(
        Rule(PoolUnusable, statuses, text, remedy=_MONEY)
        for statuses, text in (
            ((), r"credit balance is too low|reached your specified api usage limits"),  # Anthropic
            ((), r"prepayment credits are depleted"),  # Gemini
            ((), r"^insufficient balance \(1008\)"),  # MiniMax: 500, and 200 with base_resp
            ((), r"^ExceededBudget|^Budget has been exceeded"),  # LiteLLM, also the next
            ((429,), r"crossed budget|exceeded budget for"),
            ((), r"exceeded your monthly included credits"),  # Hugging Face
            # DeepSeek, SiliconFlow, Z.ai
            (_UNPAID, r"insufficient balance|balance is insufficient|\u4f59\u989d\u4e0d\u8db3|\u6b20\u8d39"),
            (_UNPAID, r"used all available credits|monthly spending limit"),  # xAI, Fireworks
            (_UNPAID, r"reached the set inference limit"),  # Ark
            (_UNPAID, r"free tier of the model has been exhausted"),  # DashScope
            ((402,), r"requires more credits|insufficient credits|limit exceeded: \d+ > \d+"),  # OpenRouter
        )
    ),
    # Daily quotas. Gemini's `retryDelay` is wrong for these.
    Rule(PoolUnusable, code=DAILY_QUOTA, remedy=_DAILY),
    Rule(PoolUnusable, (429,), r"free_tier\w*, limit: 0\b", remedy=_MONEY),  # Gemini: not in the free tier
    Rule(QUOTA, (429,), r"\bper[- ]day\b|\bdaily\b|ByDay\b", remedy=_DAILY),
    Rule(QUOTA, (402,), remedy=_MONEY),
    # Errors of the key, the account, the model's name or the address.
    Rule(
        PoolUnusable,
        code=r"invalid_api_key|API_KEY_INVALID|UnrecognizedClientException|ExpiredTokenException"
        r"|InvalidSignatureException|invalid_issuer",
        remedy=_KEY,
    ),
    Rule(PoolUnusable, text=r"^api key (?:not valid|expired)|^(?:invalid|incorrect) api key", remedy=_KEY),
    Rule(PoolUnusable, (401,), remedy=_KEY),
    Rule(
        PoolUnusable,
        code=r"permission_error|PERMISSION_DENIED|AccessDeniedException|account_deactivated|SERVICE_DISABLED"
        r"|access_terminated_error|unsupported_country_region_territory",
        remedy=_ACCESS,
    ),
    Rule(PoolUnusable, text=r"location is not supported for the api use", remedy=_ACCESS),  # Gemini
    Rule(PoolUnusable, (400, 404), r"only supported in v1/responses", remedy=_RESPONSES),
    Rule(PoolUnusable, (404,), r"this is not a chat model", remedy=_RESPONSES),
    Rule(PoolUnusable, (404,), r"no endpoints .{0,40}(?:guardrail|data policy)", remedy=_PRIVACY),
    Rule(PoolUnusable, code=r"model_not_found|DeploymentNotFound", remedy=_MODEL),
    Rule(
        PoolUnusable,
        (404,),
        code=r"NotFoundError|not_found_error|NOT_FOUND|ResourceNotFoundException",
        remedy=_MODEL,
    ),
    Rule(PoolUnusable, (404,), r"^(?:the )?model .{0,120}(?:not found|does not exist)", remedy=_MODEL),
    Rule(PoolUnusable, (404,), r"^no endpoints found for ", remedy=_MODEL),  # OpenRouter
    Rule(
        PoolUnusable,
        (400,),
        r"^model not exist|is not a valid model id$|invalid model name passed",  # the last one: LiteLLM
        remedy=_MODEL,
    ),
    Rule(PoolUnusable, (301, 302, 303, 307, 308, 405), remedy="check base_url"),
    Rule(PoolUnusable, (407,), remedy=PROXY_WANTS_CREDENTIALS),
    # Rate limits, overloaded servers, server errors.
    Rule(RequestRejected, (413, 429), r"request too large for", remedy=_TOO_LARGE),  # OpenAI, Groq
    Rule(RequestRejected, (429,), r"extra usage is required for long context", remedy=_LONG_CONTEXT),
    Rule(Overloaded, code=r"server_is_overloaded|overloaded_error|engine_overloaded_error"),
    Rule(Overloaded, (429, 500, 503), r"overloaded|no capacity available|capacity exceeded"),
    Rule(Overloaded, (498, 503, 529)),
    Rule(RateLimited, (429,), code=r"rate_?limit\w*|slow_down|too_many_requests|RESOURCE_EXHAUSTED"),
    Rule(RateLimited, (429,), code=r"ThrottlingException|ModelNotReadyException"),
    Rule(RateLimited, (429,), r"rate[- ]?limit|too many requests|quota|per minute|try again|retry"),
    Rule(TransientError, (408, 504, 522, 524), remedy=_PROXY_LIMIT),
    Rule(TransientError, range(500, 600), code=HTML_PAGE),
    Rule(TransientError, range(500, 600), r"internal (?:server )?error|bad gateway|timed? ?out|try again"),
    # Rules for a bare status.
    Rule(RateLimited, (429,), known=False),
    Rule(RequestRejected, (403,), remedy=_FORBIDDEN, known=False),
    Rule(RequestRejected, (404,), remedy="check base_url and the model's name", known=False),
    Rule(TransientError, (409, 424, 425, 499), known=False),
    Rule(RequestRejected, range(300, 500), known=False),
    Rule(TransientError, known=False),
)
