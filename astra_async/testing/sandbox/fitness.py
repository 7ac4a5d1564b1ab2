"""Looks once into an image: which user runs there, where is HOME, is there a bash."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.errors import ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import one_line
from astra_async.testing.sandbox.execution import run_orders
from astra_async.testing.sandbox.hardened import FALLBACK_HOME
from astra_async.testing.sandbox.script import orders

if TYPE_CHECKING:
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Limits

UNPRIVILEGED = (1000, 1000)
# Only what bash itself provides: an image need not have `id` or `test`.
_QUESTION = (
    'IFS=; writable=no; [ -d "$HOME" ] && [ -w "$HOME" ] && writable=yes; '
    'printf "%s\\n" "$UID" "${GROUPS[0]}" "$writable" "$HOME"'
)
_ROOT_NAMES = ("", "0", "root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """How containers of one image are run: numeric user and group, and HOME."""

    uid: int
    gid: int
    home: str

    @property
    def user(self) -> str:
        """The user as the engine's create request wants it."""
        return f"{self.uid}:{self.gid}"


def declared_user(image_user: str) -> str:
    """The user to look as: the image's own when it is not root, else 1000:1000."""
    return "1000:1000" if image_user.partition(":")[0] in _ROOT_NAMES else image_user


async def look(engine: Engine, container: str, limits: Limits) -> Fitness:
    """Run the question in a created container, which the caller removes.

    Raises:
        ImageError: the image has no bash, or its user does not exist.
        SandboxError: it took too long.
    """
    todo = orders(_QUESTION, mark=secrets.token_hex(16), environment={})
    ended = await run_orders(engine, container, todo, limits)
    if ended.stopped:
        raise SandboxError(
            f"The image's bash gave no answer in {limits.timeout_s:.0f} s; is the host overloaded?"
        )
    answer = ended.output.stdout.text().split("\n", 3)
    if ended.exit_code or len(answer) != len(("uid", "gid", "writable", "home")):
        shown = one_line(ended.output.combined.text())
        raise ImageError(f"The image's bash does not work (exit code {ended.exit_code}): {shown}")
    uid, gid, writable, home = answer
    return Fitness(uid=int(uid), gid=int(gid), home=home.rstrip("\n") if writable == "yes" else FALLBACK_HOME)
