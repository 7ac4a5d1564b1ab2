"""Configuration of a run from flags, `ASTRA_*` variables and a TOML file.

The first of these values is used: command line, environment, TOML file, default. All have the same checks.
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
from astra_async.redaction import one_line, public_settings, register_secrets_in, register_secrets_of
from astra_async.types import (
    AGENT_MINUTES,
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
from astra_async.types.task_work import TaskSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(SharedOptions):
    """Checked configuration of a run.

    Attributes:
        problems: path of a CSV, or BUNDLED.
        leave_out: patterns that replace the prompt's default patterns; None keeps the default.
        s3: keys of the table `[s3]` (`S3Settings`).
        simulation: keys of the table `[simulation]` (`SimulationSettings`).
        warnings: lines for the user.
        addresses: lines for the user that name servers from environment variables.
        answers_only_from_record: send no requests to models (a regrade).
        simulate_all: send all requests to the simulated server, in each provider's wire format (a demo).
        command: the typed command.
    """

    out: Path
    models: tuple[ModelSettings, ...]
    problems: str = BUNDLED
    formats: tuple[Format, ...] = ("xml",)
    agents: tuple[AgentSettings, ...] = ()
    agent_limits: AgentLimits = field(default_factory=AgentLimits)
    tasks: TaskSettings = field(default_factory=TaskSettings)
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
    """Return the checked configuration from flags, variables and a TOML file.

    Args:
        given: options of the command line; None means not given. Other variables are ignored.
        toml_path: path of the TOML file.
        recorded: keys and tables of the run that is graded again, without priority.
        environ: environment variables.

    Raises:
        ConfigError: a value is invalid; the message has the flag, variable or key, and the remedy.
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
        agent_limits=AgentLimits(
            minutes=typed.agent_minutes or AGENT_MINUTES, steps=typed.agent_steps, usd=typed.agent_usd
        ),
        tasks=_task_settings(typed),
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


_ALIKE = 0.75  # a less similar name is a variable of another program, such as ASTRA_DB_TOKEN


def default_sandboxes(limits: Limits) -> int:
    """Return the number of cores, limited by the containers that fit into four fifths of the memory."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, int(0.8 * memory_bytes / limits.memory_bytes)))


def parse_columns(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `FIELD=NAME` pairs into a mapping. Raises ConfigError."""
    columns = {}
    for pair in pairs:
        name, separator, header = pair.partition("=")
        if not (separator and name.strip() and header.strip()):
            raise ConfigError(f"--column {pair!r}: write it as FIELD=NAME, such as project=project_zip")
        columns[name.strip()] = header.strip()
    return columns


# Other settings are part of a fingerprint only if they are set, so that older runs can be continued.
_ALWAYS = ("spec", "provider", "model", "temperature", "max_tokens", "reasoning_effort", "api_version")


def model_part(settings: ModelSettings, seed: int | None) -> dict[str, Any]:
    """Return the model's part of the fingerprint: the settings that change its answers.

    Limits, prices and time-outs are omitted. The address of a simulated server is omitted because its port
    changes in every run. Possible secrets are masked or hashed (see `redaction`).
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
    """Return the checked values of the options that are set."""
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
    """Parse and check the value of a variable; several values are separated as in a shell."""
    written = f"{variable_of(option.name)}={shown(text)}"
    if not option.several:
        return checked_value(option, Text(text), written)
    try:
        return checked_value(option, tuple(shlex.split(text)), written)
    except ValueError as error:
        raise ConfigError(f"{written}: {error}; close the quotes") from error


def _unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return warnings about unknown `ASTRA_*` variables. Raises ConfigError for a misspelled one."""
    known = [*map(variable_of, options()), *OTHER_VARIABLES]
    unknown = [name for name in environ if name.startswith(PREFIX) and name not in known]
    names = {name.removeprefix(PREFIX): name for name in known}
    for name in unknown:
        close = difflib.get_close_matches(name.removeprefix(PREFIX), names, n=1, cutoff=_ALIKE)
        if close:
            raise ConfigError(f"{name}: unknown variable; did you mean {names[close[0]]}? Otherwise unset it")
    return tuple(f"the variable {name} is unknown and ignored" for name in sorted(unknown))


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
    """Require --problems for a paid model, so that a forgotten flag does not cause costs."""
    paid = next((model.name for model in models if _may_cost(model)), None)
    if paid and typed.problems is None:
        raise ConfigError(
            f"no problems named, and {paid} may cost money: add --problems CSV,"
            " or --problems bundled for the bundled problems"
        )


def _may_cost(model: ModelSettings) -> bool:
    if model.provider == "simulated" or model.price_input == model.price_output == 0:
        return False
    if model.provider == "openai-compatible" and model.base_url is None:
        return False  # unusable without an address; a later check reports this
    return urlsplit(model.base_url or "").hostname not in {"localhost", "127.0.0.1", "::1"}


def _formats(typed: Options) -> tuple[Format, ...]:
    """Return the answer formats (none if only agents are requested), then the agents."""
    agents = [name for name in dict.fromkeys(typed.agent) if name != "none"]
    answers = ANSWER_FORMATS if typed.format == "both" else (typed.format,)
    return (*(answers if "none" in typed.agent or not agents else ()), *agents)


def _agents(typed: Options, toml: Mapping[str, Any], where: str) -> tuple[AgentSettings, ...]:
    """Return the requested agents with their settings in the configuration file.

    `agents.installing` adds the known settings.
    """
    own = {values["name"]: AgentSettings(**values) for values in _listed(toml, "agents", where)}
    names = [name for name in dict.fromkeys(typed.agent) if name != "none"]
    for name in names:
        if not is_agent_name(name):
            newest = f"run `astra agents install {name}` first, which prints the version for --agent"
            why = newest if name.endswith("@latest") else "invalid name; `astra agents list` lists the agents"
            raise ConfigError(f"--agent {one_line(name)}: {why}")
    return tuple(own.get(name) or AgentSettings(name=name) for name in names)


def _task_settings(typed: Options) -> TaskSettings:
    low, high = map(float, typed.reward_range.split(":"))
    return TaskSettings(
        allow_root=typed.allow_root,
        allow_network=typed.allow_network,
        minutes=typed.agent_minutes,
        times=typed.timeout_multiplier,
        low=low,
        high=high,
    )


def _listed(toml: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    """Return the checked tables of `[[models]]` or `[[agents]]`, each with its required key."""
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
    """Refuse agents with batches: an agent needs each response before its next request."""
    batched = next((model.name for model in models if model.batch), None)
    if agents and batched:
        raise ConfigError(
            f"--agent {agents[0].name}: an agent cannot wait for the batches of {batched}: remove"
            " --batch, or batch = true of the model"
        )
