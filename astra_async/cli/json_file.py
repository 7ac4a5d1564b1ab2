"""`--json FILE` of commands that come to a conclusion: the same for programs; `-` is standard output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from astra_async.running.log import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])

_STANDARD_OUTPUT = Path("-")


def json_option(what: str, default: Path | None = None) -> Callable[[Command], Command]:
    """The option `--json`, passed on as `json_path`; `what` completes its help."""
    place = f" [default: {default}]" if default else ""
    return click.option(
        "--json",
        "json_path",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="FILE",
        default=default,
        help=f"{what}; `-` is standard output, and people read standard error then{place}.",
    )


def takes_standard_output(json_path: Path | None) -> bool:
    """Whether standard output is the programs', and people have to read standard error."""
    return json_path == _STANDARD_OUTPUT


def write_json(json_path: Path | None, value: object) -> None:
    """Write the value, indented; nothing without a path. Raises StorageError."""
    if json_path is None:
        return
    import orjson

    content = orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
    if takes_standard_output(json_path):
        click.echo(content, nl=False)
    else:
        write_atomically(json_path, content)
