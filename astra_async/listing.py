"""Format lists and numbers for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SHOWN = 3


def some(names: Sequence[str], most: int = _SHOWN, between: str = ", ") -> str:
    """Return the first entries and the number of the others; '' for an empty list."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def counted(number: int, what: str, several: str = "") -> str:
    """Return a number with its noun: 1 problem, 2 problems. `several` is an irregular plural."""
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def grouped_by_text(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield lines `names: text`; names with the same text share one line, at the first one's position."""
    sharing: dict[str, list[str]] = {}
    for who, what in said:
        sharing.setdefault(what, []).append(who)
    return (f"{some(names)}: {what}" for what, names in sharing.items())
