"""Find the settings of a model that an error names, and say how to change them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

from astra_async.types import MaxTokensField

if TYPE_CHECKING:
    from astra_async.asking.providers.error_body import ErrorBody
    from astra_async.types import ModelSettings

_LONGEST = 2000
_NOT_FOUND = 404
_API_VERSION = re.compile(r"api[- _]versions?", re.IGNORECASE)
# Errors with these codes, or about these parameters, concern one prompt: other prompts may succeed.
_PROMPT_CODES = frozenset(
    {"invalid_prompt", "string_above_max_length", "request_too_large", "moderation_blocked"}
)
_PROMPT_PARAMETERS = ("message", "input", "content", "prompt")  # how they begin
# Names of our settings in the errors of providers.
_PARAMETERS = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "service_tier": ("service_tier", "serviceTier"),
    "thinking": ("thinking", "thinking.type", "thinking.type.enabled", "thinking.type.disabled",
                 "thinking.type.adaptive", "adaptive thinking"),
    "thinking_budget": ("budget_tokens", "thinking.type.enabled", "thinking.budget_tokens",
                        "thinking.enabled.budget_tokens",
                        "thinkingBudget", "thinking_budget"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens",
                   "maxTokens"),
    "reasoning_effort": ("reasoning_effort", "reasoning.effort", "output_config", "output_config.effort",
                         "effort", "effort parameter", "reasoning", "thinkingConfig", "thinking_config",
                         "thinkingLevel", "thinking_level", "reasoningConfig"),
    "seed": ("random_seed", "seed"),
    "system_prompt": ("system", "instructions", "systemInstruction", "system_instruction"),
}  # fmt: skip


def setting_remedy(body: ErrorBody, settings: ModelSettings) -> str:
    """Return the setting to change after a refused request; empty if the error names none."""
    message = body.message[:_LONGEST]
    if _is_about_version(body, settings):
        return "set api_version in [[models]] to one that the message names"
    if named := _named(body):  # of several the one that the user has set
        ours = next((name for name in named if _is_set(settings, name)), named[0])
        return _change(ours, settings, message)
    return ""


def meets_all(body: ErrorBody, status: int, settings: ModelSettings) -> bool:
    """Return True if a refusal names something that all requests share: address, API version, a setting.

    Other refusals may concern one prompt: filters and firewalls have words that no table lists.
    """
    if body.codes & _PROMPT_CODES:
        return False
    if body.param:
        return not body.param.startswith(_PROMPT_PARAMETERS)
    if status == _NOT_FOUND or _is_about_version(body, settings):
        return True
    # Whether max_tokens fits depends on the prompt, too.
    return any(_is_set(settings, name) for name in _named(body) if name != "max_tokens")


def _is_about_version(body: ErrorBody, settings: ModelSettings) -> bool:
    return settings.provider == "azure" and bool(_API_VERSION.search(body.message[:_LONGEST]))


def _named(body: ErrorBody) -> list[str]:
    message = body.message[:_LONGEST]
    return [
        ours
        for ours, theirs in _PARAMETERS.items()
        if body.param in theirs or any(_quotes(message, name) for name in theirs)
    ]


def _is_set(settings: ModelSettings, name: str) -> bool:
    return getattr(settings, name, None) not in (None, ())


def _quotes(message: str, name: str) -> bool:
    """Return True if a message names a parameter. A bare word would match prose (`the effort failed`)."""
    if " " in name:
        return name in message
    return bool(re.search(rf"[`'\".]{re.escape(name)}(?!\w)|(?<!\w){re.escape(name)}(?::| is )", message))


def _change(name: str, settings: ModelSettings, message: str) -> str:
    model = settings.model
    if name == "seed":
        return f"{model} rejects `seed`: run without --seed"
    if name == "max_tokens":
        wanted = next(
            (field for field in get_args(MaxTokensField) if f"se '{field}' instead" in message), None
        )
        if wanted and settings.max_tokens_field != wanted:
            return f'set max_tokens_field = "{wanted}" in [[models]]'
        return f"{model} rejects max_tokens = {settings.max_tokens}: set another one in [[models]]"
    if not _is_set(settings, name):
        return f"{model} rejects its value of `{name}`: set another one in [[models]]"
    return f"{model} rejects `{name}`: unset it in [[models]], or set another value"
