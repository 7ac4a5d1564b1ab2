"""Every option of a run, documented once: flags, `ASTRA_*` variables and TOML keys come from OPTIONS.

A value is taken from the command line, else the environment, else the TOML file, else the default.
`[[models]]`, `[s3]`, `[sandbox]`, `[prompt]` and `[simulation]` exist in TOML only.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit, urlunsplit

from astra_async.errors import ConfigError
from astra_async.types import Limits, MaxTokensField, ModelSettings, Thinking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.types import Format

Canary = Literal["all", "suspicious", "off"]
BUNDLED = "bundled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: its flag is `--name` with dashes, its variable `ASTRA_NAME`, its TOML key `name`."""

    name: str
    kind: type
    help: str
    default: Any = None
    several: bool = False
    choices: tuple[str, ...] = ()
    metavar: str | None = None


OPTIONS: tuple[Option, ...] = (
    Option(name="problems", kind=str, default=BUNDLED, metavar="CSV", help="Problems CSV, or `bundled`."),
    Option(name="model", kind=str, several=True, metavar="SPEC", help="provider/model; may be repeated."),
    Option(name="out", kind=str, metavar="DIR", help="Run directory; the same one resumes."),
    Option(name="samples", kind=int, default=32, metavar="K", help="Independent samples of each problem."),
    Option(
        name="format",
        kind=str,
        default="xml",
        choices=("xml", "json", "both"),
        help="Answer format asked for; `both` gives K samples of each.",
    ),
    Option(name="projects", kind=str, metavar="ROOT", help="Folder or URL of relative projects."),
    Option(
        name="column",
        kind=str,
        several=True,
        metavar="FIELD=NAME",
        help="Which CSV column holds a field; may be repeated.",
    ),
    Option(name="only", kind=str, several=True, metavar="ID", help="Only this problem; may be repeated."),
    Option(name="skill", kind=str, metavar="NAME", help="Only problems with this main or sub-skill."),
    Option(name="limit", kind=int, metavar="N", help="Only the first N problems, this time."),
    Option(name="base_url", kind=str, metavar="URL", help="Server of every model on this command line."),
    Option(name="max_in_flight", kind=int, metavar="N", help="Most calls at once for each model (256)."),
    Option(name="sandboxes", kind=int, metavar="N", help="Containers at once (by cores and memory)."),
    Option(name="budget_usd", kind=float, metavar="USD", help="Stop before this sum is passed."),
    Option(name="seed", kind=int, metavar="N", help="Sent to the model, a different one for each sample."),
    Option(name="image", kind=str, default="", metavar="NAME", help="Image of problems that name none."),
    Option(
        name="canary",
        kind=str,
        default="suspicious",
        choices=("all", "suspicious", "off"),
        help="Which samples a test that must fail is run against.",
    ),
    Option(
        name="reuse_identical",
        kind=bool,
        default=False,
        help="Grade equal solutions of a problem once and use the verdict again.",
    ),
)
SIMULATION_KEYS = (
    *("speed", "requests_per_minute", "tokens_per_minute", "burst_s", "faults", "fault_rate"),
    *("fault_kinds", "stall_s", "seed", "chunk_characters", "cache_ttl_s", "denied"),
)
_OPEN = ("extra_headers", "extra_body")
_WORDS = {"thinking": get_args(Thinking), "max_tokens_field": get_args(MaxTokensField)}
_BY_NAME = {option.name: option for option in OPTIONS}
_TABLES = ("models", "s3", "sandbox", "prompt", "simulation")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole run, checked: what to ask, whom, how often, and within which limits.

    `problems` is a CSV path or BUNDLED; `leave_out` replaces the prompt's default rules when not None;
    `s3` and `simulation` hold the keys of their tables (`S3Settings`, `SimulationSettings`).
    With `answers_only_from_record` (a regrade) no model is called; with `simulate_all` (a demo) every
    provider's calls go to the simulated server, each in its own wire format.
    """

    out: Path
    models: tuple[ModelSettings, ...]
    problems: str = BUNDLED
    formats: tuple[Format, ...] = ("xml",)
    samples: int = 32
    projects: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    skill: str | None = None
    limit: int | None = None
    sandboxes: int = 2
    budget_usd: float | None = None
    seed: int | None = None
    image: str = ""
    canary: Canary = "suspicious"
    reuse_identical: bool = False
    limits: Limits = field(default_factory=Limits)
    s3: Mapping[str, Any] = field(default_factory=dict)
    simulation: Mapping[str, Any] = field(default_factory=dict)
    answers_only_from_record: bool = False
    simulate_all: bool = False
    leave_out: tuple[str, ...] | None = None


def load_config(
    given: Mapping[str, Any], toml_path: Path | None = None, *, recorded: Mapping[str, Any] | None = None
) -> RunConfig:
    """The checked configuration from flags and variables (None: not given) over a TOML file.

    `recorded` holds keys and tables like those of the file, for what the file does not set: those of the run
    that is graded again. Raises ConfigError naming the option or the key, and the remedy.
    """
    toml = _laid_over(recorded or {}, _read_toml(toml_path) if toml_path else {})
    values = {option.name: _value(option, given, toml) for option in OPTIONS}
    if not values["out"]:
        raise ConfigError("no run directory: add --out DIR")
    limits = _limits(toml.get("sandbox", {}))
    return RunConfig(
        out=Path(values["out"]),
        models=_models(values, toml.get("models", [])),
        problems=values["problems"],
        formats=("xml", "json") if values["format"] == "both" else (values["format"],),
        samples=_at_least_one(values, "samples"),
        projects=values["projects"],
        columns=parse_columns(values["column"]),
        only=tuple(values["only"]),
        skill=values["skill"],
        limit=_at_least_one(values, "limit"),
        sandboxes=_at_least_one(values, "sandboxes") or default_sandboxes(limits),
        budget_usd=values["budget_usd"],
        seed=values["seed"],
        image=values["image"],
        canary=values["canary"],
        reuse_identical=values["reuse_identical"],
        limits=limits,
        s3=_known(toml.get("s3", {}), ("endpoint_url", "region", "anonymous"), "[s3]"),
        simulation=_known(toml.get("simulation", {}), SIMULATION_KEYS, "[simulation]"),
        leave_out=_leave_out(toml.get("prompt", {})),
    )


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


# What came later: part of a fingerprint only where it is set, so that older runs can be continued.
_ASKED = (
    *(
        "thinking",
        "thinking_budget",
        "system_prompt",
        "top_p",
        "top_k",
        "stop",
        "service_tier",
        "organization",
    ),
    *("project", "max_tokens_field", "extra_headers", "extra_body"),
)


def model_part(settings: ModelSettings, seed: int | None) -> dict[str, Any]:
    """What of a model's settings changes its answers: the model's part of the fingerprint.

    Limits, prices and time-outs are left out; so is the address of a simulated server, which has a
    new port in every run. Credentials within a URL are removed.
    """
    kept = ("spec", "provider", "model", "temperature", "max_tokens", "reasoning_effort", "api_version")
    part: dict[str, Any] = {name: getattr(settings, name) for name in kept}
    part["seed"] = seed
    part |= {name: value for name in _ASKED if (value := getattr(settings, name)) not in (None, (), {})}
    for name in ("base_url", "endpoint"):
        url = getattr(settings, name)
        part[name] = without_credentials(url) if url and settings.provider != "simulated" else None
    return part


def without_credentials(url: str) -> str:
    """The URL without user, password, query and final slash, fit for a record."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _value(option: Option, given: Mapping[str, Any], toml: Mapping[str, Any]) -> Any:
    value = given.get(option.name)
    if value is None or value == ():
        value = _toml_value(option, toml)
    if value is None:
        value = () if option.several else option.default
    if option.choices and value not in option.choices:
        raise ConfigError(f"{option.name}: {value!r} is none of {', '.join(option.choices)}")
    return value


