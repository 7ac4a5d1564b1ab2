"""Explain a failed installation of an agent in one line, with the reason that npm or pip gave."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.testing.sandbox.engine_errors import both_ends

if TYPE_CHECKING:
    from astra_async.errors import ImageError

_DISK = "free space on the engine's disk (docker system df), then run"
_NETWORK = "check the network and HTTPS_PROXY, then run"
_VERSION = "find a version that exists (astra agents list --newest), or install the tested one:"
# Reasons in an output, with the remedy. pip reports a missing version also if no registry answers.
_REASONS = tuple(
    (re.compile(reason, re.IGNORECASE), remedy)
    for reason, remedy in (
        (r"([^\n]*no space left on device)", _DISK),
        (r"Retry\(total=0,[^\n]* broken by '([^\n]*)': /", _NETWORK),
        (r"(request to \S+ failed, reason: [^\n]*)", _NETWORK),
        (r"(No matching (?:version|distribution) found for \S*\w)", _VERSION),
        (r"(404 Not Found - GET \S+)", _VERSION),
    )
)


def install_failure(name: str, error: ImageError) -> str:
    """Return one line with the agent (NAME@VERSION), the reason and the command of the remedy."""
    reason, remedy = both_ends(error), "correct this, then run"
    for pattern, known in _REASONS:
        if found := pattern.search(error.output):
            reason, remedy = both_ends(found[1]), known
            break
    wanted = name.partition("@")[0] if remedy is _VERSION else name
    return f"{name} cannot be installed: {reason}; {remedy} astra agents install {wanted}"
