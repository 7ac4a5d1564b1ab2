"""docs/models.md and docs/servers.md: the example is read and asked, the table of refusals is the code's."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astra_async.asking.providers import PROVIDERS, check_settings
from astra_async.config import load_config
from astra_async.errors import ConfigError
from astra_async.redaction import public_settings
from astra_async.types import ModelSettings, declared

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("models.md", "servers.md"))
EXAMPLE = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
KEYS = {
    "OPENAI_API_KEY": "sk-0123456789abcdef",
    "ANTHROPIC_API_KEY": "sk-0123456789abcdef",
    "GEMINI_API_KEY": "AIza0123456789abcdef",
    "ROUTER_KEY": "gw-0123456789abcdef",
    "AWS_REGION": "eu-west-1",
    "TENANT_TOKEN": "tenant-0123456789",
}


@pytest.fixture
def models(tmp_path: Path) -> tuple[ModelSettings, ...]:
    assert EXAMPLE is not None
    (tmp_path / "models.toml").write_text(EXAMPLE[1])
    return load_config({"out": "runs/a", "problems": "bundled"}, tmp_path / "models.toml").models


def test_the_example_is_a_configuration_that_can_be_asked(models: tuple[ModelSettings, ...]) -> None:
    assert len(models) == 5
    for model in models:
        check_settings(model, KEYS)
    with pytest.raises(ConfigError, match="the variable TENANT_TOKEN is not set"):
        check_settings(models[-1], {"ROUTER_KEY": "x"})


def test_the_example_shows_every_setting_that_goes_into_a_request(models: tuple[ModelSettings, ...]) -> None:
    shown = {key for table in tomllib.loads(EXAMPLE[1] if EXAMPLE else "")["models"] for key in table}
    asked = {item.name for item in declared(ModelSettings) if item.about.asked}
    assert asked - shown <= {"api_version", "project"}
    assert not [name for name in asked - {"spec", "api_version"} if f"`{name}" not in PAGE]
    assert models[-1].extra_body["provider"]["order"] == ["alpha", "beta"]


def test_what_is_recorded_of_the_example_is_what_the_page_says(models: tuple[ModelSettings, ...]) -> None:
    public = public_settings({"base_url": models[-1].base_url, "extra_headers": models[-1].extra_headers})
    assert public["base_url"] == "https://router.example/v1?region=eu"
    assert public["extra_headers"] == {"X-Title": "our evaluation", "X-Tenant": "${TENANT_TOKEN}"}


# Rows of the table, by column, for the cells that say `refused`.
COLUMNS = ("openai/x", "openai-responses/x", "anthropic/x", "gemini/x", "bedrock/anthropic.x")
VALUES: dict[str, Any] = {
    "top_k": 5,
    "stop": ("END",),
    "thinking_budget": 2048,
    'thinking = "adaptive"': "adaptive",
    'thinking = "off"': "off",
    "organization": "o",
    "system_prompt": "s",
    "temperature": 0.5,
    "api_version": "v1",
    "service_tier": "flex",
    "reasoning_effort": "low",
}


def test_every_provider_has_a_column_in_the_table() -> None:
    head = next(line for line in PAGE.splitlines() if line.startswith("| setting"))
    named = {name.strip() for cell in head.split("|")[2:-1] for name in cell.split(",")}
    assert named == set(PROVIDERS) - {"simulated"}


@pytest.mark.parametrize("row", sorted(VALUES))
def test_the_table_says_what_is_refused(row: str) -> None:
    cells = next(line for line in PAGE.splitlines() if line.startswith("| `") and f"`{row}`" in line).split(
        "|"
    )
    for spec, cell in zip(COLUMNS, cells[2:-1], strict=True):
        plain = load_config({"out": "a", "problems": "bundled", "model": (spec,)}).models[0]
        model = replace(plain, **{row.partition(" ")[0]: VALUES[row]})
        refused = cell.strip() == "refused" or (row in {"top_k", "api_version"} and spec == "openai/x")
        if refused:
            with pytest.raises(ConfigError):
                check_settings(model, KEYS)
        else:
            check_settings(model, KEYS)
