"""What an image for a project is made of: a toolchain, and one part for each place with dependencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Language = Literal["node", "python", "ruby", "java", "dotnet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What all sets of one kind share: the layers below the dependencies.

    `packages` are Debian's; `node` is the major version of Node.js that is fetched from npm, None for none
    or Debian's own. `image` is an official image to stand on instead of this project's base.
    """

    label: str
    packages: frozenset[str] = frozenset()
    node: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""  # shell lines that run as root when the toolchain's image is made
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

    language: Language
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Needs):
    """Everything that decides about a project's image, and nothing else of the project.

    Projects with equal stacks share an image.
    """

    name: str
