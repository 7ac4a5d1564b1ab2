"""Click options made from the one table of options in `config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from astra_async.config import OPTIONS, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])


def config_options(*names: str) -> Callable[[Command], Command]:
    """The named options of `config.OPTIONS` (all without a name), and --config."""
    chosen = [option for option in OPTIONS if not names or option.name in names]

    def decorate(command: Command) -> Command:
        for option in reversed(chosen):
            command = _click_option(option)(command)
        return click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="ASTRA_CONFIG",
            help="TOML file with the same options and tables for models, S3 and sandbox.",
        )(command)

    return decorate


def _click_option(option: Option) -> Callable[[Command], Command]:
    if option.kind is bool:
        name, variable = option.name, f"ASTRA_{option.name.upper()}"
        flag = f"--{name.replace('_', '-')}"
        return click.option(flag, name, is_flag=True, default=None, envvar=variable, help=option.help)
    kind: Any = click.Choice(option.choices) if option.choices else option.kind
    default = f" [default: {option.default}]" if option.default not in (None, "") else ""
    return click.option(
        f"--{option.name.replace('_', '-')}",
        option.name,
        type=kind,
        multiple=option.several,
        metavar=option.metavar,
        envvar=f"ASTRA_{option.name.upper()}",
        help=option.help + default,
    )
