"""What an agent asks, as JSON: how much of it is new, and when two requests of different processes are one.

An agent that is started again on the same problem says the same again, but for ids of its session, the date,
the order of keys, and what its tools gave out. So a request's `sha256` leaves these out: with it a recorded
answer is found again. `exact` leaves nothing out of the messages: with it a repeated request joins a call
that is under way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.types import NativeBody

if TYPE_CHECKING:
    from astra_async.types import Dialogue

Json = dict[str, Any]
# The field of each interface that holds the messages: chat and Messages, Responses, Gemini.
_MESSAGES_AT = ("messages", "input", "contents")
_OF_A_SESSION = frozenset(
    {
        *("metadata", "client_metadata", "prompt_cache_key", "safety_identifier", "user", "session_id"),
        *("stream", "stream_options", "store"),
    }
)
_DATED_MESSAGES = 2  # the date stands in what an agent says first
_YEAR = re.compile(r"20\d\d")
_BEFORE_A_YEAR, _AFTER_A_YEAR = 30, 22  # characters of the longest date that there is
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d(?:T[\d:.]+Z?)?|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
    rf"(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH},? \d{{4}})|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its JSON, its size, and what it is recognised by."""

    body: Json
    size_bytes: int
    sha256: str
    exact: str

    @classmethod
    def of(cls, asked: Dialogue | NativeBody) -> Asked:
        """The request that a dialogue or a body is."""
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
    """What makes `now` of `before`: fields `set`, fields gone, and lists that are kept so far and go on."""
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
    """The request that `difference` has taken apart."""
    gone = made.get("gone") or ()
    now = {name: value for name, value in before.items() if name not in gone} | (made.get("set") or {})
    for name, (kept, rest) in (made.get("grown") or {}).items():
        now[name] = before[name][:kept] + rest
    return now


def max_tokens(body: Json) -> int | None:
    """What a body of any interface says of its longest answer."""
    config = body.get("generationConfig")
    places = (
        *(body.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens")),
        config.get("maxOutputTokens") if isinstance(config, dict) else None,
    )
    return next((value for value in places if type(value) is int and value > 0), None)


def _undated(items: list[Any]) -> bytes:
    """Without dates, its lines in order: one agent lists its skills in an order of the moment.

    Dates are looked for round years only: that takes a hundredth of the time.
    """
    text = orjson.dumps(items, option=orjson.OPT_SORT_KEYS).decode()
    made, at = [], 0
    for year in _YEAR.finditer(text):
        begin, end = max(at, year.start() - _BEFORE_A_YEAR), max(at, year.end() + _AFTER_A_YEAR)
        made += [text[at:begin], _DATE.sub("DATE", text[begin:end])]
        at = end
    return "\n".join(sorted("".join((*made, text[at:])).split("\\n"))).encode()


def _without_outputs(item: Any) -> Any:
    """A message or item without ids of the session and without what tools gave out."""
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if item.get("role") == "tool" or (isinstance(kind, str) and kind.endswith("_output")):
        return {name: item.get(name) for name in ("type", "call_id", "tool_call_id")}
    plain = {name: value for name, value in item.items() if name not in {"id", "status", "native"}}
    for name in ("content", "parts", "results"):
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
    if "call" in part and "failed" in part:  # a ToolResult
        return {"call": part["call"].get("id") if isinstance(part["call"], dict) else None}
    return {name: value for name, value in part.items() if name != "cache_control"}
