"""Declarations of all settings of a run: name, type, bounds, default and help text.

`Options` declares the options: flags, variables and top-level keys of a TOML file. Each TOML table has a
class: `[[models]]` ModelSettings, `[[agents]]` AgentSettings, `[s3]` S3Settings, `[sandbox]` Limits,
`[simulation]` SimulationSettings, `[prompt]` PromptSettings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Gt, Predicate

from astra_async.types import AgentSettings, Declared, Limits, ModelSettings, S3Settings, Setting, declared
from astra_async.types.declarations import Address, Positive, Price, Whole, Word, is_cluster, is_reward_range
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

FeedbackMode = Literal["full", "names", "count"]
KeepOutput = Literal["failed", "all", "none"]
Until = Literal["decided", "precise"]
BUNDLED = "bundled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptions:
    """Options that a `RunConfig` takes over unchanged."""

    samples: Annotated[int, Ge(1), Setting("Number of independent samples of each problem.", "K")] = 32
    until: Annotated[
        Until | None,
        Setting("Request samples in rounds of 2, 4, 8 ...; stop each model when it is decided or precise."),
    ] = None
    target_se: Annotated[
        Positive, Setting("Target standard error of a mean score, for --until precise.", "POINTS")
    ] = None
    margin: Annotated[
        float, Gt(0), Setting("Largest difference that counts as equivalent, for --until decided.", "POINTS")
    ] = 2.0
    agents_at_once: Annotated[
        Whole, Setting("Maximum number of agents at once. Default: limited by memory.", "N")
    ] = None
    projects: Annotated[
        Word, Setting("Folder or URL to which relative projects refer. Default: the CSV's folder.", "ROOT")
    ] = None
    skills: Annotated[Word, Setting("CSV that adds skills. Columns: id, main_skill, sub_skills.", "CSV")] = (
        None
    )
    only: Annotated[tuple[str, ...], Setting("Select a problem by id; may be repeated.", "ID")] = ()
    skill: Annotated[Word, Setting("Select problems with this main skill or sub-skill.", "NAME")] = None
    limit: Annotated[Whole, Setting("Select the first N problems, for this invocation.", "N")] = None
    budget_usd: Annotated[
        Positive, Setting("Maximum cost of the run in USD; requests stop before the cost exceeds it.", "USD")
    ] = None
    seed: Annotated[
        int | None, Setting("Base of the seed sent to the model; each sample gets a different seed.", "N")
    ] = None
    image: Annotated[str, Setting("Docker image for problems that name no image.", "NAME")] = ""
    retry_images: Annotated[
        bool, Setting("Repeat builds of images that failed before with the same inputs.")
    ] = False
    reuse_identical: Annotated[
        bool, Setting("Grade equal solutions of a problem once and reuse the verdict.")
    ] = False
    strict_tests: Annotated[
        bool, Setting("Leave a problem's samples missing after one contradicts its expected tests.")
    ] = False
    keep_output: Annotated[
        KeepOutput, Setting("Samples whose test output is stored in outputs.jsonl, at most 64 KB each.")
    ] = "failed"
    keep_artifacts: Annotated[
        bool, Setting("Keep /logs and the declared artifacts of each task's sample, below OUT/artifacts.")
    ] = False
    cluster: Annotated[
        str | None,
        Predicate(is_cluster),
        Setting("Run the tests on a Dask cluster, or on N local worker processes.", "ADDRESS|local:N"),
    ] = None
    turns: Annotated[
        int,
        Ge(0),
        Setting("Maximum number of follow-up turns of a sample, after feedback on failed tests.", "R"),
    ] = 0
    feedback: Annotated[
        FeedbackMode | None,
        Setting("Content of the feedback. Default: `count` for problems with hidden files, else `full`."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(SharedOptions):
    """All options: a flag (`--max-in-flight`), a variable (`ASTRA_MAX_IN_FLIGHT`) and a TOML key each."""

    problems: Annotated[
        Word, Setting("Problems: CSV, fetched folder, hf:OWNER/NAME, https://...csv, or `bundled`.", "CSV")
    ] = None
    model: Annotated[
        tuple[str, ...], Setting("Model to test, such as openai/gpt-4o; may be repeated.", "SPEC")
    ] = ()
    out: Annotated[Word, Setting("Run directory; an existing one is resumed.", "DIR")] = None
    format: Annotated[
        Literal["xml", "json", "both"], Setting("Answer format; `both` requests K samples in each format.")
    ] = "xml"
    agent: Annotated[
        tuple[str, ...],
        Setting("Agent that works on each problem; `none` is a single answer; may be repeated.", "NAME"),
    ] = ()
    agent_minutes: Annotated[
        Positive,
        Setting(
            "Maximum minutes of an agent for one sample, without model calls. Default: 30, or a task's own.",
            "M",
        ),
    ] = None
    agent_steps: Annotated[
        int, Ge(1), Setting("Maximum number of model calls of an agent for one sample.", "N")
    ] = 250
    agent_usd: Annotated[
        Positive, Setting("Maximum cost of an agent for one sample, in USD. Default: no limit.", "USD")
    ] = None
    allow_root: Annotated[bool, Setting("Give tasks root's usual rights inside of their containers.")] = False
    allow_network: Annotated[bool, Setting("Give tasks that ask for it access to the network.")] = False
    timeout_multiplier: Annotated[
        float, Gt(0), Setting("Multiply the tasks' own time limits of agents and verifiers.", "X")
    ] = 1.0
    reward_range: Annotated[
        str,
        Predicate(is_reward_range),
        Setting("Rewards of tasks that become scores from 0 to 1.", "LOW:HIGH"),
    ] = "0:1"
    column: Annotated[
        tuple[str, ...],
        Setting("Map a CSV column to a field, such as project=zip; may be repeated.", "FIELD=NAME"),
    ] = ()
    base_url: Annotated[Address, Setting("Address of the server for all models.", "URL")] = None
    temperature: Annotated[float | None, Ge(0), Setting("Sampling temperature for all models.", "T")] = None
    max_tokens: Annotated[Whole, Setting("Maximum length of an answer for all models, in tokens.", "N")] = (
        None
    )
    reasoning_effort: Annotated[
        Word, Setting("Reasoning effort for all models, in the provider's spelling: low, high ...", "EFFORT")
    ] = None
    model_setting: Annotated[
        tuple[str, ...],
        Setting(
            "Set a key of [[models]], or a field of the request's body; may be repeated.",
            "KEY=VALUE",
            short="M",
        ),
    ] = ()
    price_input: Annotated[
        Price, Setting("Input price for all models, in USD per million tokens.", "USD")
    ] = None
    price_output: Annotated[
        Price, Setting("Output price for all models, in USD per million tokens.", "USD")
    ] = None
    max_in_flight: Annotated[
        Whole, Setting("Maximum number of requests in flight for each model. Default: 256.", "N")
    ] = None
    sandboxes: Annotated[
        Whole, Setting("Maximum number of test containers at once. Default: by cores and memory.", "N")
    ] = None
    batch: Annotated[bool, Setting("Send all requests as batches: half the price, up to a day.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """Table `[prompt]` of the configuration file."""

    leave_out: Annotated[
        tuple[str, ...] | None,
        Setting("Patterns of project files to omit from the prompt, instead of the default patterns."),
    ] = None


OTHER_VARIABLES: Mapping[str, str] = {
    "ASTRA_CONFIG": "Path of the TOML file, like --config.",
    "ASTRA_CACHE": "Folder for fetched projects and learned tests. Default: ~/.cache/astra_async.",
    "ASTRA_BASE_IMAGE": "Base of all built images, instead of Debian's image.",
    "ASTRA_DEBIAN_MIRROR": "Mirror that debootstrap uses for the base image if no registry answers.",
    "ASTRA_ENGINE_LOG": "Path of the log of an engine that scripts/engine starts.",
}
PREFIX = "ASTRA_"


@cache
def options() -> Mapping[str, Declared]:
    """Return the declared options by name; those of `SharedOptions` come last."""
    shared = {item.name for item in fields(SharedOptions)}
    return {item.name: item for item in sorted(declared(Options), key=lambda item: item.name in shared)}


@cache
def tables() -> Mapping[str, type]:
    """Return the class that declares each table of a TOML file, by the table's name."""
    return {
        "models": ModelSettings,
        "agents": AgentSettings,
        "s3": S3Settings,
        "sandbox": Limits,
        "prompt": PromptSettings,
        "simulation": SimulationSettings,
    }


def flag_of(name: str) -> str:
    """Return the flag of an option; the short flag if there is one."""
    short = options()[name].about.short if name in options() else ""
    return f"-{short}" if short else f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """Return the environment variable of an option."""
    return f"{PREFIX}{name.upper()}"
