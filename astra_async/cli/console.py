"""Output: consoles for people, JSON for programs, and masking of control characters.

Answers, test output, names of files and tests, and messages of providers are foreign text. Terminal codes in
such text (colors, titles, links, a cleared screen, reordered text) are shown as symbols or removed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console, ConsoleRenderable

    Command = TypeVar("Command", bound=Callable[..., Any])

_STANDARD_OUTPUT = Path("-")
_PLAIN_WIDTH = 140  # width without a terminal, for files and logs
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SIGNS: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},  # control pictures
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029, *_BIDIRECTIONAL, *range(0xD800, 0xE000)), "\ufffd"),
}


_ESCAPES = {code: f"\\u{code:04x}" for code in _SIGNS if code >= 0x7F}  # noqa: PLR2004 - JSON escapes lower ones


def harmless(text: str) -> str:
    """Return the text without terminal codes; line breaks and tabs are kept, colors are removed."""
    return _COLOUR.sub("", text).replace("\r\n", "\n").translate(_SIGNS)


def say(text: object, *, err: bool = False, bold: bool = False) -> None:
    """Print a text, which may be foreign, on standard output."""
    plain = harmless(str(text))
    click.echo(click.style(plain, bold=True) if bold else plain, err=err)


def tell(text: object) -> None:
    """Print one line for the user on standard error."""
    say(text, err=True)


def tell_record(line: bytes) -> None:
    """Print one line of JSON on standard error; terminal codes are escaped."""
    click.echo(line.decode().translate(_ESCAPES), err=True)


def is_terminal() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr.isatty()


def open_console(*, stderr: bool = False) -> Console:
    """Return a console of the terminal's width that removes terminal codes from all text."""
    from rich.console import Console

    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    console.push_render_hook(_harmless_hook())
    return console


def json_option(what: str, default: Path | None = None) -> Callable[[Command], Command]:
    """Return the option `--json` (parameter `json_path`); `what` is the beginning of its help."""
    place = f" [default: {default}]" if default else ""
    return click.option(
        "--json",
        "json_path",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="[FILE]",
        default=default,
        is_flag=False,
        flag_value=str(_STANDARD_OUTPUT),
        help=f"{what}. Without FILE or with `-`, JSON is on standard output, text on standard error{place}.",
    )


def takes_standard_output(json_path: Path | None) -> bool:
    """Return True if standard output is reserved for JSON."""
    return json_path == _STANDARD_OUTPUT


def write_json(json_path: Path | None, value: object) -> None:
    """Write the value as indented JSON without terminal codes, if there is a path. Raises StorageError."""
    if json_path is None:
        return
    import orjson

    from astra_async.files import write_atomically
    from astra_async.log import fields_of

    try:
        text = orjson.dumps(value, default=fields_of, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:  # lone surrogates in a record
        text = json.dumps(value, default=fields_of, indent=2)
    content = text.translate(_ESCAPES).encode() + b"\n"
    if takes_standard_output(json_path):
        click.echo(content, nl=False)
    else:
        write_atomically(json_path, content)


def _harmless_hook() -> Any:
    """Hook for rich that keeps rich's control codes and removes all others."""
    from rich.console import ConsoleOptions, RenderHook
    from rich.segment import Segment

    class Harmless:
        def __init__(self, inner: ConsoleRenderable) -> None:
            self._inner = inner

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
            for part in console.render(self._inner, options):
                yield part if part.control else Segment(harmless(part.text), part.style)

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return [Harmless(each) for each in renderables]

    return Hook()