def _toml_value(option: Option, toml: Mapping[str, Any]) -> Any:
    value = toml.get(option.name)
    if value is None:
        return None
    if option.several:
        values = value if isinstance(value, list) else [value]
        return tuple(str(item) for item in values)
    if option.kind is float and isinstance(value, int):
        value = float(value)
    if not isinstance(value, option.kind) or (isinstance(value, bool) and option.kind is not bool):
        raise ConfigError(f"{option.name} = {value!r} in the TOML file: {option.kind.__name__} expected")
    return value


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path}: not valid TOML: {error}") from error
    return _known(content, (*_BY_NAME, *_TABLES), str(path))


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of both, those of `above` first; tables are merged key by key."""
    merged = {**below, **above}
    for name, value in below.items():
        if isinstance(value, dict) and isinstance(above.get(name), dict):
            merged[name] = {**value, **above[name]}
    return merged


def _known(table: Any, names: Iterable[str], where: str) -> dict[str, Any]:
    known = tuple(names)
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: a table of keys is expected")
    for name in table:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"known keys: {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key `{name}`; {hint}")
    return dict(table)


def _at_least_one(values: Mapping[str, Any], name: str) -> Any:
    value = values[name]
    if value is not None and value < 1:
        raise ConfigError(f"{name}: {value} is too small; 1 is the least")
    return value


def _limits(table: Any) -> Limits:
    known = _known(table, [item.name for item in fields(Limits)], "[sandbox]")
    for name, value in known.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ConfigError(f"[sandbox] {name} = {value!r}: a number above 0 is expected")
    whole = {name: value if name == "timeout_s" else int(value) for name, value in known.items()}
    return Limits(**whole)


def _leave_out(table: Any) -> tuple[str, ...] | None:
    rules = _known(table, ("leave_out",), "[prompt]").get("leave_out")
    if rules is None:
        return None
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise ConfigError("[prompt] leave_out: a list of patterns is expected")
    return tuple(rules)


def _models(values: Mapping[str, Any], tables: Any) -> tuple[ModelSettings, ...]:
    if not isinstance(tables, list):
        raise ConfigError("models: write each as [[models]] with `spec = ...`")
    described = [_described_model(table) for table in tables]
    by_name = {model.name: model for model in described}
    by_spec = {model.spec: model for model in reversed(described)}
    named: tuple[str, ...] = values["model"]
    chosen = [by_name.get(spec) or by_spec.get(spec) or _plain_model(spec) for spec in named] or described
    if not chosen:
        raise ConfigError("no model: add --model PROVIDER/NAME, or [[models]] to the TOML file")
    _refuse_twins(chosen)
    return tuple(_with_overrides(model, values) for model in chosen)


def _described_model(table: Any) -> ModelSettings:
    names = [item.name for item in fields(ModelSettings) if item.name not in ("provider", "model")]
    known = _known(table, names, "[[models]]")
    if not known.get("spec"):
        raise ConfigError("[[models]]: `spec` is missing, such as spec = 'openai/gpt-4o'")
    return replace(_plain_model(known["spec"]), **_checked(known))


def _checked(table: dict[str, Any]) -> dict[str, Any]:
    kinds = {item.name: str(item.type) for item in fields(ModelSettings)}
    for name, value in table.items():
        if name in _OPEN:
            if not isinstance(value, dict):
                raise ConfigError(f"[[models]] {name}: a table of keys is expected")
            continue
        if name in _WORDS:
            if value not in _WORDS[name]:
                raise ConfigError(
                    f"[[models]] {name} = {value!r}: one of {', '.join(_WORDS[name])} is expected"
                )
            continue
        wanted: tuple[type, ...] = (str,)
        if name == "stop":
            wanted = (list,)
        elif "float" in kinds[name]:
            wanted = (int, float)
        elif "int" in kinds[name]:
            wanted = (int,)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ConfigError(f"[[models]] {name} = {value!r}: {kinds[name].split(' ')[0]} is expected")
    return {name: tuple(value) if name == "stop" else value for name, value in table.items()}


def _plain_model(spec: str) -> ModelSettings:
    from astra_async.asking.providers import parse_spec

    provider, model = parse_spec(spec)
    return ModelSettings(name=spec, spec=spec, provider=provider, model=model)


def _with_overrides(model: ModelSettings, values: Mapping[str, Any]) -> ModelSettings:
    changes = {}
    if values["base_url"]:
        changes["base_url"] = values["base_url"]
    if values["max_in_flight"] is not None:
        changes["max_in_flight"] = _at_least_one(values, "max_in_flight")
    return replace(model, **changes)


def _refuse_twins(models: Iterable[ModelSettings]) -> None:
    seen: set[str] = set()
    for model in models:
        if model.name in seen:
            raise ConfigError(f"two models are called {model.name!r}: give one a `name` of its own in TOML")
        seen.add(model.name)
