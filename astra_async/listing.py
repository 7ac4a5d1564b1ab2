"""Lists as people read them: the first few, and how many more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SHOWN = 3


def some(names: Sequence[str], most: int = _SHOWN, between: str = ", ") -> str:
    """The first ones, and how many more there are; "" where there is none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def told_once(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines `who: what`; what is said of several is one line, at the place of the first."""
    sharing: dict[str, list[str]] = {}
    for who, what in said:
        sharing.setdefault(what, []).append(who)
    return (f"{some(names)}: {what}" for what, names in sharing.items())
