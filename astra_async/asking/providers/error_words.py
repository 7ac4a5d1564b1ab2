"""The words in which providers say that a filter has refused, or that no request of a pool can succeed.

Codes are believed wherever they stand. Sentences are for what has no code of its own; those that a prompt may
hold, and a message may quote, count only under the statuses that say such things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.asking.providers.error_body import ErrorBody

# No request of the pool can succeed: quota, spend, key, model; whatever the status that carries it.
_POOL_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "exceeded_current_quota_error",  # Moonshot
        "Arrearage",  # DashScope
        "AccountOverdueError",  # Ark
        "account_deactivated",
        "permission_error",
        "PERMISSION_DENIED",
        "invalid_api_key",
        "invalid_issuer",
        "enforced_spend_limit_reached",
        "unsupported_country_region_territory",
        "model_not_found",
        "DeploymentNotFound",
        "API_KEY_INVALID",
        "SERVICE_DISABLED",
        "BILLING_DISABLED",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "ExpiredTokenException",
        "AccessDeniedException",
    }
)
_POOL_CODE_ENDINGS = ("_spend_limit_exceeded", "_spend_limit_reached", "_usage_limit_exceeded")
_POOL_SENTENCES = (  # sent without a code of their own
    "credit balance is too low",
    "reached your specified api usage limits",
    "api key not valid",
    "api key expired",
    "location is not supported for the api use",
    "too many tokens per day",  # Bedrock, as a ThrottlingException
)
# Words that a prompt may hold, and a message may quote: believed only where a quota is refused.
_QUOTA_SENTENCES = (
    "insufficient balance",  # Zhipu's 1113, DeepSeek, Moonshot
    "\u4f59\u989d\u4e0d\u8db3",  # the same
    "balance is insufficient",
    "used all available credits",  # xAI
)
_STATUS_OF_QUOTA = frozenset({402, 403, 429})
_FILTER_CODES = frozenset(
    {
        "content_filter",
        "ResponsibleAIPolicyViolation",
        "content_policy_violation",
        "data_inspection_failed",  # DashScope
        "DataInspectionFailed",
    }
)
_FILTER_SENTENCES = (  # under codes that mean anything; at a message's beginning, for it may quote the prompt
    "blocked by content filtering policy",  # Anthropic
    "content violates usage guidelines",  # xAI
    "content exists risk",  # DeepSeek
    "may contain inappropriate content",  # DashScope
    "may contain sensitive information",  # Ark
    "potentially unsafe or sensitive content",  # Zhipu
    "\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9",  # the same
    "it was considered high risk",  # Moonshot
    "flagged as potentially violating",  # OpenAI
)
_STATUS_OF_FILTER = frozenset({400, 403, 424, 451})
_BEGINNING = 300
_READ = 2000


def is_filtered(body: ErrorBody, status: int) -> bool:
    """Whether a content filter has refused this one prompt, or its answer: the model's result."""
    beginning = body.message[:_BEGINNING].lower()
    return (
        bool(body.codes & _FILTER_CODES)
        or body.flagged
        or (status in _STATUS_OF_FILTER and any(sentence in beginning for sentence in _FILTER_SENTENCES))
    )


def is_unusable(body: ErrorBody, status: int) -> bool:
    """Whether no request of the pool can succeed: quota, spend, key, model."""
    message = body.message[:_READ].lower()
    return (
        bool(body.codes & _POOL_CODES)
        or any(code.endswith(_POOL_CODE_ENDINGS) for code in body.codes)
        or any(sentence in message for sentence in _POOL_SENTENCES)
        or quota_is_used_up(body, status)
        or body.daily
    )


def quota_is_used_up(body: ErrorBody, status: int) -> bool:
    """Whether a sentence says so."""
    message = body.message[:_READ].lower()
    return status in _STATUS_OF_QUOTA and any(sentence in message for sentence in _QUOTA_SENTENCES)
