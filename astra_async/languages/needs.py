"""What an image for a project is made of: a toolchain, and one part for each place with dependencies."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE = "/var/cache/astra"  # for caches that runs of the tests share: /tmp is a fresh tmpfs in every run


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Everything that is run for a problem, as one text, and what follows from it.

    `languages` are those whose programs it calls. `installs` are command lines that add packages by name
    (`npm install -g X`, `pip install X`), by language, to be run beside the installation from the project's
    files.
    """

    text: str
    languages: frozenset[str]
    folders: tuple[str, ...]
    installs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What all sets of one kind share: the layers below the dependencies.

    `packages` are Debian's; `first` of them have a layer of their own, below the others. `versions` are
    programs of which a project asks for one version: its major number and the shell lines that fetch it,
    none for Debian's own; where several parts of a project ask, the newest is taken. `image` is an official
    image to stand on instead of this project's base.
    """

    label: str
    packages: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    versions: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""  # shell lines that run as root when the toolchain's image is made
    dockerfile: str = ""  # lines of the Dockerfile above those that install the packages
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an image holds beside its toolchain, and how that gets there.

    `files` are those that the installation needs, by their path in the project; `install` is a shell script
    that runs as root in the project's folder with the network on. `warms` says that one run of the tests
    leaves caches behind from which later runs gain. `notes` tell a user why it is as it is, and decide
    nothing.
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
    """Everything that decides about a project's image, and nothing else of the project.

    Projects with equal stacks share an image.
    """

    name: str


def script(name: str, **variables: str) -> str:
    """A shell script of a language's folder as a function body, with variables set before it."""
    settings = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return settings + (resources.files("astra_async.languages") / name).read_text()
