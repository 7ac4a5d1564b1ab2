"""Options for all models, and addresses from environment variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from astra_async.cli import astra
from astra_async.config import load_config, model_part
from astra_async.errors import ConfigError
from astra_async.redaction import mask

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"out": "runs/a", "problems": "my.csv", "model": ("openai/gpt-4o",)}


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_command_with_a_budget_has_the_prices_that_a_budget_needs() -> None:
    context = click.Context(astra)
    for name in astra.list_commands(context):
        command = astra.get_command(context, name)
        flags = {flag for each in command.params for flag in each.opts} if command else set()
        assert "--budget-usd" not in flags or {"--price-input", "--price-output"} <= flags, name


def test_flags_set_request_settings_for_all_models(tmp_path: Path) -> None:
    path = toml(tmp_path, '[[models]]\nspec = "openai/gpt-4o"\nname = "mine"\ntop_p = 0.5\n')
    flags = {"temperature": "0", "max_tokens": "900", "reasoning_effort": "low"}
    flags |= {"price_input": "0.1", "price_output": "0.2"}
    models = load_config({**GIVEN, **flags, "model": ("mine", "openai-responses/gpt-5")}, path).models
    values = [
        (m.temperature, m.max_tokens, m.reasoning_effort, m.price_input, m.price_output) for m in models
    ]
    assert values == [(0.0, 900, "low", 0.1, 0.2)] * 2
    assert [model.top_p for model in models] == [0.5, None]


M: dict[str, dict[str, Any]] = {
    "top_p=0.9": {"top_p": 0.9},
    "service_tier = flex": {"service_tier": "flex"},
    "api_version=2024-10-21": {"api_version": "2024-10-21"},
    "requests_per_minute=60": {"requests_per_minute": 60.0},
    "stop=END": {"stop": ("END",)},
    'stop=["a", "b"]': {"stop": ("a", "b")},
    "extra_headers.X-Title=our run": {"extra_headers": {"X-Title": "our run"}},
    "extra_body.chat_template_kwargs.enable_thinking=false": {
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}
    },
    'extra_body={provider = {order = ["a"]}}': {"extra_body": {"provider": {"order": ["a"]}}},
    "min_p=0.05": {"extra_body": {"min_p": 0.05}},
    "options.num_ctx=32768": {"extra_body": {"options": {"num_ctx": 32768}}},
    "verbosity=low": {"extra_body": {"verbosity": "low"}},
}


@pytest.mark.parametrize("pair", M)
def test_m_sets_any_key_of_a_model_and_any_field_of_its_request(pair: str) -> None:
    model = load_config({**GIVEN, "model_setting": (pair,)}).models[0]
    assert {name: getattr(model, name) for name in M[pair]} == M[pair]


def test_m_may_be_repeated_and_is_merged_into_the_models_tables(tmp_path: Path) -> None:
    path = toml(tmp_path, '[[models]]\nspec = "openai/gpt-4o"\n[models.extra_body]\na = {b = 1, c = 2}\n')
    pairs = ("a.b=3", "extra_body.a.d=4", "top_p=0.1", "top_p=0.2")
    (model,) = load_config({**GIVEN, "model_setting": pairs}, path).models
    assert (model.extra_body, model.top_p) == ({"a": {"b": 3, "c": 2, "d": 4}}, 0.2)
    typed = load_config({**GIVEN, "model_setting": ()}, environ={"ASTRA_MODEL_SETTING": "'stop=a b' top_k=3"})
    assert (typed.models[0].stop, typed.models[0].top_k) == (("a b",), 3)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("top_p", "write it as KEY=VALUE"),
        ("=1", "write it as KEY=VALUE"),
        ("top_p=2", "-M top_p=2: a number from 0 to 1 is expected"),
        ("temperature=hot", "-M temperature=hot: a number of 0 or more"),
        ("temperatur=0", "did you mean `temperature`?"),
        ("spec=openai/x", "name models with --model"),
        ("extra_headers=x", "-M extra_headers=x: a table of keys"),
        ("min p=1", "write the key as in TOML"),
        ("stop=[1]", "a list of texts"),
    ],
)
def test_a_wrong_m_is_named(pair: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config({**GIVEN, "model_setting": (pair,)})
    assert message in str(error.value)


def test_a_secret_in_m_is_masked() -> None:
    load_config({**GIVEN, "model_setting": ("extra_headers.X-Api-Key=m-of-joe-0123456789",)})
    assert "joe" not in mask("-M extra_headers.X-Api-Key=m-of-joe-0123456789")


URLS = {
    "OPENAI_BASE_URL": "https://router.example/v1",
    "ANTHROPIC_BASE_URL": "https://claude.example",
    "GOOGLE_GEMINI_BASE_URL": "https://gemini.example",
    "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
}


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_BASE_URL"),
        ("openai-responses/gpt-5", "OPENAI_BASE_URL"),
        ("anthropic/claude-x", "ANTHROPIC_BASE_URL"),
        ("gemini/gemini-x", "GOOGLE_GEMINI_BASE_URL"),
        ("azure/mine", "AZURE_OPENAI_ENDPOINT"),
        ("openai-compatible/qwen", None),
        ("bedrock/amazon.nova-lite-v1:0", None),
        ("simulated/steady", None),
    ],
)
def test_the_variables_of_the_providers_clients_set_the_server(
    tmp_path: Path, spec: str, variable: str | None
) -> None:
    config = load_config({**GIVEN, "model": (spec,)}, environ=URLS)
    assert config.models[0].base_url == (URLS[variable] if variable else None)
    told = (f"{spec}: requests go to {URLS[variable]} ({variable})",) if variable else ()
    assert config.addresses == told
    given = load_config({**GIVEN, "model": (spec,), "base_url": "http://x/v1"}, environ=URLS)
    assert (given.models[0].base_url, given.addresses) == ("http://x/v1", ())
    path = toml(tmp_path, f'[[models]]\nspec = "{spec}"\nbase_url = "http://y/v1"\n')
    assert load_config(GIVEN | {"model": (spec,)}, path, environ=URLS).models[0].base_url == "http://y/v1"


def test_an_older_variable_and_an_empty_one() -> None:
    older = {"OPENAI_BASE_URL": " ", "OPENAI_API_BASE": "https://old.example/v1"}
    assert load_config(GIVEN, environ=older).models[0].base_url == "https://old.example/v1"
    newer = {"OPENAI_BASE_URL": "https://new.example/v1", "OPENAI_API_BASE": "https://old.example/v1"}
    assert load_config(GIVEN, environ=newer).models[0].base_url == "https://new.example/v1"
    assert load_config(GIVEN, environ={"OPENAI_BASE_URL": ""}).models[0].base_url is None


def test_models_with_one_address_share_a_line_without_secrets() -> None:
    models = ("openai/gpt-4o", "openai-responses/gpt-5", "anthropic/claude-x")
    url = "https://router.example/v1?key=PASS"
    (line,) = load_config({**GIVEN, "model": models}, environ={"OPENAI_BASE_URL": url}).addresses
    expected = (
        "openai/gpt-4o, openai-responses/gpt-5: requests go to https://router.example/v1?key=*** (OPENAI_"
    )
    assert line.startswith(expected)
    with pytest.raises(ConfigError, match="ANTHROPIC_BASE_URL=") as error:
        load_config({**GIVEN, "model": models}, environ={"ANTHROPIC_BASE_URL": "https://me:PASS@host"})
    assert "PASS" not in str(error.value)


def test_an_address_of_the_environment_is_part_of_the_fingerprint() -> None:
    parts = [model_part(load_config(GIVEN, environ=each).models[0], 0) for each in ({}, URLS)]
    flag = model_part(load_config({**GIVEN, "base_url": URLS["OPENAI_BASE_URL"]}).models[0], 0)
    assert parts[0] != parts[1] == flag
