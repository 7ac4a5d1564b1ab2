"""The shell scripts that install a language's dependencies inside a container."""

from __future__ import annotations

import shlex
from importlib import resources

_FOLDER = resources.files("astra_async.languages")


def script(name: str, **variables: str) -> str:
    """A script of a language's folder as a shell function body, with variables set before it."""
    settings = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return settings + (_FOLDER / name).read_text()
