"""Classification of failed samples by a judge model, into the error classes of the paper.

Every judgement is appended to judgements.jsonl before it is used, or spooled if the disk fails (see `spool`).
The judgements are then written to labels.csv, except for samples that have a label by hand. Repeating the
command judges only the samples without a judgement, and with `--again` also samples with a rejected one.
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
from astra_async.running.recorded import ByteRange, readable_records, stored_prompt, valid_records
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
# Fields of the completion that are copied into its judgement.
_COMPLETION_FIELDS = (
    *("text", "finish_reason", "usage", "cost_usd", "cost_estimated", "attempts", "latency_s"),
    "returned_model",
)
_MAX_TOKENS = 8_192  # short answers, plus an allowance for reasoning models


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSample:
    """A failed sample, with the byte ranges (offset, length) of its recorded lines."""

    key: AnswerKey
    result: ByteRange
    answer: ByteRange | None
    outputs: tuple[ByteRange, ...] = ()


@dataclass(slots=True, kw_only=True)
class JudgingTally:
    """Progress of judging.

    Attributes:
        planned: number of failed samples.
        judged: number of failed samples with a judgement.
        rejected: by sample without a label, the reason why the judge's reply was rejected.
        troubles: error messages of failed requests, with their number.
        cost_usd: cost of this invocation in US dollars, None until it ends or if no price is known.
    """

    planned: int
    judged: int
    rejected: dict[AnswerKey, str]
    troubles: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = None


def failed_samples(directory: Path) -> list[FailedSample]:
    """Return the samples whose code failed tests, sorted by key.

    Answers without a solution are excluded, because there is no code to judge.
    """
    results: dict[AnswerKey, ByteRange] = {}
    for key, place, record in valid_records(directory / "results.jsonl", check_result):
        results.pop(key, None)  # the last line of a key counts
        if record["status"] == "scored" and record["failure"] is not None:
            results[key] = place
    answers = {
        key: place for key, place, _ in valid_records(directory / "completions.jsonl") if key in results
    }
    outputs: dict[AnswerKey, tuple[ByteRange, ...]] = {}
    for key, place, record in valid_records(directory / "outputs.jsonl"):
        if key in results and not record.get("turn"):
            outputs[key] = (*outputs.get(key, ()), place)
    return [
        FailedSample(key=key, result=results[key], answer=answers.get(key), outputs=outputs.get(key, ()))
        for key in sorted(results)
    ]


def draw_samples(samples: Sequence[FailedSample], count: int, seed: str) -> list[FailedSample]:
    """Draw random samples to label by hand; the same seed and count give the same samples."""
    generator = random.Random(seed)  # noqa: S311 - not used for security
    return sorted(generator.sample(list(samples), min(count, len(samples))), key=lambda each: each.key)


@dataclass(eq=False)
class Judging:
    """Judging of all failed samples of a run directory that the judge has not judged yet.

    Attributes:
        again: also judge the samples whose last judgement was rejected.
        tally: progress.
        refused: the storage error that stopped new requests, or None.
        recorded_usd: cost in US dollars that this process has recorded, including failed requests.
    """

    directory: Path
    settings: ModelSettings
    log: AppendLog
    spool: LineSpool
    _: KW_ONLY
    is_simulated: bool
    again: bool = False

    def __post_init__(self) -> None:
        self.samples = failed_samples(self.directory)
        self.refused: StorageError | None = None
        self.recorded_usd = 0.0
        self._stop: Callable[[], None] = lambda: None
        current, keys = (self.settings.name, JUDGE_PROMPT_VERSION), {each.key for each in self.samples}
        done = {
            key: None if record["label"] else record.get("rejected", "unreadable")
            for record in judgements(self.directory)
            if (record["judge"], record.get("prompt_version")) == current
            and (key := SampleKey(*map(record.__getitem__, SampleKey._fields))) in keys
        }
        if self.again:
            done = {key: rejected for key, rejected in done.items() if rejected is None}
        self._waiting = iter([each for each in self.samples if each.key not in done])
        rejected: dict[AnswerKey, str] = {key: why for key, why in done.items() if why is not None}
        self.tally = JudgingTally(planned=len(self.samples), judged=len(done), rejected=rejected)

    async def run(self, pool: AnyPool, say: Say) -> None:
        """Judge all waiting samples, or until the pool fails or is stopped. Raises StorageError."""
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
                say(f"{self.tally.judged:,} of {self.tally.planned:,} failed samples judged")

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
        if judgement.rejected:
            self.tally.rejected[request.key] = judgement.rejected

    def note_spent(self, cost_usd: float) -> None:
        """Record the cost of requests without a judgement, for the budget of later invocations."""
        self._append({"schema": 1, "spent_by": self.settings.name, "cost_usd": cost_usd, "at": now_utc()})

    def _append(self, record: dict[str, Any]) -> None:
        """Append a paid record. Invariant: the record is in the log or in the spool."""
        self.recorded_usd += record["cost_usd"] or 0.0
        try:
            self.spool.keep(self.log, encode(record))
        except StorageError as error:
            self._cannot_record(error)

    def _cannot_record(self, error: StorageError) -> None:
        self.refused = self.refused or error
        self._stop()


@asynccontextmanager
async def open_judging(
    config: RunConfig, say: Say, *, again: bool = False
) -> AsyncIterator[tuple[Judging, AnyPool]]:
    """Open the judge model `config.models[0]` for the run directory `config.out`.

    With `again`, rejected judgements are requested again; the last judgement of a sample counts. labels.csv
    is written when the context is closed. Raises StorageError or UsageError (no run directory, invalid
    settings, missing API key, or another judging process in the directory).
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
                judging = Judging(
                    config.out, config.models[0], log, spool, is_simulated=is_simulated, again=again
                )

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
    """Open judgements.jsonl and recover the lines that an earlier invocation spooled."""
    spool = LineSpool(str(read_run(directory / "run.json")["run_id"]), cache_root() / "held")
    log = AppendLog.open(directory / JUDGEMENTS)
    for line in spool.recover((log,), append):
        say(line)
    return log, spool


def _record_unattributed_cost(judging: Judging, pool: AnyPool) -> None:
    """Record the cost of cancelled requests, which no other line contains."""
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
        raise UsageError(f"{path}: not valid UTF-8; the labels in it were not changed") from error
    mine = read_judged(directory).judges.get(judge, {})
    judged = {key: label for key, label in mine.items() if label is not None}
    if judged:
        new = with_judgements(text, judged, JUDGE + judge)
        write_atomically(path, new.encode(errors="replace"), mode=file_mode(directory))


@contextmanager
def _judging_lock(directory: Path) -> Iterator[None]:
    """Lock a directory against other judging processes; a run may use the directory at the same time.

    Raises UsageError if another judging process holds the lock.
    """
    require_run(directory)
    with (directory / ".judging.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another `astra label` is running in {directory}; wait for it") from error
        yield


def _evidence(directory: Path, sample: FailedSample) -> Exhibits:
    """Read the task, answer, test results and output of a sample from disk; blocking."""
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


def _read(path: Path, place: ByteRange) -> dict[str, Any]:
    return read_record(read_at(path, *place))
