"""What an agent left in its project, as its sample's answer: written when it ends, read when it is graded.

One JSON object: `files` (path -> new text, of new and changed files), `binary` (path -> base64 of a content
that is no text in UTF-8), `deleted` (paths), `before` (path -> pristine text of what was changed or deleted,
for readers of the record), `left_out` (path -> why it is no part of the answer).
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.types import Solution, Unusable

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNREADABLE = "the record of what the agent left cannot be read: restore completions.jsonl from a copy"


def write_agents_files(
    *,
    files: Mapping[str, str],
    binary: Mapping[str, bytes],
    deleted: tuple[str, ...],
    before: Mapping[str, str],
    left_out: Mapping[str, str],
) -> str:
    """The answer's text; the same for the same files."""
    encoded = {path: base64.b64encode(content).decode() for path, content in binary.items()}
    answer = {"files": files, "binary": encoded, "deleted": deleted, "before": before, "left_out": left_out}
    return orjson.dumps(answer, option=orjson.OPT_SORT_KEYS).decode()


def read_agents_files(text: str) -> Solution | Unusable:
    """The solution; an agent that changed nothing gave none.

    Raises ValueError where the text is not one that `write_agents_files` made: no model wrote it.
    """
    answer = _parsed(text)
    files = answer.get("files", {})
    deleted = tuple(answer.get("deleted", ()))
    try:
        binary = {
            path: base64.b64decode(content, validate=True)
            for path, content in answer.get("binary", {}).items()
        }
    except (binascii.Error, TypeError) as error:
        raise ValueError(_UNREADABLE) from error
    if not (files or deleted or binary):
        return Unusable(failure="no_change", reason="the agent changed no file")
    repairs = tuple(sorted({f"left_out:{why}" for why in answer.get("left_out", {}).values()}))
    return Solution(files=files, repairs=repairs, exact=True, deleted=deleted, binary=binary)


def files_before(text: str) -> dict[str, str]:
    """The pristine texts of what the agent changed or deleted."""
    found: dict[str, str] = _parsed(text).get("before", {})
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(_UNREADABLE) from error
    if not isinstance(answer, dict):
        raise ValueError(_UNREADABLE)  # noqa: TRY004 - damaged, as above
    return answer
