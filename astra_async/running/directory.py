"""One run directory: its lock, `run.json`, the logs and the index of what is already there.

Invariants:
- One process at a time (an advisory lock on `.lock`).
- A key has at most one line in `results.jsonl`; a line there is final. A turn's line is in
  `turn_results.jsonl`, its answer in `turns.jsonl`: the samples' own files know nothing of turns.
- An output is written before its sample's final line and bears the same `finished_at`. So a line of
  `outputs.jsonl` whose final line is not there, or has another time, is of a grading that was broken off; it
  belongs to no verdict. An output that cannot be written costs no verdict.
- A disk that fails loses no answer that is under way. A full one gives up a reserve of RESERVE_BYTES for
  those. What cannot be written at all is held, tried again with every further line and at the end, and at
  last laid down in another folder (see `rescue`), from where the next opening takes it over. `exhausted`
  tells the runner to ask for nothing more.
- `run.json` only grows: models, formats, problems and samples are added; a part that already has
  lines is never replaced, a difference is refused.
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
from astra_async.running.held import (
    HeldLines,
    lock_directory,
    make_private,
    names_with_content,
    refuse_foreign_problems,
    taken_over,
)
from astra_async.running.recorded import (
    CALLS_NAME,
    TURN_LOG_NAMES,
    CountedTests,
    OnRecord,
    Place,
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
from astra_async.types.records import SCHEMA, check_answer, check_result, check_turn, is_output_of
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

# What a regrade takes over from its parent.
PARENT_FILES = ("completions.jsonl", "turns.jsonl", "calls.jsonl", "prompts", "agent-logs", "labels.csv")
# In the order in which they are synced: whose final line is on disk, their output is.
_LOG_NAMES = (
    *(CALLS_NAME, "completions.jsonl", "outputs.jsonl", "results.jsonl"),
    *(*TURN_LOG_NAMES, "events.jsonl"),
)
# Those whose lines cost money: what an earlier call held of them is taken over.
_PAID_FOR = ("completions.jsonl", "turns.jsonl", CALLS_NAME, "events.jsonl")
# Files that are replaced as a whole while their directory is locked.
_REPLACED = ("run.json", "problems.csv", "expected.json", "live.json", ".results.columns")


class RunDirectory:
    """An open run directory.

    Attributes:
        path: the directory.
        run: the content of run.json.
        answered: where each recorded answer stands in completions.jsonl, a turn's in turns.jsonl.
        graded: where each final line stands in results.jsonl, a turn's in turn_results.jsonl.
        counted: the tests that count in the samples that earlier calls graded.
        earlier: what was spent before this process, by model.
        last_event: what this process recorded last as an event.
        recorded_usd: US dollars by model that this process has recorded, with answers and without.
        warnings: what opening found and repaired or ignored, one line each.
    """

    def __init__(
        self, path: Path, spare: Path | None = None, *, turns: bool = False, agents: bool = False
    ) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.answered: dict[AnswerKey, Place] = {}
        self.graded: dict[AnswerKey, Place] = {}
        self.counted = CountedTests()
        self.recorded_usd: defaultdict[str, float] = defaultdict(float)
        self.earlier: dict[str, Spent] = {}
        self.last_event: Mapping[str, Any] | None = None
        self._has_lost_output = False
        self._outputs_at: dict[AnswerKey, Place] | None = {} if turns else None
        self._is_used = False  # anything was recorded by this process, on disk or held
        self._is_discarded = False
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, lock_directory(path))
            self._found = names_with_content(path)
            if "run.json" in self._found and (tightened := make_private(path)):
                self.warnings.append(tightened)
            self.run = opened_run(path / "run.json")
            self._held = HeldLines(self.run_id, spare, path / ".reserve")
            self.warnings += newer_version(self.run, version("astra_async"))
            has_turns = turns or any((path / name).exists() for name in TURN_LOG_NAMES)
            is_there = dict.fromkeys(TURN_LOG_NAMES, has_turns)
            is_there[CALLS_NAME] = agents or (path / CALLS_NAME).exists()
            self._logs = {
                name: self._open_log(name, opened) for name in _LOG_NAMES if is_there.get(name, True)
            }
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
        """Lock, repair and index the directory (made if absent); `on_result` sees each final line.

        With `turns` further turns can be recorded and outputs read; `on_turn` sees each final line of theirs.
        With `agents` their calls can be recorded.

        `spare` is a folder on another disk for what this one refuses to take; without it, or where that
        fails too, the system's folder for temporary files.

        Raises ConflictError (owned by another process, conflicting lines, another schema) or StorageError.
        """
        directory = cls(path, spare, turns=turns, agents=agents)

        def hear(result: Mapping[str, Any]) -> None:
            directory.counted.add(result)
            on_result(result)

        try:
            remove_drafts(path, _REPLACED)
            refuse_foreign_problems(path)
            directory._held.set_reserve_aside()
            count = partial(count_spent, directory.earlier)
            for name, index, check, on_record in (
                ("completions.jsonl", directory.answered, check_answer, count),
                ("results.jsonl", directory.graded, check_result, hear),
                ("turns.jsonl", directory.answered, check_turn, count),
                ("turn_results.jsonl", directory.graded, check_result, on_turn),
            ):
                directory.warnings += index_log(path / name, index, check, on_record)
            paid_for = {name: log for name, log in directory._logs.items() if name in _PAID_FOR}
            take = partial(
                taken_over, events=paid_for["events.jsonl"], answered=directory.answered, count=count
            )
            directory.warnings += directory._held.found(tuple(paid_for.values()), take)
            if directory._outputs_at is not None:
                directory._outputs_at |= outputs_at(path / "outputs.jsonl")
            count_other_calls(directory.earlier, path)
        except BaseException:
            directory.discard_if_unused()
            directory.close()
            raise
        return directory

    @property
    def run_id(self) -> str:
        """The run's own name, fixed when the directory is made; containers carry it as a label."""
        return str(self.run["run_id"])

    @property
    def logs(self) -> tuple[AppendLog, ...]:
        """The open logs, for the syncing task; agents' calls are synced before each is given out."""
        return tuple(log for name, log in self._logs.items() if name != CALLS_NAME)

    @property
    def calls(self) -> AppendLog:
        """The log of agents' calls, to which `keep` appends."""
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
        """Append a finished answer; it is never asked for again. `feedback` is what a turn answers.

        Raises StorageError when the disk refuses it: it is held then, and not lost.
        """
        record = {"schema": SCHEMA, **key._asdict(), **completion_fields(completion)}
        record |= {"prompt_sha256": prompt_sha256, "started_at": started_at, "finished_at": now_utc()}
        if feedback:
            record |= {"feedback": feedback.text, "feedback_sha256": feedback.sha256}
            record |= {"feedback_version": feedback.version}
        log, line = self._answers_of(key), encode(record)
        if completion.agent is None:  # an agent's calls are recorded one by one
            self.recorded_usd[key.model] += completion.cost_usd or 0.0
        # Invariant: an answer is on disk and in `answered`, or held; the caller never has to keep it.
        self.answered[key] = self.keep(log, line)

    def keep(self, log: AppendLog, line: bytes) -> Place:
        """Append a line that was paid for. Raises StorageError when the disk refuses it: then it is held."""
        self._is_used = True
        return self._held.keep(log, line)

    @property
    def exhausted(self) -> StorageError | None:
        """Why the disk takes no more than what is under way; None while it is well."""
        return self._held.exhausted

    def give_up(self, error: StorageError) -> None:
        """From now on the disk takes no more than what is under way."""
        self._held.exhausted = self._held.exhausted or error

    def completion(self, key: AnswerKey) -> tuple[Completion, str]:
        """A recorded answer, and when its call was begun (UTC, ISO 8601)."""
        record = self._answers_of(key).read_at(*self.answered[key])
        return completion_from(record), str(record.get("started_at", ""))

    def feedback(self, key: AnswerKey) -> str:
        """What a recorded turn answers."""
        return str(self._answers_of(key).read_at(*self.answered[key])["feedback"])

    def record_result(self, result: Result) -> None:
        """Append a sample's final line."""
        # Invariant: a key in `graded` has exactly one line on disk.
        if result.key in self.graded:
            raise ConflictError(f"{self.path}/results.jsonl: {result.key} already has its final line")
        line = encode(result_fields(result))
        self.graded[result.key] = self._results_of(result.key).append_line(line)

    def record_output(self, result: Result, evidence: Evidence) -> None:
        """Append what a sample's tests printed; `result` is its final line, which is recorded after this.

        What cannot be written is given up: one event says so for all that this process loses.
        """
        record = {"schema": SCHEMA, **result.key._asdict(), "output": evidence.output}
        record |= {"output_bytes": evidence.output_bytes, "finished_at": result.finished_at}
        record |= {"stderr_lines": evidence.stderr_lines} if evidence.stderr_lines else {}
        try:
            place = self._logs["outputs.jsonl"].append_line(encode(record))
            if self._outputs_at is not None:
                self._outputs_at[result.key] = place
        except Exception as error:  # noqa: BLE001 - the boundary: whatever it is, it is worth no verdict
            if not self._has_lost_output:
                self._has_lost_output = True
                self.record_event("output_lost", result.key, detail=str(error))

    def result(self, key: AnswerKey) -> dict[str, Any]:
        """A sample's final line."""
        return self._results_of(key).read_at(*self.graded[key])

    def output(self, result: Mapping[str, Any], key: AnswerKey) -> tuple[str, Sequence[Sequence[int]]]:
        """What the tests of this final line printed, and which of its lines came by standard error.

        Only the end, without these, where no output was kept of them.
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
        """Append why something waited, was repeated or is missing; a full disk sets `exhausted`."""
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
            self.give_up(error)  # an event is not worth an answer under way
            if details.get("cost_usd"):
                self._held.hold(self._logs["events.jsonl"], line)  # but money is

    def extend(self, parts: Parts, description: Mapping[str, Any], samples: int, *, turns: int = 0) -> None:
        """Add parts to run.json, or refuse a part that differs and already has lines (ConflictError).

        Neither samples nor turns grow fewer. `description` holds run.json's other fields (models, problems,
        versions ...), merged by name.
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
        """Write run.json, as a whole or not at all; after a power loss it and the logs are there."""
        content = orjson.dumps(self.run, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomically(self.path / "run.json", content, mode=file_mode(self.path))
        sync_entries(self.path)

    def close(self) -> None:
        """Sync and close the logs and release the lock; what cannot be written is laid down elsewhere.

        Raises StorageError, also to say where that is.
        """
        if not self._is_discarded:
            self._held.give_up_reserve()
        self._held.rescue_and(self._open.close)

    def rescue(self) -> None:
        """The last try to write what the disk refused: here, else elsewhere, which StorageError says."""
        self._held.rescue()

    def discard_if_unused(self) -> None:
        """Remove what opening made, if this run was never begun: a refused call leaves nothing behind.

        What was there before stays, whoever made it; a directory that held a run.json stays as it is.
        """
        if self._is_used or self.answered or self.graded or self.earlier or "run.json" in self._found:
            return
        self._is_discarded = True
        for name in {".reserve", *_REPLACED, *_LOG_NAMES} - self._found:
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        if "prompts" not in self._found:
            shutil.rmtree(self.path / "prompts", ignore_errors=True)
        # Invariant: the lock goes last. From then on the directory may be another process's.
        with contextlib.suppress(OSError):
            (self.path / ".lock").unlink(missing_ok=True)
            self.path.rmdir()  # only if nothing else is in it

    def _open_log(self, name: str, opened: contextlib.ExitStack) -> AppendLog:
        log = AppendLog.open(self.path / name)
        opened.callback(log.close)
        if log.cut_bytes:
            self.warnings.append(f"{name}: a torn last line of {log.cut_bytes} bytes was cut off")
        return log


def opened_run(path: Path) -> dict[str, Any]:
    """The content of a run.json, or a new run's beginning if it is absent. Raises ConflictError."""
    try:
        return read_run(path)
    except FileNotFoundError:
        return {"schema": SCHEMA, "run_id": uuid4().hex[:12], "created_at": now_utc(), "parent": None}
