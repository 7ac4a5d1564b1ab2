"""The settings of a run, each declared once: name, type, bounds, default and what `--help` says of it.

`Options` declares what flags, variables and the top of a TOML file set; the tables beside it are declared
by the values they fill: `[[models]]` ModelSettings, `[[agents]]` AgentSettings, `[s3]` S3Settings,
`[sandbox]` Limits, `[simulation]` SimulationSettings, `[prompt]` PromptSettings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Gt, Predicate

from astra_async.types import AgentSettings, Declared, Limits, ModelSettings, S3Settings, Setting, declared
from astra_async.types.declarations import Address, Positive, Price, Whole, Word, is_cluster
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    reuse_identical: Annotated[
        bool, Setting("Grade equal solutions of a problem once and use the verdict again.")
    ] = False
    strict_tests: Annotated[
        bool, Setting("Leave samples of a problem missing once one contradicts its expected tests.")
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
    temperature: Annotated[float | None, Ge(0), Setting("Sampling temperature of every model.", "T")] = None
    max_tokens: Annotated[Whole, Setting("Longest answer of every model, in tokens.", "N")] = None
    reasoning_effort: Annotated[
        Word, Setting("Of every model, as its provider spells it: low, medium, high ...", "EFFORT")
    ] = None
    model_setting: Annotated[
        tuple[str, ...],
        Setting(
            "A key of [[models]], or a field of the request's body; may be repeated.", "KEY=VALUE", short="M"
        ),
    ] = ()
    price_input: Annotated[Price, Setting("Price of every model, in USD per million tokens.", "USD")] = None
    price_output: Annotated[Price, Setting("Price of every model, in USD per million tokens.", "USD")] = None
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
PREFIX = "ASTRA_"


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
    """An option's flag; the short one if it has one."""
    short = options()[name].about.short if name in options() else ""
    return f"-{short}" if short else f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """An option's variable."""
    return f"{PREFIX}{name.upper()}"
