"""batches.jsonl: what was sent in batches, on disk before it is sent.

    intent      the custom_ids of a chunk and whose requests they are; written before the batch is created
    submitted   the batch's id, once the provider has answered
    state       the provider's word for how it stands, whenever that changes
    refused     no batch came of it, or one of which nothing was processed: all of it may be sent again
    collected   its results lie in batches/INTENT.jsonl
    given_up    the user has written it off (`astra batches DIR --forget`): all of it may be sent again

Invariants: an intent without `submitted` and `refused` may or may not have become a batch: it is looked up
and never sent again before that is known. A request is in one open intent at most. Every line is on disk
before what follows from it is done.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import ConflictError
from astra_async.log import AppendLog, now_utc, scan
from astra_async.types import SampleKey
from astra_async.types.records import SCHEMA, Flaw, check_schema, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from astra_async.types import AnswerKey

LOG_NAME, FOLDER_NAME = "batches.jsonl", "batches"
Kind = Literal["intent", "submitted", "state", "refused", "collected", "given_up"]


@dataclass(slots=True, kw_only=True)
class Intent:
    """One chunk, as far as the log knows.

    `requests` maps custom_ids to keys; `file` is what was uploaded for it; `batch_id` is empty until it is
    known; `tokens` is an estimate of its input, `most_usd` the most that it can cost.
    """

    token: str
    model: str
    at: str
    requests: Mapping[str, AnswerKey]
    file: str = ""
    tokens: int = 0
    most_usd: float | None = None
    batch_id: str = ""
    state: str = "unknown"
    done: int = 0
    is_closed: bool = False  # refused or given up
    is_collected: bool = False
    detail: str = ""
    keys: frozenset[AnswerKey] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = frozenset(self.requests.values())

    @property
    def is_open(self) -> bool:
        """Whether its requests are with the provider, or may be."""
        return not (self.is_closed or self.is_collected)


class BatchLog:
    """The log of one run directory, of which this process is the owner; the file is made by the first line.

    `intents` are all that were ever made, by token, the oldest first. In `folder` requests lie until they
    are sent, and results once they were collected.
    """

    def __init__(self, directory: Path, run_id: str) -> None:
        self.folder = directory / FOLDER_NAME
        self._path = directory / LOG_NAME
        self.run_id = run_id
        self._log: AppendLog | None = None
        if self._path.exists():
            self._log = AppendLog.open(self._path)
        self.intents = read_intents(directory)
        for left in (*self.folder.glob("*.requests"), *self.folder.glob("*.draft")):
            left.unlink(missing_ok=True)  # by a process that was killed: both are made anew

    def open_of(self, model: str) -> list[Intent]:
        """A model's batches that are not collected."""
        return [each for each in self.intents.values() if each.model == model and each.is_open]

    def results(self, intent: Intent) -> Path:
        """Where the results of a batch lie once it is collected."""
        return self.folder / f"{intent.token}.jsonl"

    def new_ids(self, keys: Iterable[AnswerKey]) -> dict[str, AnswerKey]:
        """A custom_id for each key: of this run, and of no earlier batch.

        So the contents of a batch tell whose it is, whoever shares the account, and which try of it.
        """
        return {_custom_id(f"{self.run_id}/{len(self.intents)}/{key!r}"): key for key in keys}

    async def intend(self, intent: Intent) -> None:
        """On disk before the batch is created. Raises StorageError."""
        requests = {
            name: [key.format, key.problem_id, key.sample, key.turn] for name, key in intent.requests.items()
        }
        await self._write(
            "intent",
            intent,
            model=intent.model,
            requests=requests,
            file=intent.file,
            tokens=intent.tokens,
            most_usd=intent.most_usd,
        )
        self.intents[intent.token] = intent

    async def note(self, kind: Kind, intent: Intent, **details: str | int) -> None:
        """What has become of an intent: on disk, and then in the intent. Raises StorageError."""
        _take(self.intents, await self._write(kind, intent, **details))

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()

    async def _write(self, kind: Kind, intent: Intent, **details: Any) -> dict[str, Any]:
        if self._log is None:
            self._log = AppendLog.open(self._path)
        record = {"schema": SCHEMA, "kind": kind, "intent": intent.token, "at": now_utc(), **details}
        self._log.append(record)
        await asyncio.to_thread(self._log.sync)
        return record


def age_s(intent: Intent) -> float:
    """Seconds since an intent was written, by the clock of this machine."""
    return (datetime.now(UTC) - datetime.fromisoformat(intent.at)).total_seconds()


def new_token(run_id: str) -> str:
    """A name for an intent that no other has, in letters that every provider takes for a name."""
    return f"astra-{run_id}-{secrets.token_hex(8)}"


def read_intents(directory: Path) -> dict[str, Intent]:
    """What batches.jsonl tells; the directory need not be open. Raises ConflictError."""
    found: dict[str, Intent] = {}
    for number, _, line in scan(directory / LOG_NAME):
        where = f"{directory / LOG_NAME} line {number}"
        try:
            record = read_record(line)
            check_schema(record, where)
            _take(found, record)
        except (Flaw, KeyError, TypeError, ValueError) as error:
            raise ConflictError(
                f"{where} cannot be read ({error!r}): it tells what was paid for; restore it"
            ) from error
    return found


def _take(found: dict[str, Intent], record: Mapping[str, Any]) -> None:
    """One line, in the order of the file."""
    kind, token = record["kind"], record["intent"]
    if kind == "intent":
        model = str(record["model"])
        requests = {name: SampleKey(model, *key[:3]).at(key[3]) for name, key in record["requests"].items()}
        fields = {name: record[name] for name in ("at", "file", "tokens", "most_usd")}
        found[token] = Intent(token=token, model=model, requests=requests, **fields)
        return
    intent = found[token]
    match kind:
        case "submitted":
            intent.batch_id = str(record["batch"])
        case "state":
            intent.state, intent.done = str(record["state"]), int(record["done"])
        case "collected":
            intent.is_collected = True
        case "refused" | "given_up":
            intent.is_closed, intent.detail = True, str(record.get("detail") or kind)


def _custom_id(name: str) -> str:
    return "a" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
