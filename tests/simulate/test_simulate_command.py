"""`astra simulate`: every setting has a flag, and the flags do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

import orjson
import pytest
from click.testing import CliRunner
from simulated_client import chat_body

from astra_async.cli.demo import simulate
from astra_async.config import load_config
from astra_async.errors import ConfigError
from astra_async.options import tables
from astra_async.types import declared
from astra_async.types.simulation import FAULT_KINDS, SimulationSettings
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {item.name: item for item in fields(SimulationSettings)}
NO_FLAG = {"faults"}  # --fault-rate 0


def test_every_setting_has_a_flag_and_a_key_in_the_toml_table() -> None:
    assert {option.name for option in simulate.params} - {"port"} == SETTINGS.keys() - NO_FLAG
    assert tables()["simulation"] is SimulationSettings
    assert {item.name for item in declared(SimulationSettings)} == SETTINGS.keys()


def test_the_help_tells_the_kinds_of_faults_and_the_true_defaults() -> None:
    said = " ".join(CliRunner().invoke(simulate, ["--help"]).stdout.split())
    assert all(re.search(rf"\b{kind}\b", said) for kind in FAULT_KINDS)
    told = dict(re.findall(r"--([a-z-]+) [A-Z]+ (?:(?! --).)*\[default: ([0-9.]+)\]", said))
    assert told.pop("port") == "8080"
    assert len(told) >= 6
    for flag, default in told.items():
        assert float(default) == SETTINGS[flag.replace("-", "_")].default != MISSING


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--deny nobody=key", "models are steady, erratic"),
        ("--deny weak", "MODEL=key or MODEL=quota"),
        ("--deny weak=lost", "MODEL=key or MODEL=quota"),
        ("--fault earthquake", "a list, each one of rate_limit"),
        ("--burst-s 0", "--burst-s 0: a number above 0 is expected"),
    ],
)
def test_a_flag_that_means_nothing_is_refused(words: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        CliRunner().invoke(simulate, ["--port", "0", *words.split()], catch_exceptions=False)


def test_denied_models_and_chosen_faults_are_served() -> None:
    words = "--port 0 --speed 0 --deny weak=key --deny erratic=quota --fault server_error --fault-rate 1"
    command = [sys.executable, "-m", "astra_async", "simulate", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split(" at ")[1].split()[0] + "/chat/completions"
            assert [status(url, model) for model in ("weak", "erratic", "steady")] == [401, 429, 500]
        finally:
            process.terminate()


def status(url: str, model: str) -> int:
    headers = {"content-type": "application/json", "x-astra-sample": "7/xml/shop/0"}
    asked = urllib.request.Request(url, orjson.dumps(chat_body(model)), headers)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_toml_table_takes_the_same_settings(tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_text(
        '[simulation]\nfault_rate = 1\nfault_kinds = ["cut", "stall"]\ndenied = {weak = "key"}\n'
    )
    given = {"out": "x", "model": ("simulated/weak",)}
    settings = SimulationSettings(**load_config(given, tmp_path / "faults.toml").simulation)
    assert list(settings.fault_kinds) == ["cut", "stall"]
    assert settings.denied == {"weak": "key"}
