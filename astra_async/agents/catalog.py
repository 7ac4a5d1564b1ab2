"""The agents that are known by name: pinned versions, where they come from, and how each is told its model.

Every version here was watched on a task in a problem's container without network (November 2026). What is not
in this table is described by the user, as `[[agents]]` in TOML.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.agents.shell import VERSION
from astra_async.types.agents import AgentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALLED_AT = "/opt/agent"
PYTHON = f"{INSTALLED_AT}/python/bin/python"
NODE = "node-linux-{cpu}@22.23.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent's settings, and what is installed for it.

    `npm` are packages by the folder below INSTALLED_AT that each is unpacked into, {cpu} standing for x64 or
    arm64; none has dependencies of its own. `pip` are requirements, with which comes a Python of its own.
    """

    settings: AgentSettings
    npm: Mapping[str, str] = field(default_factory=dict)
    pip: tuple[str, ...] = ()


_CODEX = """\
model = "{model}"
model_provider = "gateway"
web_search = "disabled"

[model_providers.gateway]
name = "gateway"
base_url = "{base_url}/v1"
env_key = "GATEWAY_TOKEN"
wire_api = "responses"
supports_websockets = false

[analytics]
enabled = false
"""
_GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "tools": {"exclude": ["google_web_search", "web_fetch"]},
}
_OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "provider": {
        "gateway": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{base_url}/v1", "apiKey": "{token}"},
            "models": {"{model}": {}},
        }
    },
    "model": "gateway/{model}",
    "small_model": "gateway/{model}",
}
_CHAT = {
    "OPENAI_API_BASE": "{base_url}/v1",
    "OPENAI_API_KEY": "{token}",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
_CLAUDE_MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)

SHELL = AgentSettings(name="shell", version=VERSION)  # this program's own: nothing is installed

_KNOWN = (
    KnownAgent(
        settings=AgentSettings(
            name="claude-code",
            version="2.1.330",
            speaks="messages",
            command=(
                f"{INSTALLED_AT}/claude/claude -p --output-format stream-json --verbose"
                " --dangerously-skip-permissions {prompt}"
            ),
            variables={
                **dict.fromkeys(_CLAUDE_MODELS, "{model}"),
                "ANTHROPIC_BASE_URL": "{base_url}",
                "ANTHROPIC_API_KEY": "{token}",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                # Otherwise a hash of the task stands first in each request, and no two share a cache.
                "CLAUDE_CODE_ATTRIBUTION_HEADER": "false",
            },
        ),
        npm={"claude": "@anthropic-ai/claude-code-linux-{cpu}@2.1.330"},
    ),
    KnownAgent(
        settings=AgentSettings(
            name="codex",
            version="0.169.0",
            speaks="responses",
            command=(
                f"{INSTALLED_AT}/codex/vendor/*/bin/codex exec --dangerously-bypass-approvals-and-sandbox"
                " --skip-git-repo-check --json -- {prompt}"
            ),
            variables={"GATEWAY_TOKEN": "{token}"},
            files={".codex/config.toml": _CODEX},
        ),
        npm={"codex": "@openai/codex@0.169.0-linux-{cpu}"},
    ),
    KnownAgent(
        settings=AgentSettings(
            name="gemini-cli",
            version="0.61.0",
            speaks="gemini",
            command=(
                f"{INSTALLED_AT}/node/bin/node {INSTALLED_AT}/gemini/bundle/gemini.js --yolo"
                " --model {model} --output-format json -p {prompt}"
            ),
            variables={
                "GOOGLE_GEMINI_BASE_URL": "{base_url}",
                "GEMINI_API_KEY": "{token}",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_CLI_NO_RELAUNCH": "true",
            },
            files={".gemini/settings.json": json.dumps(_GEMINI)},
        ),
        npm={"gemini": "@google/gemini-cli@0.61.0", "node": NODE},
    ),
    KnownAgent(
        settings=AgentSettings(
            name="opencode",
            version="1.18.33",
            speaks="chat",
            command=(
                f"{INSTALLED_AT}/opencode/bin/opencode run --model gateway/{{model}} --format json"
                " --title=task --dangerously-skip-permissions {prompt}"
            ),
            variables={
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            },
            files={".config/opencode/opencode.json": json.dumps(_OPENCODE)},
        ),
        npm={"opencode": "opencode-linux-{cpu}@1.18.33"},
    ),
    KnownAgent(
        settings=AgentSettings(
            name="mini-swe-agent",
            version="2.4.6",
            speaks="chat",
            command=(
                f"{PYTHON} -m minisweagent.run.mini --yolo --exit-immediately --task {{prompt}}"
                " --output ~/trajectory.json"
            ),
            variables={
                **_CHAT,
                "MSWEA_MODEL_NAME": "openai/{model}",
                "MSWEA_CONFIGURED": "true",
                "MSWEA_COST_TRACKING": "ignore_errors",
            },
        ),
        pip=("mini-swe-agent==2.4.6", "mcp"),  # without mcp it tries for three minutes to import it
    ),
    KnownAgent(
        settings=AgentSettings(
            name="aider",
            version="0.86.2",
            speaks="chat",
            command=(
                f"{PYTHON} -m aider --model openai/{{model}} --yes-always --no-auto-commits --no-git"
                " --no-check-update --analytics-disable --no-show-model-warnings --message-file {prompt_file}"
            ),
            variables=_CHAT,
        ),
        pip=("aider-chat==0.86.2",),
    ),
)
KNOWN: Mapping[str, KnownAgent] = {each.settings.name: each for each in _KNOWN}
