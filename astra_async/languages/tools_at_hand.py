"""The tools of one problem, as lookups and rules ask for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsAtHand:
    """The tools of a problem, the folders where they look, and everything that is run, as one text.

    `command` is the test command alone, `above_tests` are the folders above the tests; `development` names
    packages for development alone.
    """

    names: frozenset[str]
    places: frozenset[str]
    tests: frozenset[str]
    above_tests: frozenset[str]
    command: str
    commands: str
    development: frozenset[str]

    def __contains__(self, tool: object) -> bool:
        return not self.names or tool in self.names
