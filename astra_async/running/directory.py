"""Run directory: the lock, `run.json`, the logs, and an index of the recorded lines.

Invariants:
- One process at a time uses a run directory (advisory lock on `.lock`).
- A key has at most one line in `results.jsonl`, and this line is final. Follow-up turns have separate files:
  `turns.jsonl` for answers and `turn_results.jsonl` for final lines.
- An output is written before its sample's final line and has the same `finished_at`. A line of
  `outputs.jsonl` without such a final line is from an interrupted grading and is ignored. A verdict is
  recorded even if its output cannot be written.
- A disk error does not lose paid answers. If the disk is full, a reserve of RESERVE_BYTES is freed. A line
  that still cannot be written is spooled: kept in memory, retried with every further line, and finally
  written to another folder (see `rescue`), from which the next opening recovers it. If `exhausted` is set,
  the runner sends no more requests.
- `run.json` only grows: models, formats, problems and samples are added. A setting that already has results
  cannot be changed (ConflictError).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import defaultdict
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

from astra_async.errors import ConflictError, StorageError
from astra_async.files import file_mode, remove_drafts, write_atomically
from astra_async.fingerprint import merge_description, merge_parts
from astra_async.log import AppendLog, encode, now_utc, sync_entries
from astra_async.redaction import mask
from astra_async.running.recorded import (
    ANSWER_LOGS,
    CALLS_NAME,
    TURN_LOG_NAMES,
    ByteRange,
    CountedTests,
    OnRecord,
    Spent,
    completion_fields,
    completion_from,
    count_other_calls,
    count_spent,
    ignore,
    index_log,
    outputs_at,
    result_fields,
)
from astra_async.running.spool import (
    LineSpool,
    lock_directory,
    make_private,
    names_with_content,
    recover_line,
    refuse_foreign_problems,
)
from astra_async.types.records import SCHEMA, check_result, is_output_of, read_key
from astra_async.types.run_record import newer_version, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from astra_async.asking.feedback import Feedback
    from astra_async.fingerprint import PartKind, Parts
    from astra_async.running.evidence import Evidence
    from astra_async.running.trouble import RecordedKind
    from astra_async.types import AnswerKey, Completion, Result

# Logs of paid lines: lines that an earlier invocation spooled are recovered into these logs.
_PAID_FOR = (*ANSWER_LOGS, CALLS_NAME, "events.jsonl")
# In sync order: a final line on disk implies that its answer and its output are on disk.
_LOG_NAMES = (*_PAID_FOR, "outputs.jsonl", "results.jsonl", "turn_results.jsonl")
# Files that are rewritten atomically while the directory is locked.
_REPLACED = ("run.json", "problems.csv", "expected.json", "live.json", ".results.columns")


class RunDirectory:
    """An open run directory.

    Attributes:
        path: the directory.
        run: the content of run.json.
        answered: byte range of each recorded answer in completions.jsonl; of follow-up turns in turns.jsonl.
        graded: byte range of each final line in results.jsonl; of follow-up turns in turn_results.jsonl.
        lossy: samples of agents whose answers lack files (`AgentWork.lost`).
        counted: the expected tests used by the samples that earlier invocations graded.
        earlier: tokens and cost of earlier invocations, by model.
        last_event: the last event that this process recorded.
        recorded_usd: cost in US dollars by model that this process has recorded, including failed requests.
        warnings: problems that were repaired or ignored during opening, one line each.
        spool: paid lines that could not be written; see `LineSpool.exhausted` before new work starts.
    """

    def __init__(self, path: Path, spare: Path | None, *, turns: bool, agents: bool) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.answered: dict[AnswerKey, ByteRange] = {}
        self.graded: dict[AnswerKey, ByteRange] = {}
        self.lossy: list[AnswerKey] = []
        self.counted = CountedTests()
        self.recorded_usd: defaultdict[str, float] = defaultdict(float)
        self.earlier: dict[str, Spent] = {}
        self.last_event: Mapping[str, Any] | None = None
        self._has_lost_output = False
        self._outputs_at: dict[AnswerKey, ByteRange] | None = None
        self._is_used = False  # this process has recorded or spooled a line
        self._logs: dict[str, AppendLog] = {}
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, lock_directory(path))
            self._found = names_with_content(path)
            if "run.json" in self._found and (tightened := make_private(path)):
                self.warnings.append(tightened)
            self.run = opened_run(path / "run.json")
            self.spool = LineSpool(self.run_id, spare, path / ".reserve")
            self.warnings += newer_version(self.run, version("astra_async"))
            is_needed = {**dict.fromkeys(TURN_LOG_NAMES, turns), CALLS_NAME: agents}
            names = [name for name in _LOG_NAMES if is_needed.get(name, True) or (path / name).exists()]
            for name in names:
                log = self._logs[name] = AppendLog.open(path / name)
                opened.callback(log.close)
                if log.cut_bytes:
                    self.warnings.append(f"{name}: removed an incomplete last line of {log.cut_bytes} bytes")
            self._open = opened.pop_all()

    @classmethod
    def open(
        cls,
        path: Path,
        on_result: OnRecord = ignore,
        *,
        spare: Path | None = None,
        turns: bool = False,
        agents: bool = False,
        on_turn: OnRecord = ignore,
    ) -> Self:
        """Lock, repair and index the directory, which is created if it does not exist.

        `on_result` is called with each recorded final line. With `turns`, follow-up turns can be recorded
        and outputs read; `on_turn` is called with each final line of a turn. With `agents`, the requests of
        agents can be recorded. `spare` is a folder on another disk for paid lines that cannot be written
        here. If `spare` is None or fails, the folder for temporary files is used.

        Raises ConflictError (used by another process, conflicting lines, another schema) or StorageError.
        """
        directory = cls(path, spare, turns=turns, agents=agents)

        def on_final_line(result: Mapping[str, Any]) -> None:
            directory.counted.add(result)
            if (result.get("agent") or {}).get("lost"):
                directory.lossy.append(read_key(result))
            on_result(result)

        try:
            remove_drafts(path, _REPLACED)
            refuse_foreign_problems(path)
            directory.spool.allocate_reserve()
            count = partial(count_spent, directory.earlier)
            for name, check in ANSWER_LOGS.items():
                directory.warnings += index_log(path / name, directory.answered, check, count)
            for name, on_record in (("results.jsonl", on_final_line), ("turn_results.jsonl", on_turn)):
                directory.warnings += index_log(path / name, directory.graded, check_result, on_record)
            logs, events = directory._logs, directory._logs["events.jsonl"]
            take = partial(recover_line, events=events, answered=directory.answered, count=count)
            paid_for = [logs[name] for name in _PAID_FOR if name in logs]
            directory.warnings += directory.spool.recover(paid_for, take)
            directory._outputs_at = outputs_at(path / "outputs.jsonl") if turns else None
            count_other_calls(directory.earlier, path)
        except BaseException:
            directory.discard_if_unused()
            directory.close()
            raise
        return directory

    @property
    def run_id(self) -> str:
        """ID of the run, generated when the directory is created; also a label of the run's containers."""
        return str(self.run["run_id"])

    @property
    def logs(self) -> tuple[AppendLog, ...]:
        """Logs to sync regularly; calls.jsonl is synced before each response reaches its agent."""
        return tuple(log for name, log in self._logs.items() if name != CALLS_NAME)

    @property
    def calls(self) -> AppendLog:
        """Log of agents' model requests (calls.jsonl); append to it with `keep`."""
        return self._logs[CALLS_NAME]

    def record_completion(
        self,
        key: AnswerKey,
        completion: Completion,
        prompt_sha256: str,
        started_at: str = "",
        *,
        feedback: Feedback | None = None,
    ) -> None:
        """Append an answer; a recorded answer is never requested again.

        `feedback` is the feedback that a follow-up turn answers. Raises StorageError if the line cannot be
        written; it is spooled then and not lost.
        """
        record = {"schema": SCHEMA, **key._asdict(), **completion_fields(completion)}
        record |= {"prompt_sha256": prompt_sha256, "started_at": started_at, "finished_at": now_utc()}
        if feedback:
            record |= {"feedback": feedback.text, "feedback_sha256": feedback.sha256}
            record |= {"feedback_version": feedback.version}
        log, line = self._answers_of(key), encode(record)
        if completion.agent is None:  # an agent's requests are recorded one by one
            self.recorded_usd[key.model] += completion.cost_usd or 0.0
        # Invariant: an answer is on disk and in `answered`, or spooled; the caller need not keep it.
        self.answered[key] = self.keep(log, line)

    def keep(self, log: AppendLog, line: bytes) -> ByteRange:
        """Append a paid line. Raises StorageError if it cannot be written; the line is spooled then."""
        self._is_used = True
        return self.spool.keep(log, line)

    def completion(self, key: AnswerKey) -> tuple[Completion, str]:
        """Return a recorded answer and the start time of its request (UTC, ISO 8601)."""
        record = self._answers_of(key).read_at(*self.answered[key])
        return completion_from(record), str(record.get("started_at", ""))

    def feedback(self, key: AnswerKey) -> str:
        """Return the feedback text that a recorded follow-up turn answers."""
        return str(self._answers_of(key).read_at(*self.answered[key])["feedback"])

    def record_result(self, result: Result) -> None:
        """Append a final line. Raises ConflictError if the key already has a final line."""
        # Invariant: a key in `graded` has exactly one line on disk.
        if result.key in self.graded:
            raise ConflictError(f"{self.path}/results.jsonl: {result.key} already has a final line")
        line = encode(result_fields(result))
        self.graded[result.key] = self._results_of(result.key).append_line(line)
        if result.agent and result.agent.lost:
            self.lossy.append(result.key)

    def record_output(self, result: Result, evidence: Evidence) -> None:
        """Append the output of a sample's tests; `result` is its final line, which is recorded afterwards.

        If the output cannot be written, it is dropped. The first loss in a process is recorded as an event.
        """
        record = {"schema": SCHEMA, **result.key._asdict(), "output": evidence.output}
        record |= {"output_bytes": evidence.output_bytes, "finished_at": result.finished_at}
        record |= {"stderr_lines": evidence.stderr_lines} if evidence.stderr_lines else {}
        try:
            place = self._logs["outputs.jsonl"].append_line(encode(record))
            if self._outputs_at is not None:
                self._outputs_at[result.key] = place
        except Exception as error:  # noqa: BLE001 - a lost output must not cost the verdict
            if not self._has_lost_output:
                self._has_lost_output = True
                self.record_event("output_lost", result.key, detail=str(error))

    def result(self, key: AnswerKey) -> dict[str, Any]:
        """Return the final line of a key."""
        return self._results_of(key).read_at(*self.graded[key])

    def output(self, result: Mapping[str, Any], key: AnswerKey) -> tuple[str, Sequence[Sequence[int]]]:
        """Return the test output of a final line and the line ranges that came from standard error.

        If the output was not recorded, return its tail from the final line, and no ranges.
        """
        place = (self._outputs_at or {}).get(key)
        record = self._logs["outputs.jsonl"].read_at(*place) if place else {}
        if is_output_of(record, result):
            return record["output"], record.get("stderr_lines") or ()
        return str(result.get("output_tail", "")), ()

    def _answers_of(self, key: AnswerKey) -> AppendLog:
        return self._logs["turns.jsonl" if key.turn else "completions.jsonl"]

    def _results_of(self, key: AnswerKey) -> AppendLog:
        return self._logs["turn_results.jsonl" if key.turn else "results.jsonl"]

    def record_event(self, kind: RecordedKind, key: AnswerKey | None = None, **details: Any) -> None:
        """Append an event, such as a wait, a retry or a failure; a storage error sets `exhausted`."""
        self._is_used = True
        named = key._asdict() if key else {}
        details = {name: mask(value) if isinstance(value, str) else value for name, value in details.items()}
        self.last_event = {"at": now_utc(), "kind": kind, **named, **details}
        line = encode(self.last_event)
        if key:
            self.recorded_usd[key.model] += details.get("cost_usd") or 0.0
        try:
            self._logs["events.jsonl"].append_line(line)
        except StorageError as error:
            self.spool.give_up(error)  # requests in flight may still finish
            if details.get("cost_usd"):
                self.spool.hold(self._logs["events.jsonl"], line)  # the cost must not be lost

    def extend(self, parts: Parts, description: Mapping[str, Any], samples: int, *, turns: int = 0) -> None:
        """Add parts to run.json. Raises ConflictError for a changed part that already has results.

        The numbers of samples and turns never decrease. `description` holds the other fields of run.json
        (models, problems, versions ...), which are merged by name.
        """
        asked = self.answered.keys() | self.graded.keys()
        used: dict[PartKind, set[str]] = {
            "models": {key.model for key in asked},
            "formats": {key.format for key in asked},
            "problems": {key.problem_id for key in asked},
            "grading": {key.problem_id for key in self.graded},
            "feedback": {key.problem_id for key in asked if key.turn},
        }
        merge_parts(self.run, parts, used, self.path)
        self.run["samples"] = max(samples, self.run.get("samples", 0))
        if turns:
            self.run["turns"] = max(turns, self.run.get("turns", 0))
        self.run["formats"] = [*dict.fromkeys([*self.run.get("formats", []), *parts.formats])]
        merge_description(self.run, description)
        self.save()

    def save(self) -> None:
        """Write run.json atomically, and sync the directory so that its files survive a power loss."""
        content = orjson.dumps(self.run, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomically(self.path / "run.json", content, mode=file_mode(self.path))
        sync_entries(self.path)

    def close(self) -> None:
        """Sync and close the logs and release the lock; write spooled lines to another folder if necessary.

        Raises StorageError, which names the files with the spooled lines.
        """
        self.spool.free_reserve()
        self.spool.rescue_then(self._open.close)

    def discard_if_unused(self) -> None:
        """Remove the files that opening created, if nothing was recorded.

        Files that existed before are kept. A directory that already had a run.json is not changed.
        """
        if self._is_used or self.answered or self.graded or self.earlier or "run.json" in self._found:
            return
        self.spool.reserve = None  # the file may belong to another process afterwards
        for name in {".reserve", *_REPLACED, *_LOG_NAMES} - self._found:
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        if "prompts" not in self._found:
            shutil.rmtree(self.path / "prompts", ignore_errors=True)
        # Invariant: the lock is removed last; after that, another process may own the directory.
        with contextlib.suppress(OSError):
            (self.path / ".lock").unlink(missing_ok=True)
            self.path.rmdir()  # only if nothing else is in it


def opened_run(path: Path) -> dict[str, Any]:
    """Read run.json, or return the initial content if the file does not exist. Raises ConflictError."""
    try:
        return read_run(path)
    except FileNotFoundError:
        return {"schema": SCHEMA, "run_id": uuid4().hex[:12], "created_at": now_utc(), "parent": None}
