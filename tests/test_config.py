from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.config import load_config, model_part, parse_columns
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"out": "runs/a", "problems": "my.csv", "model": ("openai/gpt-4o",)}


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_flag_has_priority_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    path = toml(tmp_path, 'samples = 8\nformat = "both"\nbudget_usd = 5\n')
    config = load_config({**GIVEN, "samples": 2}, path)
    assert (config.samples, config.formats, config.budget_usd) == (2, ("xml", "json"), 5.0)
    assert load_config(GIVEN).samples == 32


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert load_config(GIVEN, toml(tmp_path, "\ufeffsamples = 8\n")).samples == 8


def test_a_model_of_the_file_is_selected_by_name_with_its_settings(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        '[[models]]\nspec = "openai-compatible/qwen"\nname = "mine"\nbase_url = "http://localhost:8000/v1"\n'
        "temperature = 1\nrequests_per_minute = 60\n",
    )
    (model,) = load_config({"out": "a", "problems": "my.csv"}, path).models
    assert (model.name, model.provider, model.model) == ("mine", "openai-compatible", "qwen")
    assert (model.temperature, model.requests_per_minute) == (1, 60)
    chosen = load_config({**GIVEN, "model": ("mine", "openai/gpt-4o")}, path).models
    assert [model.name for model in chosen] == ["mine", "openai/gpt-4o"]


