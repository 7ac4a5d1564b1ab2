"""Random names and values, so that no solution can know a canary beforehand."""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

_VERBS = (
    "adds",
    "answers",
    "checks",
    "counts",
    "finds",
    "keeps",
    "lists",
    "opens",
    "reads",
    "shows",
    "sorts",
)
_NOUNS = ("address", "entry", "field", "group", "item", "label", "list", "name", "page", "value", "view")
_TOKEN_LENGTH = 11


class Words:
    """Names and values of one canary; `token` is in the name of each of its cases, and of its file."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.token = self._letters()
        self.name = self._letters()
        self._count = 0

    def title(self) -> str:
        """A title that no other case has."""
        self._count += 1
        return f"{self._rng.choice(_VERBS)} {self._rng.choice(_NOUNS)} {self.token}{self._count}"

    def identifier(self) -> str:
        """The same as a name for a function."""
        return self.title().replace(" ", "_")

    def number(self) -> int:
        """A positive number; its negative is never equal to another of these."""
        return self._rng.randint(2, 999_999)

    def word(self) -> str:
        """Random letters."""
        return self._letters()

    def quoted(self) -> str:
        """Random letters as a string literal."""
        return json.dumps(self._letters())

    def shuffled(self, items: Sequence[str]) -> list[str]:
        """The items in random order."""
        return self._rng.sample(items, len(items))

    def _letters(self) -> str:
        return "".join(self._rng.choices(string.ascii_lowercase, k=_TOKEN_LENGTH))
