"""Messages that stream as deltas of JSON, put together without knowing their fields."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from astra_async.asking.providers.answer import Json

# Texts of a message that come whole in each delta that has them.
_NEVER_IN_PIECES = frozenset({"id", "type", "role", "name", "format"})


def merge(message: Json, delta: Json) -> None:
    """Lay a delta over a message: text is added, a list's items by their `index`, else at its end."""
    for name, value in delta.items():
        known = message.get(name)
        if value is None or value == "":
            message.setdefault(name, value)
        elif isinstance(value, dict):
            message[name] = known if isinstance(known, dict) else {}
            merge(message[name], value)
        elif isinstance(value, list):
            message[name] = known if isinstance(known, list) else []
            _merge_list(message[name], value)
        elif isinstance(value, str) and isinstance(known, str) and name not in _NEVER_IN_PIECES:
            message[name] = known + value
        else:
            message[name] = value


def _merge_list(items: list[Any], deltas: list[Any]) -> None:
    for delta in deltas:
        if not isinstance(delta, dict):
            items.append(delta)
            continue
        index = delta.get("index")
        found = next((item for item in items if index is not None and item.get("index") == index), None)
        if index is None and not delta.get("id") and items and "function" in delta:
            found = items[-1]  # a server that numbers nothing goes on with its last call
        if found is None:
            items.append(copy.deepcopy(delta))
        else:
            merge(found, delta)


def read_input(text: Any) -> Any:
    """A call's input that streamed as JSON text; the text itself where it was cut off, or is none."""
    try:
        return orjson.loads(text or "{}") if isinstance(text, str) else text
    except orjson.JSONDecodeError:
        return text
