"""What an agent left in its project, read when its sample is graded; `agents.left_behind` writes it.

One JSON object: `files` (path -> new text, of new and changed files), `binary` (path -> base64 of a content
that is no text in UTF-8), `deleted` (paths), and for readers of the record `before` (path -> pristine text of
what was changed or deleted).
"""

from __future__ import annotations

import base64
import binascii

import orjson

from astra_async.types import Solution, Unusable

_UNREADABLE = "the record of what the agent left cannot be read: restore completions.jsonl from a copy"


def read_agents_files(text: str) -> Solution | Unusable:
    """The solution; an agent that changed nothing gave none.

    Raises ValueError for a damaged record: no model wrote it, and there is no verdict on it.
    """
    try:
        answer = orjson.loads(text)
        encoded = answer.get("binary", {}).items()
        solution = Solution(
            files=answer.get("files", {}),
            exact=True,
            deleted=tuple(answer.get("deleted", ())),
            binary={path: base64.b64decode(content, validate=True) for path, content in encoded},
            before=answer.get("before", {}),
        )
    except (orjson.JSONDecodeError, binascii.Error, AttributeError, TypeError) as error:
        raise ValueError(_UNREADABLE) from error
    if not (solution.files or solution.deleted or solution.binary):
        return Unusable(failure="no_change", reason="the agent changed no file")
    return solution
