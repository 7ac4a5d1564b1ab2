"""Failed samples put into the paper's classes of errors by a judge.

Every judgement that was paid for is a line of judgements.jsonl before anything else happens, or is held
where the disk refuses it (see `spool`); labels.csv is made from those lines, where people have said nothing.
The same call again judges what has no line yet.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from astra_async.asking.judge_prompt import JUDGE_PROMPT_VERSION, Exhibits, judge_prompt, read_judgement
from astra_async.errors import PoolUnusable, ProviderError, StorageError, UsageError
from astra_async.files import file_mode, read_at, write_atomically
from astra_async.log import AppendLog, encode, keep_synced, now_utc
from astra_async.report.labels import JUDGE, JUDGEMENTS, judgements, read_judged, with_judgements
from astra_async.running.model_pools import (
    check_models,
    open_pools,
    resolved_models,
    simulated_models,
    simulated_names,
    unrecorded_usd,
)
from astra_async.running.problem_set import cache_root
from astra_async.running.recorded import Place, readable_records, stored_prompt, valid_records
from astra_async.running.spool import LineSpool, append
from astra_async.types import ModelRequest, SampleKey
from astra_async.types.records import check_result, is_output_of, read_record
from astra_async.types.run_record import read_run, require_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from astra_async.asking.throttle import PoolEvent
    from astra_async.config import RunConfig
    from astra_async.running.model_pools import AnyPool
    from astra_async.types import AnswerKey, Completion, ModelSettings

Say = Callable[[str], None]
# What a judgement repeats of the completion.
_COMPLETION_FIELDS = (
    *("text", "finish_reason", "usage", "cost_usd", "cost_estimated", "attempts", "latency_s"),
    "returned_model",
)
_MAX_TOKENS = 8_192  # a class, a few lines and a sentence; the rest is for models that think first


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSample:
    """A sample to judge, and where its lines are (offset, length)."""

    key: AnswerKey
    result: Place
    answer: Place | None
    outputs: tuple[Place, ...] = ()


@dataclass(slots=True, kw_only=True)
class JudgingTally:
    """`planned` failed samples, of which `judged` have a line; `labelled` of those got a class."""

    planned: int
    judged: int
    labelled: int
    troubles: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = None


def failed_samples(directory: Path) -> list[FailedSample]:
    """The samples whose code failed tests, in the order of their keys.

    Answers without a solution are left out, because there is no code to judge.
    """
    results: dict[AnswerKey, Place] = {}
    for key, place, record in valid_records(directory / "results.jsonl", check_result):
        results.pop(key, None)  # the last line of a key counts
        if record["status"] == "scored" and record["failure"] is not None:
            results[key] = place
    answers = {
        key: place for key, place, _ in valid_records(directory / "completions.jsonl") if key in results
    }
    outputs: dict[AnswerKey, tuple[Place, ...]] = {}
    for key, place, record in valid_records(directory / "outputs.jsonl"):
        if key in results and not record.get("turn"):
            outputs[key] = (*outputs.get(key, ()), place)
    return [
        FailedSample(key=key, result=results[key], answer=answers.get(key), outputs=outputs.get(key, ()))
        for key in sorted(results)
    ]


def draw_samples(samples: Sequence[FailedSample], count: int, seed: str) -> list[FailedSample]:
    """A random draw to be labelled by hand; the same for the same run and count."""
    generator = random.Random(seed)  # noqa: S311 - a draw, no secret
    return sorted(generator.sample(list(samples), min(count, len(samples))), key=lambda each: each.key)


@dataclass(eq=False)
class Judging:
    """Asks a judge for all failed samples of a run directory that it has not judged yet.

    Attributes:
        tally: how far it is.
        refused: why the disk takes no more: calls under way come to their end, nothing more is asked.
        recorded_usd: US dollars that this process has recorded, with judgements and without.
    """

    directory: Path
    settings: ModelSettings
    log: AppendLog
    spool: LineSpool
    _: KW_ONLY
    is_simulated: bool

    def __post_init__(self) -> None:
        self.samples = failed_samples(self.directory)
        self.refused: StorageError | None = None
        self.recorded_usd = 0.0
        self._stop: Callable[[], None] = lambda: None
        current, keys = (self.settings.name, JUDGE_PROMPT_VERSION), {each.key for each in self.samples}
        done = {
            key: record["label"]
            for record in judgements(self.directory)
            if (record["judge"], record.get("prompt_version")) == current
            and (key := SampleKey(*map(record.__getitem__, SampleKey._fields))) in keys
        }
        self._waiting = iter([each for each in self.samples if each.key not in done])
        labelled = sum(label is not None for label in done.values())
        self.tally = JudgingTally(planned=len(self.samples), judged=len(done), labelled=labelled)

    async def run(self, pool: AnyPool, say: Say) -> None:
        """Judge until all is judged, the pool ends or is stopped. Raises StorageError."""
        self._stop = pool.stop
        async with asyncio.TaskGroup() as background:
            synced = background.create_task(keep_synced((self.log,), self._cannot_record))
            async with asyncio.TaskGroup() as tasks:
                for _ in range(min(self.settings.max_in_flight, len(self.samples))):
                    tasks.create_task(self._work(pool, say))
            synced.cancel()
        if self.refused:
            raise self.refused

    async def _work(self, pool: AnyPool, say: Say) -> None:
        for sample in self._waiting:
            evidence = await asyncio.to_thread(_evidence, self.directory, sample)
            prompt, key = judge_prompt(evidence), sample.key
            sha256 = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
            header = (
                f"{sha256[:16]}/{key.format}/{key.problem_id}/{key.sample}" if self.is_simulated else None
            )
            request = ModelRequest(key=key, prompt=prompt, prompt_sha256=sha256, sample_header=header)
            try:
                completion = await pool.call(request)
            except ProviderError as error:
                self.tally.troubles[str(error)] += 1
                if isinstance(error, PoolUnusable):
                    return
                if error.cost_usd:
                    self.note_spent(error.cost_usd)
                continue
            self._record(request, completion, evidence)
            if self.tally.judged % 100 == 0:
                say(f"{self.tally.judged:,} of {self.tally.planned:,} failed samples are judged")

    def _record(self, request: ModelRequest, completion: Completion, evidence: Exhibits) -> None:
        judgement = read_judgement(completion.text, evidence)
        self._append(
            {
                "schema": 1,
                **request.key._asdict(),
                "judge": self.settings.name,
                "prompt_version": JUDGE_PROMPT_VERSION,
                **asdict(judgement),
                **{name: getattr(completion, name) for name in _COMPLETION_FIELDS},
                "prompt_sha256": request.prompt_sha256,
                "at": now_utc(),
            }
        )
        self.tally.judged += 1
        self.tally.labelled += judgement.label is not None

    def note_spent(self, cost_usd: float) -> None:
        """What calls cost that ended without a judgement: the budget of the next call knows it."""
        self._append({"schema": 1, "spent_by": self.settings.name, "cost_usd": cost_usd, "at": now_utc()})

    def _append(self, record: dict[str, Any]) -> None:
        """Invariant: what was paid for is in the log, or held."""
        self.recorded_usd += record["cost_usd"] or 0.0
        try:
            self.spool.keep(self.log, encode(record))
        except StorageError as error:
            self._cannot_record(error)

    def _cannot_record(self, error: StorageError) -> None:
        self.refused = self.refused or error
        self._stop()


@asynccontextmanager
async def open_judging(config: RunConfig, say: Say) -> AsyncIterator[tuple[Judging, AnyPool]]:
    """The judge of `config.models` before the run directory `config.out`; labels.csv is written on closing.

    Raises UsageError (no run directory, settings, keys, another call at work there) or StorageError.
    """
    check_models(config)
    with _judging_lock(config.out):
        log, spool = await asyncio.to_thread(_open_log, config.out, say)
        try:
            async with AsyncExitStack() as stack:
                config = await stack.enter_async_context(simulated_models(config))
                models = (replace(each, max_tokens=each.max_tokens or _MAX_TOKENS) for each in config.models)
                config = resolved_models(replace(config, models=tuple(models)))
                name = config.models[0].name
                is_simulated = name in simulated_names(config)
                judging = Judging(config.out, config.models[0], log, spool, is_simulated=is_simulated)

                def tell(event: PoolEvent) -> None:
                    if event.kind in ("paused", "parked"):
                        say(f"{event.model}: {event.kind}, {event.detail}")

                costs = [record.get("cost_usd") for _, record in readable_records(config.out / JUDGEMENTS)]
                spent_usd = sum(cost for cost in costs if isinstance(cost, int | float))
                pools = await open_pools(config, stack, say, spent_usd=spent_usd, on_event=tell)
                try:
                    yield judging, pools[name]
                finally:
                    _record_unattributed_cost(judging, pools[name])
        finally:
            spool.rescue_then(log.close)
            _write_labels(config.out, config.models[0].name)


def _open_log(directory: Path, say: Say) -> tuple[AppendLog, LineSpool]:
    """judgements.jsonl, and the lines that it refused."""
    spool = LineSpool(str(read_run(directory / "run.json")["run_id"]), cache_root() / "held")
    log = AppendLog.open(directory / JUDGEMENTS)
    for line in spool.recover((log,), append):
        say(line)
    return log, spool


def _record_unattributed_cost(judging: Judging, pool: AnyPool) -> None:
    """Cancelled calls may have cost something: what the pool has paid and no line holds is noted."""
    judging.tally.cost_usd = pool.state.cost_usd
    if more_usd := unrecorded_usd(pool, judging.recorded_usd):
        judging.note_spent(more_usd)


def _write_labels(directory: Path, judge: str) -> None:
    path = directory / "labels.csv"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no UTF-8; its labels were left as they are") from error
    mine = read_judged(directory).judges.get(judge, {})
    judged = {key: label for key, label in mine.items() if label is not None}
    if judged:
        new = with_judgements(text, judged, JUDGE + judge)
        write_atomically(path, new.encode(errors="replace"), mode=file_mode(directory))


@contextmanager
def _judging_lock(directory: Path) -> Iterator[None]:
    """One judging at a time in a directory; a run may go on in it."""
    require_run(directory)
    with (directory / ".judging.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another `astra label` is at work in {directory}; wait for it") from error
        yield


def _evidence(directory: Path, sample: FailedSample) -> Exhibits:
    """What is recorded of a sample; blocking."""
    result = _read(directory / "results.jsonl", sample.result)
    answer = _read(directory / "completions.jsonl", sample.answer) if sample.answer else {}
    outputs = (_read(directory / "outputs.jsonl", place) for place in sample.outputs)
    kept = next((each["output"] for each in outputs if is_output_of(each, result)), None)
    return Exhibits(
        task=stored_prompt(directory, result.get("prompt_sha256") or "") or "(not recorded)",
        answer=answer.get("text") or "(not recorded)",
        tests="\n".join([f"outcome: {result['failure']}", *map(_test, result.get("tests", ()))]),
        output=kept if kept is not None else result.get("output_tail") or "",
    )


def _test(test: dict[str, Any]) -> str:
    message = f"\n    {test['message']}" if test.get("message") else ""
    return f"{test['outcome']}: {test['name']}{message}"


def _read(path: Path, place: Place) -> dict[str, Any]:
    return read_record(read_at(path, *place))
