"""Every setting of a run, declared once: flags, `ASTRA_*` variables, TOML keys, checks, help, documentation.

`Options` declares what flags, variables and the top of a TOML file set; the tables beside it are declared
by the values they fill: `[[models]]` ModelSettings, `[s3]` S3Settings, `[sandbox]` Limits, `[simulation]`
SimulationSettings, `[prompt]` PromptSettings. A value is taken from the command line, else the environment,
else the TOML file, else the default; wherever it was written, it is held to the same rule.
"""

from __future__ import annotations

import difflib
import os
import shlex
import tomllib
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Predicate

from astra_async.errors import ConfigError
from astra_async.redaction import keep_secrets_in, keep_secrets_of, public_settings
from astra_async.types import (
    ANSWER_FORMATS,
    AgentLimits,
    AgentSettings,
    Declared,
    Format,
    Limits,
    ModelSettings,
    S3Settings,
    Setting,
    Text,
    checked_table,
    checked_value,
    declared,
    refuse_unknown,
)
from astra_async.types.declarations import Address, Positive, Whole, Word, is_agent_name, is_cluster, shown
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TrialMode = Literal["all", "drawn", "off"]
FeedbackMode = Literal["full", "names", "count"]
KeepOutput = Literal["failed", "all", "none"]
Until = Literal["decided", "precise"]
BUNDLED = "bundled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptions:
    """What a run takes over as somebody set it."""

    samples: Annotated[int, Ge(1), Setting("Independent samples of each problem.", "K")] = 32
    until: Annotated[
        Until | None,
        Setting("Ask in rounds of 2, 4, 8 ... samples; stop each model once it is decided or precise."),
    ] = None
    target_se: Annotated[
        Positive, Setting("Standard error of a mean score, for --until precise.", "POINTS")
    ] = None
    margin: Annotated[
        float, Gt(0), Setting("Largest difference that --until decided calls equivalent.", "POINTS")
    ] = 2.0
    agents_at_once: Annotated[
        Whole, Setting("Agents' containers at once; as memory allows if not set.", "N")
    ] = None
    projects: Annotated[Word, Setting("Where relative projects start: a folder or URL.", "ROOT")] = None
    skills: Annotated[Word, Setting("CSV of skills by id: id, main_skill, sub_skills.", "CSV")] = None
    only: Annotated[tuple[str, ...], Setting("Only this problem; may be repeated.", "ID")] = ()
    skill: Annotated[Word, Setting("Only problems with this main or sub-skill.", "NAME")] = None
    limit: Annotated[Whole, Setting("Only the first N problems, this time.", "N")] = None
    budget_usd: Annotated[Positive, Setting("Stop before costs pass this sum.", "USD")] = None
    seed: Annotated[int | None, Setting("Seed sent to the model, varied for each sample.", "N")] = None
    image: Annotated[str, Setting("Image of problems that name none.", "NAME")] = ""
    retry_images: Annotated[
        bool, Setting("Try again to make images that failed before from the same inputs.")
    ] = False
    trials: Annotated[TrialMode, Setting("Which solutions are run against altered tests.")] = "drawn"
    reuse_identical: Annotated[
        bool, Setting("Grade equal solutions of a problem once and use the verdict again.")
    ] = False
    keep_output: Annotated[
        KeepOutput, Setting("Samples whose test output is kept in outputs.jsonl, at most 64 KB each.")
    ] = "failed"
    cluster: Annotated[
        str | None,
        Predicate(is_cluster),
        Setting("Run the tests on a Dask cluster, or on N worker processes here.", "ADDRESS|local:N"),
    ] = None
    turns: Annotated[
        int, Ge(0), Setting("Further turns of a sample, after feedback on its failed tests.", "R")
    ] = 0
    feedback: Annotated[
        FeedbackMode | None,
        Setting("What a turn is told of tests. If not set: `count` where files are hidden, else `full`."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(SharedOptions):
    """What a flag (`--max-in-flight`), a variable (`ASTRA_MAX_IN_FLIGHT`) or a TOML key can say."""

    problems: Annotated[
        Word, Setting("CSV, fetched folder, hf:OWNER/NAME, https://...csv, or `bundled`.", "CSV")
    ] = None
    model: Annotated[tuple[str, ...], Setting("provider/model; may be repeated.", "SPEC")] = ()
    out: Annotated[Word, Setting("Run directory; the same one resumes.", "DIR")] = None
    format: Annotated[
        Literal["xml", "json", "both"], Setting("Answer format asked for; `both` gives K samples of each.")
    ] = "xml"
    agent: Annotated[
        tuple[str, ...],
        Setting("Agent that works on each problem, `none` for a single answer; may be repeated.", "NAME"),
    ] = ()
    agent_minutes: Annotated[
        float, Gt(0), Setting("Most minutes of an agent's work, not counting model calls.", "M")
    ] = 30.0
    agent_steps: Annotated[int, Ge(1), Setting("Most model calls of one agent's work.", "N")] = 250
    agent_usd: Annotated[
        Positive, Setting("Most dollars of one agent's work; no limit if not set.", "USD")
    ] = None
    column: Annotated[
        tuple[str, ...], Setting("Which CSV column holds a field; may be repeated.", "FIELD=NAME")
    ] = ()
    base_url: Annotated[Address, Setting("Server of every model on this command line.", "URL")] = None
    max_in_flight: Annotated[Whole, Setting("Most calls at once for each model; 256 if not set.", "N")] = None
    sandboxes: Annotated[Whole, Setting("Containers at once; by cores and memory if not set.", "N")] = None
    batch: Annotated[bool, Setting("Send every model's calls as batches: half the price, within a day.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """`[prompt]` of the configuration file."""

    leave_out: Annotated[
        tuple[str, ...] | None,
        Setting("Patterns of project files that the prompt does not show, instead of the default ones."),
    ] = None


OTHER_VARIABLES: Mapping[str, str] = {
    "ASTRA_CONFIG": "TOML file, as --config.",
    "ASTRA_CACHE": "Folder for fetched projects and learned tests; ~/.cache/astra_async if not set.",
    "ASTRA_BASE_IMAGE": "Image that the built images start from, instead of Debian's.",
    "ASTRA_DEBIAN_MIRROR": "Where debootstrap takes the base image from where no registry answers.",
    "ASTRA_ENGINE_LOG": "Where scripts/engine writes the log of an engine that it starts.",
}
_PREFIX = "ASTRA_"
_ALIKE = 0.75  # below that it is another program's variable, such as ASTRA_DB_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(SharedOptions):
    """A whole run, checked: what to ask, whom, how often, and within which limits.

    `problems` is a CSV path or BUNDLED; `leave_out` replaces the prompt's default rules when not None;
    `s3` and `simulation` hold the keys of their tables (`S3Settings`, `SimulationSettings`); `warnings` are
    for whoever started it.
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
    command: tuple[str, ...] = ()


@cache
def options() -> Mapping[str, Declared]:
    """The declared options by name; what is asked of whom comes first."""
    shared = {item.name for item in fields(SharedOptions)}
    return {item.name: item for item in sorted(declared(Options), key=lambda item: item.name in shared)}


@cache
def tables() -> Mapping[str, type]:
    """The class that declares each table of a TOML file."""
    return {
        "models": ModelSettings,
        "agents": AgentSettings,
        "s3": S3Settings,
        "sandbox": Limits,
        "prompt": PromptSettings,
        "simulation": SimulationSettings,
    }


def flag_of(name: str) -> str:
    """An option's flag."""
    return f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """An option's variable."""
    return f"{_PREFIX}{name.upper()}"


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
    environ = {_RENAMED_VARIABLES.get(name, name): each for name, each in (environ or {}).items()}
    given, recorded = _renamed(given), _renamed(recorded or {})
    warnings = _unknown_variables(environ)
    toml = _read_toml(toml_path) if toml_path else {}
    where = f"--config {toml_path}" if toml_path else "run.json"
    keep_secrets_in([given, toml])
    keep_secrets_of(environ)
    set_before = {name: value for name, value in recorded.items() if value is not None}
    toml = _laid_over(set_before, toml)
    typed = Options(**_values(given, environ, toml, where))
    if not typed.out:
        raise ConfigError("no run directory: add --out DIR")
    inside = {
        name: checked_table(table, toml.get(name, {}), f"{where}: [{name}]")
        for name, table in tables().items()
        if name not in {"models", "agents"} and name in toml
    }
    limits = Limits(**inside.get("sandbox", {}))
    models = _models(typed, toml, where)
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
        **{item.name: getattr(typed, item.name) for item in fields(SharedOptions)},
    )


# Options by the names that they had before 23 November 2026, and values that are called otherwise since.
RENAMED = {"canary": "trials"}
_RENAMED_VALUES = {"suspicious": "drawn"}
_RENAMED_VARIABLES = {f"{_PREFIX}{old.upper()}": f"{_PREFIX}{new.upper()}" for old, new in RENAMED.items()}


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """What flags, a TOML file or a run.json say, under the names of today; a name of today goes first."""
    today = {name: value for name, value in values.items() if name not in RENAMED}
    for old, new in RENAMED.items():
        if values.get(old) is not None and today.get(new) is None:
            today[new] = values[old]
    return {
        name: _RENAMED_VALUES.get(value, value) if name in RENAMED.values() else value
        for name, value in today.items()
    }


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
            values[name] = _from_variable(option, _RENAMED_VALUES.get(variable, variable))
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
    unknown = [name for name in environ if name.startswith(_PREFIX) and name not in known]
    names = {name.removeprefix(_PREFIX): name for name in known}
    for name in unknown:
        close = difflib.get_close_matches(name.removeprefix(_PREFIX), names, n=1, cutoff=_ALIKE)
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
    content = _renamed(content)
    for name in content:
        refuse_unknown(name, (*options(), *tables()), f"--config {path}")
    return content


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of both, those of `above` first; tables are merged key by key."""
    merged = {**below, **above}
    for name, value in below.items():
        if isinstance(value, dict) and isinstance(above.get(name), dict):
            merged[name] = {**value, **above[name]}
    return merged


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


def _models(typed: Options, toml: Mapping[str, Any], where: str) -> tuple[ModelSettings, ...]:
    known = [replace(_plain_model(values["spec"]), **values) for values in _listed(toml, "models", where)]
    by_name = {model.name: model for model in known}
    by_spec = {model.spec: model for model in reversed(known)}
    chosen = [by_name.get(spec) or by_spec.get(spec) or _plain_model(spec) for spec in typed.model] or known
    if not chosen:
        raise ConfigError("no model: add --model PROVIDER/NAME, or [[models]] to the TOML file")
    for name, count in Counter(model.name for model in chosen).items():
        if count > 1:
            raise ConfigError(f"two models are called {name!r}: give one a `name` of its own in TOML")
    overrides = {
        "base_url": typed.base_url,
        "max_in_flight": typed.max_in_flight,
        "batch": typed.batch or None,
    }
    changes: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    return tuple(replace(model, **changes) for model in chosen)


def _plain_model(spec: str) -> ModelSettings:
    from astra_async.asking.providers import parse_spec

    provider, model = parse_spec(spec)
    return ModelSettings(name=spec, spec=spec, provider=provider, model=model)
