"""What the program knows about a programming language: one value, filled by one folder.

Everything but the name may be left out. What a language lacks is told to whoever uses it
(`astra_async.languages.lacks`), and never makes another one weaker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

    from astra_async.languages.needs import Commands, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """How a project of the language is recognised, and what its image needs.

    `find` looks at one folder of a project ("" is the root). `calls` are the language's programs in commands.
    `signs` says to a user which files tell of it. `installs` reads the words of one command: the same command
    for an image, where it adds packages by name.

    `managers` would fetch packages during the tests, which have no network, and are made to do nothing;
    `leavings` are what an installation writes into the project. Both are part of every image's name.
    """

    find: Callable[[Mapping[str, bytes], str, Commands], Part | None]
    calls: re.Pattern[str]
    signs: tuple[str, ...]
    installs: Callable[[Sequence[str]], str] | None = None
    managers: tuple[str, ...] = ()
    leavings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. `suffixes` are those of its sources, in small letters and without the dot."""

    name: str
    suffixes: frozenset[str]
    images: Images | None = None
    trial: Any = None
