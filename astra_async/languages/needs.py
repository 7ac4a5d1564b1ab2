"""Data structures for the needs of a project's image: a toolchain, and one part per folder and language."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE = "/var/cache/astra"  # shared by test runs, because /tmp is a new tmpfs in every run


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """All commands of a problem, as one text, and facts derived from them.

    `languages` are those whose programs the commands call. `installs` are (language, command) pairs that add
    packages by name (`npm install -g X`, `pip install X`), run in addition to the project's own installation.
    """

    text: str
    languages: frozenset[str]
    folders: tuple[str, ...]
    installs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The image layers below the dependencies, shared by similar projects.

    `packages` are Debian packages; those in `first` are in a separate lower layer. `versions` maps a program
    to its major version and the shell lines that download it ('' for Debian's version). If several parts of a
    project need the program, the newest version is used. `image` is an official base image that replaces this
    project's own.
    """

    label: str
    packages: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    versions: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""  # shell lines run as root while the toolchain's image is built
    dockerfile: str = ""  # Dockerfile lines before the installation of packages
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Content of an image in addition to its toolchain.

    `files` are needed for the installation, by project path. `install` is a shell script that runs as root in
    the project's folder with network access. `warms` is True if a test run leaves caches that speed up later
    runs. `notes` explain the choices to the user and have no effect.
    """

    toolchain: Toolchain
    files: Mapping[str, bytes] = field(default_factory=dict)
    install: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    warms: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Needs):
    """The dependencies of one folder in one language."""

    language: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Needs):
    """Everything about a project that its image depends on.

    Projects with equal stacks share an image.
    """

    name: str


def script(name: str, **variables: str) -> str:
    """Return a shell script of a language's folder, preceded by variable assignments."""
    settings = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return settings + (resources.files("astra_async.languages") / name).read_text()
