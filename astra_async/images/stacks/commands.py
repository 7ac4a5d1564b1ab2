"""Reads the commands of a problem: which languages they call, what they install, which folders they name.

Commands are read, not run: `bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm install` and its hundred
variants would fetch version managers and start servers. Scripts of the project that a command calls are
read with it, and so are the npm scripts.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.needs import Commands
from astra_async.overlay.tools import ENTERED
from astra_async.problems.manifest import read_install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types import Problem

_SCRIPT_BYTES = 64 * 1024
_MANIFEST_BYTES = 1024**2
_DEPTH = 3  # a script that calls a script that calls a script
_MAX_SEGMENTS = 400
_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^!].*$")
_SCRIPTS = [language.tools.scripts for language in LANGUAGES if language.tools.scripts]
_PREFIXES = ("sudo", "exec", "time", "env", "(", "{")


def read_commands(problem: Problem, files: Mapping[str, bytes], manifest: bytes) -> Commands:
    """What the test command and the manifest's install command say, with the scripts they call."""
    lines = [problem.test_command, read_install_command(manifest)]
    text = _COMMENT.sub("", "\n".join([*lines, *_called(lines, files)]))
    return Commands(
        text=text,
        languages=frozenset(
            language.name for language in LANGUAGES if language.images and language.images.calls.search(text)
        ),
        folders=tuple(dict.fromkeys(folder.strip("/") for folder in ENTERED.findall(text))),
        installs=tuple(dict.fromkeys(_installs(text))),
    )


def segments(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell text as words; those that are no plain commands are left out."""
    for number, segment in enumerate(_SEGMENT.split(text)):
        if number > _MAX_SEGMENTS:
            return
        try:
            words = shlex.split(segment, comments=False)
        except ValueError:
            continue
        while words and (re.match(r"\w+=", words[0]) or words[0] in _PREFIXES):
            words.pop(0)
        if words:
            yield words


def _called(lines: list[str], files: Mapping[str, bytes]) -> list[str]:
    """The npm scripts and the project's shell scripts that the lines call, and what those call, as texts."""
    found: dict[str, str] = {}
    texts = list(lines)
    for _ in range(_DEPTH):
        fresh: dict[str, str] = {}
        for words in segments("\n".join(texts)):
            fresh |= {name: text for name, text in _calls_of(words, files) if name not in found}
        found |= fresh
        texts = list(fresh.values())
    return list(found.values())


def _calls_of(words: list[str], files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    line = " ".join(words)
    top = {path: text for path, text in files.items() if "/" not in path and len(text) <= _MANIFEST_BYTES}
    for path, text in top.items():
        for read in _SCRIPTS:
            yield from read(path, text.decode(errors="replace"), line).items()
    for word in words[:3]:
        path = word.removeprefix("./")
        content = files.get(path)
        is_script = content is not None and (content.startswith(b"#!") or path.endswith((".sh", "env_setup")))
        if content is not None and is_script and len(content) <= _SCRIPT_BYTES:
            yield path, content.decode(errors="replace").replace("\\\n", " ")


def _installs(text: str) -> Iterator[tuple[str, str]]:
    for words in segments(text):
        if words[:2] in (["python", "-m"], ["python3", "-m"]):
            words = words[2:]  # noqa: PLW2901 - the same command under its own name
        for language in LANGUAGES:
            adds = language.images.installs if words and language.images else None
            if adds and (line := adds(words)):
                yield language.name, line
