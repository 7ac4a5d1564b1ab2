from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from astra_async.config import load_config, model_part, parse_columns, without_credentials
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"out": "runs/a", "model": ("openai/gpt-4o",)}


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_flag_outranks_the_file_and_the_file_outranks_the_default(tmp_path: Path) -> None:
    path = toml(tmp_path, 'samples = 8\nformat = "both"\nbudget_usd = 5\n')
    config = load_config({**GIVEN, "samples": 2}, path)
    assert (config.samples, config.formats, config.budget_usd) == (2, ("xml", "json"), 5.0)
    assert load_config(GIVEN).samples == 32


def test_a_model_in_the_file_brings_its_settings_under_its_name(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        '[[models]]\nspec = "openai-compatible/qwen"\nname = "mine"\nbase_url = "http://localhost:8000/v1"\n'
        "temperature = 1\nrequests_per_minute = 60\n",
    )
    (model,) = load_config({"out": "a"}, path).models
    assert (model.name, model.provider, model.model) == ("mine", "openai-compatible", "qwen")
    assert (model.temperature, model.requests_per_minute) == (1, 60)
    chosen = load_config({"out": "a", "model": ("mine", "openai/gpt-4o")}, path).models
    assert [model.name for model in chosen] == ["mine", "openai/gpt-4o"]


def test_base_url_and_max_in_flight_apply_to_every_model_of_the_command_line() -> None:
    config = load_config({**GIVEN, "base_url": "http://x/v1", "max_in_flight": 7})
    assert [(model.base_url, model.max_in_flight) for model in config.models] == [("http://x/v1", 7)]


def test_sandbox_limits_come_from_the_file(tmp_path: Path) -> None:
    path = toml(tmp_path, "[sandbox]\ntimeout_s = 12.5\nmemory_bytes = 1000000\n")
    limits = load_config(GIVEN, path).limits
    assert (limits.timeout_s, limits.memory_bytes, limits.processes) == (12.5, 1000000, 512)


@pytest.mark.parametrize(
    ("given", "text", "message"),
    [
        ({"model": ("openai/gpt-4o",)}, "", "no run directory: add --out DIR"),
        ({"out": "a"}, "", "no model: add --model"),
        (GIVEN, "sampels = 3", "unknown key `sampels`; did you mean `samples`?"),
        (GIVEN, "samples = '3'", "samples = '3' in the TOML file: int expected"),
        (GIVEN, "samples = true", "samples = True in the TOML file: int expected"),
        (GIVEN, "samples = 0", "samples: 0 is too small"),
        (GIVEN, "format = 'yaml'", "format: 'yaml' is none of xml, json, both"),
        (GIVEN, "samples = ", "not valid TOML"),
        (GIVEN, "[sandbox]\nmemory = 5", "unknown key `memory`; did you mean `memory_bytes`?"),
        (GIVEN, "[sandbox]\ntimeout_s = -1", "timeout_s = -1: a number above 0"),
        (GIVEN, "[s3]\nregion_name = 'x'", "unknown key `region_name`"),
        (GIVEN, "[prompt]\nleave_out = 'x'", "a list of patterns"),
        (GIVEN, "models = 3", r"write each as \[\[models\]\]"),
        (GIVEN, "[[models]]\nname = 'x'", "`spec` is missing"),
        (GIVEN, "[[models]]\nspec = 'openai/x'\ntemperature = 'hot'", "temperature = 'hot': float"),
        ({"out": "a", "model": ("openai/a", "openai/a")}, "", "two models are called 'openai/a'"),
        ({"out": "a", "model": ("opnai/a",)}, "", "unknown provider 'opnai'"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    tmp_path: Path, given: dict[str, Any], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(given, toml(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: No such file"):
        load_config(GIVEN, tmp_path / "nowhere.toml")


def test_columns_are_pairs() -> None:
    assert parse_columns(["project = zip file", "id=qid"]) == {"project": "zip file", "id": "qid"}
    with pytest.raises(ConfigError, match="write it as FIELD=NAME"):
        parse_columns(["project"])


def test_the_fingerprint_holds_what_changes_answers_and_no_secret() -> None:
    (model,) = load_config({**GIVEN, "base_url": "https://user:secret@host/v1/?key=secret"}).models
    part = model_part(model, seed=7)
    assert part["base_url"] == "https://host/v1"
    assert part["seed"] == 7
    assert "secret" not in str(part)
    assert not {"requests_per_minute", "max_in_flight", "timeout_s", "price_input"} & part.keys()


def test_a_simulated_servers_port_is_no_part_of_the_fingerprint() -> None:
    given = {"out": "a", "model": ("simulated/steady",)}
    parts = [model_part(load_config({**given, "base_url": url}).models[0], 0) for url in ("http://a:1", "")]
    assert parts[0] == parts[1]


def test_a_url_loses_credentials_and_query() -> None:
    assert without_credentials("https://u:p@host:8080/v1/?sig=x#y") == "https://host:8080/v1"


def test_what_a_model_is_asked_with_is_part_of_its_fingerprint_where_it_is_set(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        '[[models]]\nspec = "anthropic/claude-x"\nthinking_budget = 2048\nsystem_prompt = "Be brief."\n'
        'top_p = 0.9\ntop_k = 5\nstop = ["END"]\nservice_tier = "flex"\n[models.extra_body]\na = {b = 1}\n',
    )
    (model,) = load_config({"out": "a"}, path).models
    part = model_part(model, seed=None)
    asked = {"thinking_budget": 2048, "system_prompt": "Be brief.", "top_p": 0.9, "top_k": 5}
    asked |= {"stop": ("END",), "service_tier": "flex", "extra_body": {"a": {"b": 1}}}
    assert {name: part[name] for name in asked} == asked
    (plain,) = load_config(GIVEN).models
    assert (
        not asked.keys() & model_part(plain, seed=None).keys()
    )  # a run of an older version can be continued


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thinking = 'hard'", "thinking = 'hard': one of adaptive, off"),
        ("max_tokens_field = 'tokens'", "one of max_tokens, max_completion_tokens"),
        ("extra_body = 'x'", "extra_body: a table of keys"),
        ("stop = 'END'", "stop = 'END': tuple"),
    ],
)
def test_a_wrong_setting_of_a_model_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config({"out": "a"}, toml(tmp_path, f"[[models]]\nspec = 'openai/x'\n{text}"))
