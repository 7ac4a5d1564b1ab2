"""A run's configuration, out of the `options`: flags, `ASTRA_*` variables and a TOML file, all checked.

A value is taken from the command line, else the environment, else the TOML file, else the default; wherever
it was written, it is held to the same rule.
"""

from __future__ import annotations

import difflib
import os
import shlex
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from astra_async.errors import ConfigError
from astra_async.model_options import chosen_models, laid_over, with_addresses
from astra_async.options import (
    BUNDLED,
    OTHER_VARIABLES,
    PREFIX,
    Options,
    PromptSettings,
    SharedOptions,
    flag_of,
    options,
    tables,
    variable_of,
)
from astra_async.redaction import public_settings, register_secrets_in, register_secrets_of
from astra_async.types import (
    ANSWER_FORMATS,
    AgentLimits,
    AgentSettings,
    Declared,
    Format,
    Limits,
    ModelSettings,
    Text,
    checked_table,
    checked_value,
    declared,
    refuse_unknown,
)
from astra_async.types.declarations import is_agent_name, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(SharedOptions):
    """A whole run, checked: what to ask, whom, how often, and within which limits.

    `problems` is a CSV path or BUNDLED; `leave_out` replaces the prompt's default rules when not None;
    `s3` and `simulation` hold the keys of their tables (`S3Settings`, `SimulationSettings`); `warnings` are
    for whoever started it, as are `addresses`: servers that variables of the environment name.
    With `answers_only_from_record` (a regrade) no model is called; with `simulate_all` (a demo) every
    provider's calls go to the simulated server, each in its own wire format. `command` is what was typed.
    """

    out: Path
    models: tuple[ModelSettings, ...]
    problems: str = BUNDLED
    formats: tuple[Format, ...] = ("xml",)
    agents: tuple[AgentSettings, ...] = ()
    agent_limits: AgentLimits = field(default_factory=AgentLimits)
    columns: Mapping[str, str] = field(default_factory=dict)
    sandboxes: int = 2
    limits: Limits = field(default_factory=Limits)
    s3: Mapping[str, Any] = field(default_factory=dict)
    simulation: Mapping[str, Any] = field(default_factory=dict)
    answers_only_from_record: bool = False
    simulate_all: bool = False
    leave_out: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def load_config(
    given: Mapping[str, Any],
    toml_path: Path | None = None,
    *,
    recorded: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunConfig:
    """The checked configuration from flags (None: not given) over variables over a TOML file.

    Variables count for the options that `given` names. `recorded` holds keys and tables like those of the
    file, for what the file does not set: those of the run that is graded again.
    Raises ConfigError naming the flag, the variable or file and key, and the remedy.
    """
    environ, recorded = environ or {}, recorded or {}
    warnings = _unknown_variables(environ)
    toml = _read_toml(toml_path) if toml_path else {}
    where = f"--config {toml_path}" if toml_path else "run.json"
    register_secrets_in([given, toml])
    register_secrets_of(environ)
    set_before = {name: value for name, value in recorded.items() if value is not None}
    toml = laid_over(set_before, toml)
    typed = Options(**_values(given, environ, toml, where))
    if not typed.out:
        raise ConfigError("no run directory: add --out DIR")
    inside = {
        name: checked_table(table, toml.get(name, {}), f"{where}: [{name}]")
        for name, table in tables().items()
        if name not in {"models", "agents"} and name in toml
    }
    limits = Limits(**inside.get("sandbox", {}))
    models = chosen_models(typed, _listed(toml, "models", where))
    models, addresses = with_addresses(models, environ)
    _refuse_accidents(typed, models)
    agents = _agents(typed, toml, where)
    _refuse_batches(agents, models)
    return RunConfig(
        out=Path(typed.out),
        models=models,
        problems=typed.problems or BUNDLED,
        formats=_formats(typed),
        agents=agents,
        agent_limits=AgentLimits(minutes=typed.agent_minutes, steps=typed.agent_steps, usd=typed.agent_usd),
        columns=parse_columns(typed.column),
        sandboxes=typed.sandboxes or default_sandboxes(limits),
        limits=limits,
        s3=inside.get("s3", {}),
        simulation=inside.get("simulation", {}),
        leave_out=PromptSettings(**inside.get("prompt", {})).leave_out,
        warnings=warnings,
        addresses=addresses,
        **{item.name: getattr(typed, item.name) for item in fields(SharedOptions)},
    )


_ALIKE = 0.75  # below that it is another program's variable, such as ASTRA_DB_TOKEN


def default_sandboxes(limits: Limits) -> int:
    """As many containers as there are cores, and as four fifths of the memory can hold at their limit."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, int(0.8 * memory_bytes / limits.memory_bytes)))


def parse_columns(pairs: Iterable[str]) -> dict[str, str]:
    """`FIELD=NAME` pairs as a mapping; raises ConfigError."""
    columns = {}
    for pair in pairs:
        name, separator, header = pair.partition("=")
        if not (separator and name.strip() and header.strip()):
            raise ConfigError(f"--column {pair!r}: write it as FIELD=NAME, such as project=project_zip")
        columns[name.strip()] = header.strip()
    return columns


# Other settings are part of a fingerprint only where they are set, so that older runs can be continued.
_ALWAYS = ("spec", "provider", "model", "temperature", "max_tokens", "reasoning_effort", "api_version")


def model_part(settings: ModelSettings, seed: int | None) -> dict[str, Any]:
    """What of a model's settings changes its answers: the model's part of the fingerprint.

    Limits, prices and time-outs are left out; so is the address of a simulated server, which has a
    new port in every run. What may be secret is masked or hashed (see `redaction`).
    """
    asked = [item.name for item in declared(ModelSettings) if item.about.asked]
    values = {name: getattr(settings, name) for name in ("provider", "model", *asked)}
    part = {name: value for name, value in values.items() if name in _ALWAYS or value not in (None, (), {})}
    part["seed"] = seed
    for name in ("base_url", "endpoint"):
        part[name] = getattr(settings, name) if settings.provider != "simulated" else None
    return public_settings(part)


def _values(
    given: Mapping[str, Any], environ: Mapping[str, str], toml: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The options that somebody set, checked where they were written."""
    values = {}
    for name, option in options().items():
        value = given.get(name)
        variable = environ.get(variable_of(name), "") if name in given else ""
        if value is not None and value != ():
            text = Text(value) if isinstance(value, str) else value
            values[name] = checked_value(option, text, f"{flag_of(name)} {shown(value)}")
        elif variable:
            values[name] = _from_variable(option, variable)
        elif name in toml:
            value = [toml[name]] if option.several and isinstance(toml[name], str) else toml[name]
            values[name] = checked_value(option, value, f"{where}: {name} = {shown(repr(toml[name]))}")
    return values


def _from_variable(option: Declared, text: str) -> Any:
    """Several values are separated as in a shell."""
    written = f"{variable_of(option.name)}={shown(text)}"
    if not option.several:
        return checked_value(option, Text(text), written)
    try:
        return checked_value(option, tuple(shlex.split(text)), written)
    except ValueError as error:
        raise ConfigError(f"{written}: {error}; close the quotes") from error


def _unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings of `ASTRA_*` variables that nothing reads; ConfigError for one that is only misspelt."""
    known = [*map(variable_of, options()), *OTHER_VARIABLES]
    unknown = [name for name in environ if name.startswith(PREFIX) and name not in known]
    names = {name.removeprefix(PREFIX): name for name in known}
    for name in unknown:
        close = difflib.get_close_matches(name.removeprefix(PREFIX), names, n=1, cutoff=_ALIKE)
        if close:
            raise ConfigError(f"{name}: no such variable; did you mean {names[close[0]]}? Else unset it")
    return tuple(f"the variable {name} is none of astra's and changes nothing" for name in sorted(unknown))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path}: not valid TOML: {error}") from error
    for name in content:
        refuse_unknown(name, (*options(), *tables()), f"--config {path}")
    return content


def _refuse_accidents(typed: Options, models: Iterable[ModelSettings]) -> None:
    """Nobody pays for the bundled problems because a flag was forgotten."""
    paid = next((model.name for model in models if _may_cost(model)), None)
    if paid and typed.problems is None:
        raise ConfigError(
            f"no problems named, and {paid} may cost money: add --problems CSV,"
            " or --problems bundled for the bundled ones"
        )


def _may_cost(model: ModelSettings) -> bool:
    if model.provider == "simulated" or model.price_input == model.price_output == 0:
        return False
    if model.provider == "openai-compatible" and model.base_url is None:
        return False  # it cannot be asked at all, which is told later
    return urlsplit(model.base_url or "").hostname not in {"localhost", "127.0.0.1", "::1"}


def _formats(typed: Options) -> tuple[Format, ...]:
    """Answer formats, unless agents alone are asked for, and then the agents."""
    agents = [name for name in dict.fromkeys(typed.agent) if name != "none"]
    answers = ANSWER_FORMATS if typed.format == "both" else (typed.format,)
    return (*(answers if "none" in typed.agent or not agents else ()), *agents)


def _agents(typed: Options, toml: Mapping[str, Any], where: str) -> tuple[AgentSettings, ...]:
    """The agents that are asked for, with what the file says of them; `agents.catalog` knows the rest."""
    own = {values["name"]: AgentSettings(**values) for values in _listed(toml, "agents", where)}
    names = [name for name in dict.fromkeys(typed.agent) if name != "none"]
    for name in names:
        if not is_agent_name(name):
            raise ConfigError(f"--agent {shown(name)}: no name of an agent; `astra agents list` has them")
    return tuple(own.get(name) or AgentSettings(name=name) for name in names)


def _listed(toml: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    """The checked tables of a list of them, each with the key by which it is known."""
    key, example = {"agents": ("name", "shell"), "models": ("spec", "openai/gpt-4o")}[name]
    given = toml.get(name, [])
    if not isinstance(given, list):
        raise ConfigError(f"{where}: {name}: write each as [[{name}]] with `{key} = ...`")
    checked = []
    for number, table in enumerate(given, 1):
        place = f"{where}: [[{name}]] {number}"
        checked.append(checked_table(tables()[name], table, place))
        if key not in checked[-1]:
            raise ConfigError(f"{place}: `{key}` is missing, such as {key} = '{example}'")
    return checked


def _refuse_batches(agents: tuple[AgentSettings, ...], models: Iterable[ModelSettings]) -> None:
    """An agent says the next thing when it has the answer to the last: tomorrow is too late."""
    batched = next((model.name for model in models if model.batch), None)
    if agents and batched:
        raise ConfigError(
            f"--agent {agents[0].name}: {batched} is asked by batches, for which no agent waits: leave out"
            " --batch, or batch = true of the model"
        )