def test_base_url_and_max_in_flight_apply_to_every_model_of_the_command_line() -> None:
    config = load_config({**GIVEN, "base_url": "http://x/v1", "max_in_flight": "7"})
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
        (GIVEN, "samples = '3'", "samples = '3': a whole number of 1 or more is expected"),
        (GIVEN, "samples = true", "samples = True: a whole number of 1 or more"),
        (GIVEN, "samples = 0", "samples = 0: a whole number of 1 or more"),
        (GIVEN, "format = 'yaml'", "format = 'yaml': one of xml, json, both"),
        (GIVEN, "samples = ", "not valid TOML"),
        (GIVEN, "[sandbox]\nmemory = 5", "unknown key `memory`; did you mean `memory_bytes`?"),
        (GIVEN, "[sandbox]\ntimeout_s = -1", "timeout_s = -1: a number above 0"),
        (GIVEN, "[s3]\nregion_name = 'x'", "unknown key `region_name`"),
        (GIVEN, "[prompt]\nleave_out = 'x'", "a list of texts"),
        (GIVEN, "models = 3", r"write each as \[\[models\]\]"),
        (GIVEN, "[[models]]\nname = 'x'", "`spec` is missing"),
        (
            GIVEN,
            "[[models]]\nspec = 'openai/x'\ntemperature = 'hot'",
            "temperature = 'hot': a number of 0 or more",
        ),
        ({"out": "a", "model": ("openai/a", "openai/a")}, "", "two models are called 'openai/a'"),
        ({"out": "a", "model": ("opnai/a",)}, "", "unknown provider 'opnai'"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    tmp_path: Path, given: dict[str, Any], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(given, toml(tmp_path, text))


@pytest.mark.parametrize(
    ("given", "environ", "text", "message"),
    [
        ({"samples": "many"}, {}, "", "--samples many: a whole number of 1 or more is expected"),
        ({"budget_usd": "-1"}, {}, "", "--budget-usd -1: a number above 0"),
        ({"budget_usd": "nan"}, {}, "", "--budget-usd nan: a number above 0"),
        ({"base_url": "localhost:8000"}, {}, "", "--base-url localhost:8000: an http:// or https:// URL"),
        ({"base_url": "http://[::1/v1"}, {}, "", r"--base-url http://\[::1/v1: an http:// or"),
        ({"max_in_flight": "0"}, {}, "", "--max-in-flight 0: a whole number of 1 or more"),
        ({"samples": None}, {"ASTRA_SAMPLES": "1.5"}, "", "ASTRA_SAMPLES=1.5: a whole number"),
        ({"format": None}, {"ASTRA_FORMAT": "yaml"}, "", "ASTRA_FORMAT=yaml: one of xml, json, both"),
        ({}, {"ASTRA_SAMPELS": "3"}, "", "ASTRA_SAMPELS: unknown variable; did you mean ASTRA_SAMPLES?"),
        ({}, {}, "budget_usd = nan", "run.toml: budget_usd = nan: a number above 0"),
        ({}, {}, "[sandbox]\nmemory_bytes = inf", r"\[sandbox\]: memory_bytes = inf: a whole number above 0"),
        ({}, {}, "[sandbox]\nprocesses = 1.5", "processes = 1.5: a whole number above 0"),
        ({}, {}, "[s3]\nanonymous = 'no'", "anonymous = 'no': true or false"),
        ({}, {}, "[simulation]\nfault_rate = 2", "fault_rate = 2: a number from 0 to 1"),
        ({}, {}, "[[models]]\nspec = 'openai/x'\nmax_in_flight = 0", r"\[\[models\]\] 1: max_in_flight = 0"),
        ({}, {}, "[[models]]\nspec = 'openai/x'\ntimeout_s = -1", "timeout_s = -1: a number above 0"),
        ({}, {}, "[[models]]\nspec = 'openai/x'\nmax_tokens = -5", "max_tokens = -5: a whole number of 1"),
        ({}, {}, "[[models]]\nspec = 'openai/x'\nprice_input = -0.1", "price_input = -0.1: a number of 0"),
        (
            {},
            {},
            "[[models]]\nspec = 'openai/x'\nbase_url = 'x'",
            "base_url = 'x': an http:// or",
        ),
    ],
)
def test_every_value_is_checked_for_every_source(
    tmp_path: Path, given: dict[str, Any], environ: dict[str, str], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        load_config({**GIVEN, **given}, toml(tmp_path, text), environ=environ)
    assert "\n" not in str(error.value)


def test_variables_set_options_without_flags(tmp_path: Path) -> None:
    environ = {
        "ASTRA_SAMPLES": "3",
        "ASTRA_ONLY": "a 'b c'",
        "ASTRA_REUSE_IDENTICAL": "true",
        "ASTRA_SEED": "",
    }
    given = {**GIVEN, "samples": None, "only": (), "reuse_identical": None, "seed": None}
    config = load_config(given, toml(tmp_path, "samples = 9\nseed = 4"), environ=environ)
    assert (config.samples, config.only, config.reuse_identical, config.seed) == (3, ("a", "b c"), True, 4)
    assert load_config({**given, "samples": "5"}, environ=environ).samples == 5
    assert load_config(GIVEN, environ=environ).samples == 32  # a command without that option


def test_a_variable_of_another_program_gives_a_warning() -> None:
    (warning,) = load_config(GIVEN, environ={"ASTRA_DB_APPLICATION_TOKEN": "secret"}).warnings
    assert "ASTRA_DB_APPLICATION_TOKEN" in warning
    assert "secret" not in warning


def test_credentials_in_a_refused_value_are_masked() -> None:
    for url in ("ftp://user:PASS@host/v1", "user:PASS@host/v1", "https://user:PASS@host?sig=PASS"):
        with pytest.raises(ConfigError, match="URL without user and password") as error:
            load_config({**GIVEN, "base_url": url})
        assert "PASS" not in str(error.value)


def test_a_paid_model_needs_named_problems() -> None:
    with pytest.raises(ConfigError, match="--problems bundled"):
        load_config({"out": "a", "model": ("openai/gpt-4o",)})
    for given in (
        {"model": ("openai/gpt-4o",), "problems": "bundled"},
        {"model": ("simulated/steady",)},
        {"model": ("openai-compatible/llama",), "base_url": "http://localhost:8000/v1"},
    ):
        assert load_config({"out": "a", **given}).problems == "bundled"


def test_a_model_without_a_provider_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match="write provider/model, for example openai/gpt-4o"):
        load_config({**GIVEN, "model": ("gpt-4o",)})


def test_the_file_has_priority_over_recorded_settings_and_null_means_unset(tmp_path: Path) -> None:
    recorded: dict[str, Any] = {
        "projects": None,
        "image": "a",
        "column": [],
        "sandbox": {"processes": 7, "timeout_s": 9},
    }
    path = toml(tmp_path, "[sandbox]\ntimeout_s = 5")
    config = load_config(GIVEN, path, recorded=recorded)
    assert (config.projects, config.image, config.columns) == (None, "a", {})
    assert (config.limits.processes, config.limits.timeout_s) == (7, 5)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: No such file"):
        load_config(GIVEN, tmp_path / "nowhere.toml")


def test_columns_are_parsed_as_pairs() -> None:
    assert parse_columns(["project = zip file", "id=qid"]) == {"project": "zip file", "id": "qid"}
    with pytest.raises(ConfigError, match="write it as FIELD=NAME"):
        parse_columns(["project"])


def test_the_fingerprint_has_settings_that_change_answers_and_no_secret() -> None:
    (model,) = load_config(GIVEN).models
    model = replace(model, base_url="https://user:secret@host/v1/?key=secret")
    part = model_part(model, seed=7)
    assert part["base_url"] == "https://host/v1?key=***"
    assert part["seed"] == 7
    assert "secret" not in str(part)
    assert not {"requests_per_minute", "max_in_flight", "timeout_s", "price_input"} & part.keys()


def test_a_simulated_servers_port_is_not_part_of_the_fingerprint() -> None:
    given = {"out": "a", "model": ("simulated/steady",)}
    parts = [model_part(load_config({**given, "base_url": url}).models[0], 0) for url in ("http://a:1", None)]
    assert parts[0] == parts[1]


def test_request_settings_are_part_of_the_fingerprint_if_they_are_set(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        '[[models]]\nspec = "anthropic/claude-x"\nthinking_budget = 2048\nsystem_prompt = "Be brief."\n'
        'top_p = 0.9\ntop_k = 5\nstop = ["END"]\nservice_tier = "flex"\n[models.extra_body]\na = {b = 1}\n',
    )
    (model,) = load_config({"out": "a", "problems": "my.csv"}, path).models
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
        ("extra_body = 'x'", "extra_body = 'x': a table of keys"),
        ("stop = 'END'", "stop = 'END': a list of texts"),
    ],
)
def test_a_wrong_setting_of_a_model_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config({"out": "a"}, toml(tmp_path, f"[[models]]\nspec = 'openai/x'\n{text}"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("codex@", r"--agent codex@: invalid name"),
        ("codex@latest", r"--agent codex@latest: run `astra agents install codex@latest` first"),
    ],
)
def test_a_wrong_version_of_an_agent_is_shown(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config({**GIVEN, "agent": (name,)})


def test_batches_with_an_agent_are_refused() -> None:
    with pytest.raises(ConfigError, match="remove --batch"):
        load_config({**GIVEN, "agent": ("shell",), "batch": True})
    assert load_config({**GIVEN, "agent": ("none",), "batch": True}).models[0].batch
