"""Warnings derived from a model's recorded answers: truncated prompts, another model, lost text, prices.

Each kind of warning is reported once per model. All warnings are computed from completions.jsonl, so
`astra status` and the report show the same warnings as `astra run`. Both also name the problems that could
not be prepared, because run.json and all figures are without these problems.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from astra_async.files import scan
from astra_async.listing import grouped_by_text, some
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from pathlib import Path

    from astra_async.types import Completion

_BYTES_PER_TOKEN = 4.2  # measured on this benchmark's prompts
_LEAST_TOKENS = 2_000  # estimates of shorter prompts are too inaccurate
_LEAST_COUNT = 256  # servers that do not count tokens report 0, 1 or a similar number
_CLEARLY_LONGER = 1.2  # two prompts whose sizes differ by this factor have different numbers of tokens
_LEAST_EMPTY = 3  # a model may return a single empty answer without any fault of the server
_COST_DIFFERENCE = 0.05
_CALLED = frozenset({"tool_calls", "tool_use", "function_call"})
# These providers return a name that differs from the requested one: that of a deployment or a simulated
# model.
_NAMED_OTHERWISE = frozenset({"azure", "simulated"})
# A date in a name: 2025-09-29, 20250929, 09-2025, or a version of three or four digits (0613, 2411, 001).
_DATE = re.compile(r"(?<![\da-z])(?:20\d\d-?\d\d-?\d\d|\d\d-20\d\d|\d{3,4})(?![\da-z])")
_NO_TEXT = re.compile(rb'"(?:\s|\\[nrt])*"')
_SAME_MODEL = frozenset({"latest", "preview", "exp", "experimental", "free", "nitro", "floor", "exacto", ""})


class Answered(msgspec.Struct, gc=False):
    """The fields of a line of completions.jsonl that a warning needs; `text` is not decoded."""

    model: str = ""
    prompt_sha256: str = ""
    text: msgspec.Raw = msgspec.Raw(b'""')
    usage: dict[str, Any] | None = None
    disbelieved_input_tokens: int | None = None
    returned_model: str = ""
    native_finish_reason: str = ""
    finish_reason: str = ""
    reasoning: str = ""
    unpriced_tier: str = ""
    priced_usd: float | None = None
    agent: Any = None


_UNPREPARED = b'"project_error"'
_ANSWERED = msgspec.json.Decoder(Answered)


def answered(model: str, completion: Completion, prompt_sha256: str) -> Answered:
    """Return the fields of an answer that was just recorded."""
    names = [name for name in Answered.__struct_fields__ if hasattr(completion, name)]
    named = {name: getattr(completion, name) for name in names}
    usage = {"input_tokens": completion.usage.input_tokens, "reported_usd": completion.usage.reported_usd}
    text = msgspec.Raw(b'"x"' if completion.text.strip() else b'""')
    return Answered(**named | {"model": model, "prompt_sha256": prompt_sha256, "usage": usage, "text": text})


@dataclass(slots=True)
class Observed:
    """Counts over the answers of one model so far; `asked` is the model name in the requests."""

    asked: str
    answers: int = 0
    returned: Counter[str] = field(default_factory=Counter)
    tokens: dict[str, int] = field(default_factory=dict)  # maximum of input tokens, by prompt hash
    empty: Counter[str] = field(default_factory=Counter)  # by the part of the response that was not empty
    unpriced: Counter[str] = field(default_factory=Counter)
    usd: list[tuple[float, float]] = field(default_factory=list)  # (reported, computed from known prices)

    def add(self, answer: Answered) -> None:
        """Count one answer. An agent's sample is ignored, because its usage is a sum over many requests."""
        if answer.agent is not None:
            return
        self.answers += 1
        usage = answer.usage or {}
        tokens = usage.get("input_tokens") or answer.disbelieved_input_tokens
        reported = usage.get("reported_usd")
        if isinstance(tokens, int) and tokens >= _LEAST_COUNT:
            known = self.tokens.get(answer.prompt_sha256, 0)
            self.tokens[answer.prompt_sha256] = max(known, tokens)
        if self.asked and answer.returned_model:
            self.returned[answer.returned_model] += 1
        if _NO_TEXT.fullmatch(memoryview(answer.text)):
            if answer.native_finish_reason in _CALLED:
                self.empty["a tool call: check the server's tool-call parser"] += 1
            elif answer.reasoning and answer.finish_reason != "length":
                self.empty["reasoning text: check the server's reasoning parser"] += 1
        if answer.unpriced_tier:
            self.unpriced[answer.unpriced_tier] += 1
        if reported is not None and answer.priced_usd is not None:
            self.usd.append((reported, answer.priced_usd))

    def warnings(self, size_bytes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """Yield (kind, text) of this model's warnings; `size_bytes` maps prompt hashes to prompt sizes."""
        of = f"of {self.answers} answers"
        if cut := max(self._cut_prompts(size_bytes), default=None):
            estimate, tokens = cut
            counts = f"{tokens:,} tokens reported for a prompt of about {estimate:,.0f}"
            remedy = "raise num_ctx (Ollama) or the server's context length"
            yield "prompt", f"the server truncates prompts: {counts}; {remedy}"
        if others := [name for name in self.returned if not is_same_model(self.asked, name)]:
            count = sum(self.returned[name] for name in others)
            yield "model", f"{count} {of} are from {some(others)}; requested was {self.asked}"
        for cause, count in self.empty.items():
            if count >= _LEAST_EMPTY and 2 * count >= self.answers:
                yield "empty", f"{count} {of} have no text but {cause}"
        for tier, count in self.unpriced.items():
            why = f"no price is known for the service tier {tier!r}"
            yield "tier", f"the cost of {count} {of} is an estimate: {why}"
        reported, priced = (sum(each[place] for each in self.usd) for place in (0, 1))
        if abs(reported - priced) > _COST_DIFFERENCE * max(reported, priced):
            amounts = f"${reported:.4f} for {len(self.usd)} answers, the configured prices give ${priced:.4f}"
            yield "cost", f"the provider reports a cost of {amounts}: check price_input and price_output"

    def _cut_prompts(self, size_bytes: Mapping[str, int]) -> list[tuple[float, int]]:
        """Return (estimated tokens, reported tokens) of each prompt that the server seems to truncate.

        The reported number is less than half of the estimate, or a clearly shorter prompt has the same
        number.
        """
        sized = [
            (size_bytes[sha256] / _BYTES_PER_TOKEN, tokens)
            for sha256, tokens in self.tokens.items()
            if sha256 in size_bytes
        ]
        shortest: dict[int, float] = {}
        for estimate, tokens in sized:
            shortest[tokens] = min(estimate, shortest.get(tokens, estimate))
        return [
            (estimate, tokens)
            for estimate, tokens in sized
            if estimate > _LEAST_TOKENS
            and (2 * tokens < estimate or estimate >= _CLEARLY_LONGER * shortest[tokens])
        ]


class AnswerWarnings:
    """Warnings on a run's answers, updated with each answer.

    `asked` is a result of `asked_models`; `size_bytes` maps prompt hashes to prompt sizes.
    """

    def __init__(self, asked: Mapping[str, str], size_bytes: Mapping[str, int]) -> None:
        self._asked = asked
        self._size_bytes = size_bytes
        self._observed: dict[str, Observed] = {}
        self._reported: set[tuple[str, str]] = set()

    def add(self, answer: Answered) -> None:
        """Count one answer."""
        self._observed.setdefault(answer.model, Observed(self._asked.get(answer.model, ""))).add(answer)

    def new(self, model: str) -> list[str]:
        """Return a model's warnings of kinds that were not returned before.

        The answers are checked only when their number is a power of two; otherwise the list is empty.
        """
        observed = self._observed[model]
        if observed.answers & (observed.answers - 1):
            return []
        found = [each for each in self._of(model) if (model, each[0]) not in self._reported]
        self._reported |= {(model, kind) for kind, _ in found}
        return [text for _, text in found]

    def lines(self) -> list[str]:
        """Return all warnings, each with the model's name in front."""
        return [text for model in self._observed for _, text in self._of(model)]

    def _of(self, model: str) -> list[tuple[str, str]]:
        found = self._observed[model].warnings(self._size_bytes)
        return [(kind, f"{model}: {text}") for kind, text in found]


def warnings_of(
    completions: Iterable[Answered], asked: Mapping[str, str], size_bytes: Mapping[str, int]
) -> list[str]:
    """Return the warnings on answers, one line for each model and kind; see AnswerWarnings."""
    found = AnswerWarnings(asked, size_bytes)
    for answer in completions:
        found.add(answer)
    return found.lines()


def warnings_of_run(directory: Path) -> list[str]:
    """Return the warnings on the problems and answers in a run directory. Raises UsageError as `read_run`."""
    run = read_run(directory / "run.json")
    sizes = {path.stem: path.stat().st_size for path in (directory / "prompts").glob("*.txt")}
    asked = asked_models(run.get("models", []))
    unprepared = _unprepared(directory / "events.jsonl", run.get("problems", {}))
    return [
        *(f"no samples of {line}" for line in grouped_by_text(unprepared.items())),
        *warnings_of(_answers(directory / "completions.jsonl"), asked, sizes),
    ]


class _Event(msgspec.Struct, gc=False):
    kind: str = ""
    problem_id: str | None = None
    detail: str = ""


def _unprepared(events: Path, planned: Container[str]) -> dict[str, str]:
    """Return problems that could not be prepared and are not in run.json, each with the last reason."""
    found, decoder = {}, msgspec.json.Decoder(_Event)
    for _, _, line in scan(events):
        if _UNPREPARED in line:
            with suppress(msgspec.DecodeError):
                event = decoder.decode(line)
                if event.problem_id and event.problem_id not in planned:
                    found[event.problem_id] = event.detail.removeprefix(f"problem {event.problem_id}: ")
    return found


def asked_models(models: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the model name in requests by the name in records.

    Providers that return another name by design (Azure deployments, simulated models) are left out.
    """
    return {
        str(model["name"]): str(model.get("model") or "")
        for model in models
        if model.get("provider") not in _NAMED_OTHERWISE
    }


def is_same_model(asked: str, returned: str) -> bool:
    """Return True unless `returned` is clearly another model than `asked`.

    Providers add dates and versions, leave prefixes out and order the parts of a name differently. A router
    (`openrouter/auto`), an alias (`...-latest`) and a file are never another model.
    """
    asked, returned = asked.lower(), returned.lower()
    is_alias = asked == "auto" or asked.endswith(("/auto", "latest"))
    if asked == returned or is_alias or returned.startswith("/") or ".gguf" in returned:
        return True
    dates, others = ({date.replace("-", "") for date in _DATE.findall(name)} for name in (asked, returned))
    if dates and others and dates.isdisjoint(others):
        return False
    return _parts(asked) == _parts(returned)


def _parts(name: str) -> Counter[str]:
    """Return the parts of a model's name that identify the model: no prefix, date, version or alias."""
    plain = _DATE.sub("", name.rpartition("/")[2])
    return Counter(part for part in re.split(r"[-._ :@]+", plain) if part not in _SAME_MODEL)


def _answers(path: Path) -> Iterator[Answered]:
    """Yield the answers that can be decoded; a damaged line is skipped."""
    for _, _, line in scan(path):
        try:
            yield _ANSWERED.decode(line)
        except (msgspec.MsgspecError, ValueError):
            continue  # the next `astra run` warns about damaged lines
