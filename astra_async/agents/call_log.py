"""`calls.jsonl` of a run directory: one line per model call of an agent, written before the answer.

A request is recorded as its difference to an earlier request of the same sample (`since` is the step of that
request; None: the request is complete). So the file grows with the length of the conversation and not with
its square. A line with `failed` is a call without an answer that cost money, or whose body the provider
refused (`refused` is the provider's message).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.errors import StorageError
from astra_async.files import scan, storage_error
from astra_async.log import AppendLog, encode, now_utc
from astra_async.types import Completion, NativeBody, SampleKey, ToolCall, Usage
from astra_async.types.records import SCHEMA, Flaw, read_key, read_named, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from astra_async.types import AnswerKey, Dialogue


Json = dict[str, Any]
# Field that holds the messages: Chat Completions and Messages, Responses, Gemini.
_MESSAGES_AT = ("messages", "input", "contents")
_OF_A_SESSION = frozenset(
    {
        *("metadata", "client_metadata", "prompt_cache_key", "safety_identifier", "user", "session_id"),
        *("stream", "stream_options", "store"),
    }
)
_DATED_MESSAGES = 2  # agents put the date into their first messages
_YEAR = re.compile(r"20\d\d")
_BEFORE_A_YEAR, _AFTER_A_YEAR = 30, 22  # characters around the year in the longest date format
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d(?:T[\d:.]+Z?)?|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
    rf"(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH},? \d{{4}})|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of an agent: its JSON, its size, and its hashes.

    `sha256` ignores dates, session ids, call ids and tool outputs, which differ between two runs of the same
    work. `exact` does not.
    """

    body: Json
    size_bytes: int
    sha256: str
    exact: str

    @classmethod
    def of(cls, asked: Dialogue | NativeBody) -> Asked:
        """Build the request for a dialogue or a body in the provider's own format."""
        body = dict(asked.fields) if isinstance(asked, NativeBody) else orjson.loads(orjson.dumps(asked))
        name = next((name for name in _MESSAGES_AT if isinstance(body.get(name), list)), "")
        messages = body.get(name) or []
        written = orjson.dumps(messages, option=orjson.OPT_SORT_KEYS)
        rest = {name: value for name, value in body.items() if name != "" and value is not messages}
        about = {name: value for name, value in rest.items() if name not in _OF_A_SESSION}
        plain = [_without_outputs(item) for item in messages]
        same = sha256(_undated([about, *plain[:_DATED_MESSAGES]]))
        same.update(orjson.dumps(plain[_DATED_MESSAGES:], option=orjson.OPT_SORT_KEYS))
        size = len(written) + len(orjson.dumps(rest))
        exact = sha256(written)
        exact.update(same.digest())
        return cls(body, size, same.hexdigest(), exact.hexdigest())


def difference(before: Json, now: Json) -> Json:
    """Return how `now` differs from `before`: fields that are `set`, `gone`, or lists that have `grown`."""
    made: Json = {}
    for name, value in now.items():
        old = before.get(name)
        if name in before and old == value:
            continue
        if isinstance(value, list) and isinstance(old, list):
            pairs = enumerate(zip(old, value, strict=False))
            kept = next((at for at, (one, other) in pairs if one != other), min(len(old), len(value)))
            made.setdefault("grown", {})[name] = [kept, value[kept:]]
        else:
            made.setdefault("set", {})[name] = value
    if gone := [name for name in before if name not in now]:
        made["gone"] = gone
    return made


def rebuilt(before: Json, made: Json) -> Json:
    """Apply a `difference` to the earlier request."""
    gone = made.get("gone") or ()
    now = {name: value for name, value in before.items() if name not in gone} | (made.get("set") or {})
    for name, (kept, rest) in (made.get("grown") or {}).items():
        now[name] = before[name][:kept] + rest
    return now


