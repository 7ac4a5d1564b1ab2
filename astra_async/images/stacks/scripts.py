"""The shell scripts of this package that install dependencies inside a container."""

from __future__ import annotations

import shlex
from importlib import resources

_FOLDER = resources.files("astra_async.images.stacks") / "templates"


def script(name: str, **variables: str) -> str:
    """A script of `templates/` as a shell function body, with variables set before it."""
    settings = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return settings + template(name).decode()


def template(name: str) -> bytes:
    """A file of `templates/`."""
    return (_FOLDER / name).read_bytes()
