"""From a pristine project to what its image needs, by reading its files and commands; nothing is run."""

from __future__ import annotations

import hashlib
import shlex
from typing import TYPE_CHECKING, TypeVar

from astra_async.images.stacks.commands import read_commands
from astra_async.images.stacks.image_sets import template
from astra_async.languages import LANGUAGES
from astra_async.languages.needs import Part, Stack, Toolchain
from astra_async.problems.manifest import find_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astra_async.languages.needs import Commands
    from astra_async.types import Problem, Project

T = TypeVar("T")
_NEVER = frozenset({"node_modules", "vendor", ".git", "target", "build", "dist", "bin", "obj", "__pycache__"})
_MAX_FOLDERS = 12
_MAX_FILE_BYTES = 16 * 1024**2


def detect(project: Project, problem: Problem) -> Stack | None:
    """What the project's image needs; None when nothing in it says what to install.

    Dependencies are looked for at the root, in the folders directly below it and in those that the commands
    name. Where the commands tell which languages the tests use, only those count.
    """
    files = {
        file.path: file.content
        for file in project.files
        if file.link is None and len(file.content) <= _MAX_FILE_BYTES
    }
    manifest = find_manifest(project)
    commands = read_commands(problem, files, manifest.content if manifest else b"")
    parts = [
        part
        for folder in _folders(files, commands)
        for language in LANGUAGES
        if language.images and (part := language.images.find(files, folder, commands)) is not None
    ]
    whole = {part.language for part in parts if part.files}
    parts = [part for part in parts if part.files or part.language not in whole]
    used = [part for part in parts if part.language in commands.languages]
    return _stack(used or parts, commands) if parts else None


def _folders(files: Mapping[str, bytes], commands: Commands) -> list[str]:
    below = sorted({path.split("/")[0] for path in files if path.count("/") == 1} - _NEVER)
    known = {path.rpartition("/")[0] for path in files}
    named = [folder for folder in commands.folders if folder in known]
    return list(dict.fromkeys(["", *named, *below]))[:_MAX_FOLDERS]


def _stack(parts: Sequence[Part], commands: Commands) -> Stack:
    steps = [part.install for part in parts if part.install]
    languages = {part.language for part in parts}
    # A package that a command names may be one that the image has already, under another name.
    added = (line for language, line in commands.installs if language in languages)
    steps += [f"attempt {line} || note {shlex.quote(line + ' failed')}\n" for line in added]
    return Stack(
        name="-".join(dict.fromkeys(part.label for part in parts)),
        toolchain=_together([part.toolchain for part in parts]),
        files=_united(part.files for part in parts),
        install=template("attempts.sh").decode() + "".join(f"(\n{step}) || exit 1\n" for step in steps),
        environment=_united(part.environment for part in parts),
        warms=any(part.warms for part in parts),
        notes=tuple(_printable(note) for part in parts for note in part.notes),
    )


def _united(tables: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {name: value for table in tables for name, value in table.items()}


def _printable(text: str) -> str:
    """A note for a terminal: it quotes the project, which may hold anything."""
    return "".join(each if each.isprintable() else "?" for each in text)[:300]


def _together(toolchains: Sequence[Toolchain]) -> Toolchain:
    """One toolchain that can do what each can; of several versions of a program the newest."""
    different = list(dict.fromkeys(toolchain.label for toolchain in toolchains))
    short = "several-" + hashlib.sha256("\0".join(different).encode()).hexdigest()[:8]
    return Toolchain(
        label="-".join(different) if len(different) <= 3 else short,  # noqa: PLR2004 - a name to read
        packages=frozenset().union(*(toolchain.packages for toolchain in toolchains)),
        first=tuple(dict.fromkeys(name for toolchain in toolchains for name in toolchain.first)),
        versions={
            program: max(each.versions[program] for each in toolchains if program in each.versions)
            for program in _united(each.versions for each in toolchains)
        },
        environment=_united(toolchain.environment for toolchain in toolchains),
        setup="".join(dict.fromkeys(toolchain.setup for toolchain in toolchains)),
        dockerfile="".join(dict.fromkeys(toolchain.dockerfile for toolchain in toolchains)),
        image=next((toolchain.image for toolchain in toolchains if toolchain.image), ""),
    )