def max_tokens(body: Json) -> int | None:
    """Return the limit of output tokens in a body of any interface, or None."""
    config = body.get("generationConfig")
    places = (
        *(body.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens")),
        config.get("maxOutputTokens") if isinstance(config, dict) else None,
    )
    return next((value for value in places if type(value) is int and value > 0), None)


def _undated(items: list[Any]) -> bytes:
    """Return JSON without dates and with sorted lines, because one agent lists its skills in random order.

    Only the surroundings of years are searched for dates, which takes a hundredth of the time.
    """
    text = orjson.dumps(items, option=orjson.OPT_SORT_KEYS).decode()
    made, at = [], 0
    for year in _YEAR.finditer(text):
        begin, end = max(at, year.start() - _BEFORE_A_YEAR), max(at, year.end() + _AFTER_A_YEAR)
        made += [text[at:begin], _DATE.sub("DATE", text[begin:end])]
        at = end
    return "\n".join(sorted("".join((*made, text[at:])).split("\\n"))).encode()


def _without_outputs(item: Any) -> Any:
    """Return a message or item without ids and without the outputs of tools."""
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if item.get("role") == "tool" or (isinstance(kind, str) and kind.endswith("_output")):
        return {name: item.get(name) for name in ("type", "call_id", "tool_call_id")}
    plain = {name: value for name, value in item.items() if name not in {"id", "status", "native"}}
    for name in ("content", "parts", "results", "calls"):
        if isinstance(plain.get(name), list):
            plain[name] = [_without_output(part) for part in plain[name]]
    return plain


def _without_output(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "tool_result":
        return {"type": "tool_result", "tool_use_id": part.get("tool_use_id")}
    if isinstance(part.get("functionResponse"), dict):
        return {"functionResponse": part["functionResponse"].get("name")}
    if isinstance(part.get("functionCall"), dict):  # Gemini CLI makes ids from the time of day
        return {"functionCall": {name: value for name, value in part["functionCall"].items() if name != "id"}}
    if "call" in part and "failed" in part:  # a ToolResult
        return {"call": part["call"].get("name") if isinstance(part["call"], dict) else None}
    ignored = {"id", "cache_control"} if "arguments" in part else {"cache_control"}  # a ToolCall has an id
    return {name: value for name, value in part.items() if name not in ignored}


_OF_COMPLETION = frozenset(
    {
        *("text", "finish_reason", "returned_model", "ttft_s", "latency_s", "attempts", "cost_usd"),
        *("cost_estimated", "native"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One answered call of a sample. `seconds` is its duration, waiting for the rate limiter included."""

    step: int
    sha256: str
    completion: Completion
    seconds: float
    since: int | None
    request: Json
    translated: bool = False
    removed: tuple[str, ...] = ()
    at: str = ""


class CallLog:
    """The log of agents' model calls. Without `log` it is read-only.

    `keep` appends a line and never loses it, even if the disk is full. A call whose line is damaged is asked
    again. `paid_usd` is the cost of all appended lines by model.
    """

    def __init__(
        self,
        path: Path,
        log: AppendLog | None = None,
        keep: Callable[[AppendLog, bytes], tuple[int, int]] = AppendLog.append_line,
    ) -> None:
        self.path = path
        self._keep = keep
        self._log = log
        self.paid_usd: defaultdict[str, float] = defaultdict(float)
        self._places: defaultdict[SampleKey, list[tuple[int, int]]] = defaultdict(list)
        self._appended = self._synced = 0
        self._syncing = asyncio.Lock()
        for _, offset, line in scan(path):
            with suppress(Flaw):
                self._places[read_key(read_named(line))].append((offset, len(line)))

    @classmethod
    def open(cls, path: Path) -> CallLog:
        """Open the log at `path`; an incomplete last line is removed. Raises StorageError."""
        return cls(path, AppendLog.open(path))

    def records(self, key: AnswerKey) -> Iterator[Json]:
        """Yield the lines of a sample's answered calls in the order in which they ended.

        Raises StorageError.
        """
        return self._lines(key.first)

    def of(self, key: AnswerKey) -> list[RecordedCall]:
        """Return the answered calls of a sample in the order in which they ended. Raises StorageError."""
        found = []
        for line in self._lines(key.first):
            with suppress(Flaw, KeyError, TypeError, ValueError):
                found.append(recorded_call(line))
        return found

    def refused(self, key: AnswerKey) -> list[tuple[str, str]]:
        """Return (hash of the body, provider's message) for each refused body of a sample.

        Raises StorageError.
        """
        lines = self._lines(key.first, failed=True)
        return [(line["sha256"], line["refused"]) for line in lines if line.get("refused")]

    async def append(self, key: AnswerKey, line: Json) -> None:
        """Append a line and wait until it is synced to the disk. Raises StorageError."""
        if self._log is None:
            raise StorageError(f"{self.path} is open for reading only")
        first = key.first
        named = {"schema": SCHEMA, **first._asdict(), **line, "at": now_utc()}
        place = self._keep(self._log, encode(named))
        self._places[first].append(place)
        self.paid_usd[first.model] += line.get("cost_usd") or 0.0
        self._appended += 1
        mine = self._appended
        async with self._syncing:  # one sync covers all lines that were written before it began
            if self._synced < mine:
                upto = self._appended
                await asyncio.to_thread(self._log.sync)
                self._synced = upto

    def _lines(self, key: SampleKey, *, failed: bool = False) -> Iterator[Json]:
        if key not in self._places:
            return
        try:
            with self.path.open("rb") as stream:
                for offset, length in self._places[key]:
                    record = read_record(os.pread(stream.fileno(), length, offset))
                    if bool(record.get("failed")) == failed:
                        yield record
        except OSError as error:
            raise storage_error(self.path, error) from error


def fields_of_answer(completion: Completion) -> Json:
    """Return the fields of a completion that a line records."""
    kept: Json = {name: getattr(completion, name) for name in sorted(_OF_COMPLETION)}
    kept |= {"usage": completion.usage, "calls": completion.calls, "repairs": completion.repairs}
    return kept


def recorded_call(line: Json) -> RecordedCall:
    """Parse the call of a line. Raises KeyError, TypeError or ValueError if the line is damaged."""
    known = {each.name for each in fields(Usage)}
    usage = Usage(**{name: value for name, value in (line.get("usage") or {}).items() if name in known})
    completion: dict[str, Any] = {name: line[name] for name in _OF_COMPLETION if name in line}
    completion |= {"usage": usage, "calls": tuple(ToolCall(**call) for call in line.get("calls") or ())}
    return RecordedCall(
        step=line["step"],
        sha256=line["sha256"],
        completion=Completion(**completion, repairs=tuple(line.get("repairs") or ())),
        seconds=line.get("seconds") or 0.0,
        since=line.get("since"),
        request=line["request"],
        translated=bool(line.get("translated")),
        removed=tuple(line.get("removed") or ()),
        at=line.get("at") or "",
    )
