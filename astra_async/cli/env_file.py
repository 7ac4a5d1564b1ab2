"""Read API keys from a file `.env` in the current folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import tell
from astra_async.errors import UsageError
from astra_async.files import open_regular
from astra_async.listing import some
from astra_async.redaction import register_secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

ENV_FILE = ".env"
_MOST_BYTES = 64 * 1024
# Only credentials are read. Any other variable could change how this program or its child processes work.
_KEY = re.compile(r"[A-Z][A-Z0-9_]*(?:KEY|TOKEN|KEY_ID)")
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?P<value>'[^']*'|\"[^\"]*\"|[^#\s]*)\s*(?:#.*)?")
_READABLE = re.compile(rf"\s*#.*|{_LINE.pattern}")


def env_file_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --no-env-file to a command. Without it, the keys of `.env` are set before the command runs."""

    def read(context: click.Context, _: click.Parameter, is_ignored: bool) -> None:
        if not is_ignored and not context.resilient_parsing and (line := read_env_file(os.environ)):
            tell(line)

    return click.option(
        "--no-env-file",
        is_flag=True,
        expose_value=False,
        callback=read,
        help="Do not read API keys from `.env` in the current folder.",
    )(command)


def read_env_file(environ: MutableMapping[str, str], path: Path = Path(ENV_FILE)) -> str:
    """Set keys of the file that are not set yet. Return a line that names them and unreadable lines, or "".

    Raises UsageError if the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8", opener=open_regular) as stream:
            lines = stream.read(_MOST_BYTES).splitlines()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}; ignore the file with --no-env-file") from error
    found = {
        match["name"]: match["value"].strip("'\"")
        for line in lines
        if (match := _LINE.fullmatch(line)) and _KEY.fullmatch(match["name"])
    }
    new = {name: value for name, value in found.items() if value and not environ.get(name)}
    environ.update(new)
    register_secrets_of(environ)
    odd = [str(n) for n, line in enumerate(lines, 1) if line.strip(" #") and not _READABLE.fullmatch(line)]
    said = [", ".join(new)] if new else []
    said += [f"not NAME=value, ignored: line {some(odd)}"] if odd else []
    return f"from {path}: {'; '.join(said)}" if said else ""
