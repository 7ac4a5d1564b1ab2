"""Consoles for people: as wide as the terminal, or wide enough where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_WIDTH = 140  # in a file or a log nobody's terminal sets a limit


def open_console(*, stderr: bool = False) -> Console:
    """A console on standard output, or on standard error for what is not the result."""
    from rich.console import Console

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_PLAIN_WIDTH)
