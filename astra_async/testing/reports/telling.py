"""The lines of a long output that tell what went wrong, for a message that a person reads."""

from __future__ import annotations

import re

_SHOWN, _LAST = 14, 5
_LONGEST = 240
_NOISE = re.compile(
    r"Run with --trace|npm (?:ERR!|error) (?:A complete log|.*-debug-\d)|^\s*at [\w.<>$ ]+\("
    r"|node-pre-gyp (?:WARN|ERR!)|gyp (?:verb|info|http)|^\s*\^+\s*$|For more information|\bnotice\b"
    r"|^\[INFO\]|^\[ERROR\] (?:->|Re-run|To see|For more)"
)
_TELLING = re.compile(
    r"error|fail|fatal|exception|not found|no such|cannot|could not|can't|unable|missing|denied|undefined"
    r"|unsupported|incompatible|conflict|requires? |needs? |no matching|refused|timed? ?out|ENOENT|ERESOLVE"
    r"|E404",
    re.IGNORECASE,
)


def telling(output: str) -> str:
    """At most _SHOWN lines: those that speak of a failure, the first ones before all, and the last of all.

    What a tool says first is the cause more often than what it says last ("Run with --trace for full trace").
    Gaps are shown as `...`; an output without such lines is given by its end.
    """
    lines = [line.rstrip()[:_LONGEST] for line in output.splitlines() if line.strip()]
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    worth = [at for at, line in enumerate(lines) if _TELLING.search(line) and not _NOISE.search(line)]
    last = [at for at in range(len(lines) - _LAST, len(lines)) if not _NOISE.search(lines[at])]
    first = list(dict.fromkeys(lines[at] for at in worth))[: _SHOWN - len(last)]
    chosen = sorted(
        {*(lines.index(line) for line in first), *last} or set(range(len(lines) - _SHOWN, len(lines)))
    )
    shown: list[str] = []
    for before, at in zip([None, *chosen], chosen, strict=False):
        if at and (before is None or at > before + 1):
            shown.append("...")
        shown.append(lines[at])
    return "\n".join(shown)
