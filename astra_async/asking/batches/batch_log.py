"""Write-ahead log of batches, batches.jsonl. An intent is one planned batch.

    intent      custom_ids and keys of the requests of one batch; written before the batch is created
    submitted   id of the batch, from the provider's response
    state       the provider's name of the batch's state, written at every change
    refused     no batch was created, or nothing of it was processed; its requests may be sent again
    collected   the results are in batches/INTENT.jsonl
    given_up    the user gave the batch up (`astra batches DIR --forget`); its requests may be sent again

Invariants: without `submitted` and `refused` it is unknown if a batch exists for an intent, so its requests
are not sent again before the provider was asked. A request is in at most one open intent. Every line is
synced to disk before the program acts on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import ConflictError
from astra_async.files import scan
from astra_async.log import AppendLog, now_utc
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
    """One planned batch, with its state according to the log.

    Attributes:
        token: unique name of the intent.
        model: name of the model.
        at: time of the intent, ISO 8601 in UTC.
        requests: key of each request by custom_id.
        file: name of the uploaded file at the provider.
        tokens: estimate of the input tokens.
        most_usd: maximum cost in US dollars, None if unknown.
        batch_id: id of the batch, empty while unknown.
        state: the provider's name of the state.
        done: number of requests with a result.
        is_closed: the batch was refused or given up.
        is_collected: the results are on disk.
        detail: reason why the batch was closed.
        keys: keys of all requests.
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
    is_closed: bool = False
    is_collected: bool = False
    detail: str = ""
    keys: frozenset[AnswerKey] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = frozenset(self.requests.values())

    @property
    def is_open(self) -> bool:
        """True if the requests are at the provider, or may be."""
        return not (self.is_closed or self.is_collected)


class BatchLog:
    """Log of one run directory that this process has locked. The file is created with the first line.

    Attributes:
        folder: folder for requests until they are sent, and for collected results.
        run_id: id of the run.
        intents: all intents of the run by token, oldest first.
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
            left.unlink(missing_ok=True)  # left by a killed process; these files are written again

    def open_intents(self, model: str) -> list[Intent]:
        """Return the open batches of a model: intents that are neither collected nor given up."""
        return [each for each in self.intents.values() if each.model == model and each.is_open]

    def results(self, intent: Intent) -> Path:
        """Return the path of the collected results of a batch."""
        return self.folder / f"{intent.token}.jsonl"

    def new_ids(self, keys: Iterable[AnswerKey]) -> dict[str, AnswerKey]:
        """Return a custom_id for each key, unique to this run and to the next intent.

        Therefore the contents of a batch identify its run and its intent, even if several runs share an
        account.
        """
        return {_custom_id(f"{self.run_id}/{len(self.intents)}/{key!r}"): key for key in keys}

    async def write_intent(self, intent: Intent) -> None:
        """Write an intent to disk, before its batch is created. Raises StorageError."""
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

    async def record(self, kind: Kind, intent: Intent, **details: str | int) -> None:
        """Write a change of an intent to disk, then apply it to the intent. Raises StorageError."""
        _apply(self.intents, await self._write(kind, intent, **details))

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


# Missing batches and files (404) and missing results are retried for this many times `batch_settled_s`.
LATE = 10


def age_s(intent: Intent) -> float:
    """Return the seconds since an intent was written, by the local clock."""
    return (datetime.now(UTC) - datetime.fromisoformat(intent.at)).total_seconds()


def new_token(run_id: str) -> str:
    """Return a unique name for an intent, in characters that every provider accepts in names."""
    return f"astra-{run_id}-{secrets.token_hex(8)}"


def read_intents(directory: Path) -> dict[str, Intent]:
    """Read all intents from batches.jsonl. The directory need not be locked.

    Raises:
        ConflictError: a line is invalid or has an unknown schema.
    """
    found: dict[str, Intent] = {}
    for number, _, line in scan(directory / LOG_NAME):
        where = f"{directory / LOG_NAME} line {number}"
        try:
            record = read_record(line)
            check_schema(record, where)
            _apply(found, record)
        except (Flaw, KeyError, TypeError, ValueError) as error:
            raise ConflictError(
                f"{where} is invalid ({error!r}): this file records paid batches; restore it from a backup"
            ) from error
    return found


def _apply(found: dict[str, Intent], record: Mapping[str, Any]) -> None:
    """Apply one line of the log to the intents. Lines must be applied in the order of the file."""
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
