"""Merging of streamed JSON deltas into one message, independent of the message's fields."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from astra_async.asking.providers.answer import Json

# Text fields that are complete in every delta that contains them. Other text is appended.
_NEVER_IN_PIECES = frozenset({"id", "type", "role", "name", "format"})


def merge(message: Json, delta: Json) -> None:
    """Merge a delta into a message: text is appended, list items are merged by `index` or appended."""
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
            found = items[-1]  # without an index, the delta continues the last tool call
        if found is None:
            items.append(copy.deepcopy(delta))
        else:
            merge(found, delta)


def read_input(text: Any) -> Any:
    """Parse tool-call input that was streamed as JSON text. Return the text itself if it is incomplete."""
    try:
        return orjson.loads(text or "{}") if isinstance(text, str) else text
    except orjson.JSONDecodeError:
        return text
