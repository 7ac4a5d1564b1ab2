"""What a look into an image has shown (`looking`): how its containers are run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UNPRIVILEGED = (1000, 1000)
_KEEPERS = (65532, 65531)  # no image's user; within the ids that a rootless engine has


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """How containers of one image are run: numeric user and group, HOME, and where the tests may write.

    `empty` are folders that get a tmpfs; `contents` folders that get one the engine can reach, each with what
    the image keeps there (entries of a tar by their names, a folder's ending in a slash). `overlaid` are
    folders that get a bounded layer, each with its own entry of a tar. `layered` is true where the tests may
    also write to the container's own layer.
    """

    uid: int
    gid: int
    home: str
    empty: tuple[str, ...] = ()
    contents: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    overlaid: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    layered: bool = True

    @property
    def user(self) -> str:
        """The tests' user, as the engine wants it."""
        return f"{self.uid}:{self.gid}"

    @property
    def keeper(self) -> str:
        """The user of the first process: never that of the tests."""
        return next(f"{each}:{each}" for each in _KEEPERS if each != self.uid)


def unseen() -> Fitness:
    """The fitness of an image of which nothing is known: everything is written to the container's layer."""
    return Fitness(uid=UNPRIVILEGED[0], gid=UNPRIVILEGED[1], home="")
