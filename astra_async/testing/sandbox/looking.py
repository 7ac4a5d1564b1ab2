"""Inspect an image once: its user, HOME, whether it has bash, and which folders the tests may write to.

A folder that the tests' user may write to gets a tmpfs with a limited size, so the kernel limits what is
written there by any system call. The image's files in that folder are fetched once and uploaded to every
container together with the project. If those files are too large (dependencies in the project's folder, a
Maven repository in HOME), or if only files but not the folder are writable, the folder gets a size-limited
layer instead (see `bounded_layers`). If neither is possible, writes go to the container's own layer, whose
size is only watched.
"""

from __future__ import annotations

import io
import posixpath
import re
import shlex
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.testing.sandbox.hardened import FALLBACK_HOME, Fitness
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.testing.sandbox.resultfiles import PROJECT, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Limits

_ROOT_NAMES = ("", "0", "root")
_CONTENT_BYTES = 24 * 1024**2
_PLACES = 32
_OVERLAID = 8
_MOUNTABLE = re.compile(r"/[^:,\\]+\Z")  # the other characters are special in overlay options
# Uses bash builtins only, because an image may lack `id`, `test` and `find`. Prefixes: E is an empty writable
# folder, D a writable folder with files, F a read-only folder with a writable file. /tmp is a tmpfs already.
_QUESTION = r"""
IFS=
writable=no
[ -d "$HOME" ] && [ -w "$HOME" ] && writable=yes
printf '%s\0' "$UID" "${GROUPS[0]}" "$writable" "$HOME"
shopt -s nullglob dotglob
look() {
  local each inside files=
  for each in "$1"/*; do
    [ -L "$each" ] && continue
    case $each in /proc | /sys | /dev | /tmp) continue ;; esac
    if [ ! -d "$each" ]; then
      [ -w "$each" ] && [ -f "$each" ] && files=yes
    elif [ -w "$each" ]; then
      inside=("$each"/*)
      if [ "${#inside[@]}" = 0 ]; then printf 'E%s\0' "$each"; else printf 'D%s\0' "$each"; fi
    else
      look "$each"
    fi
  done
  [ -z "$files" ] || printf 'F%s\0' "${1:-/}"
}
if [ -w / ]; then printf 'F/\0'; else look ''; fi
"""


def try_layers(fitness: Fitness) -> str:
    """Return a command that exits with 0 if the tests can write to their bounded layers."""
    places = " ".join(map(shlex.quote, fitness.overlaid))
    return f'for each in {places}; do [ ! -w "$each" ] || : > "$each/.astra-layer" || exit 1; done'


def declared_user(image_user: str) -> str:
    """Return the user for the inspection: the image's own unless it is root, else 1000:1000."""
    return "1000:1000" if image_user.partition(":")[0] in _ROOT_NAMES else image_user


async def look(
    engine: Engine, container: str, limits: Limits, *, user: str, declared: Iterable[str]
) -> Fitness:
    """Inspect a created container, which the caller removes; `declared` are the image's volumes.

    Raises:
        ImageError: the image has no bash, or its user does not exist.
        SandboxError: the inspection took too long.
    """
    async with await Keeper.start(engine, container):
        ended = await run_command(engine, container, Command(text=_QUESTION, user=user), limits)
        if ended.stopped:
            raise SandboxError(
                f"The image's bash gave no answer within {limits.timeout_s:.0f} s; is the host overloaded?"
            )
        output = ended.output.stdout.text()
        answer = output.split("\0")
        if ended.exit_code or not output.endswith("\0") or len(answer) < len(("uid", "gid", "w", "home", "")):
            shown = both_ends(ended.output.text().replace("\0", " "))
            raise ImageError(f"The image's bash does not work (exit code {ended.exit_code}): {shown}")
        uid, gid, writable, home, *places, _ = answer
        fitness = Fitness(uid=int(uid), gid=int(gid), home=home if writable == "yes" else FALLBACK_HOME)
        return await _with_places(engine, container, fitness, places, declared=declared)


async def _with_places(
    engine: Engine, container: str, fitness: Fitness, places: list[str], *, declared: Iterable[str]
) -> Fitness:
    volumes = {f"/{path.strip('/')}" for path in declared}
    # /etc must be a layer, because the engine mounts its own files there.
    etc = [place[1:] for place in places if place[0] != "F" and place[1:].startswith("/etc")]
    ours = [place for place in places if place[1:] != PROJECT and place[1:] not in etc]
    empty = [place[1:] for place in ours if place[0] == "E"]
    filled = [place[1:] for place in ours if place[0] == "D"]
    # A volume declared by the image is an unlimited folder on the host's disk unless it is replaced by a
    # mount.
    filled += [place for place in empty if place in volumes]
    empty = [place for place in empty if place not in volumes]
    contents: dict[str, Mapping[str, bytes]] = {}
    large: list[str] = []
    for place in (PROJECT, *filled):
        content = await _content(engine, container, place) if len(contents) < _PLACES else None
        if content is None:
            large.append(place)
        else:
            contents[place] = content
    with_files = [place[1:] for place in ours if place[0] == "F"]
    # If there are many such folders, use their common parent instead.
    large += [posixpath.commonpath(with_files)] if len(with_files) > _OVERLAID // 2 else with_files
    large += [*etc, *empty[_PLACES:]]
    mountable = [place for place in large if _MOUNTABLE.match(place)][:_OVERLAID]
    return replace(
        fitness,
        empty=tuple(empty[:_PLACES]),
        contents=contents,
        overlaid={place: await _entry(engine, container, place) for place in mountable},
        layered=len(mountable) < len(large),
    )


async def _entry(engine: Engine, container: str, folder: str) -> Mapping[str, bytes]:
    """Return an image's folder as a tar entry, so that a mount there gets the folder's owner and mode."""
    async with engine.packed(container, folder) as chunks:
        async for entry, _ in entries(chunks, lambda _: False, most_bytes=_CONTENT_BYTES):
            entry.name, entry.pax_headers = folder.lstrip("/"), {}
            return {f"{entry.name}/": entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")}
    return {}


async def _content(engine: Engine, container: str, place: str) -> Mapping[str, bytes] | None:
    """Return the image's files in a folder as tar entries, or None if they are too large."""
    packed = bytearray()
    async with engine.packed(container, place) as chunks:
        async for chunk in chunks:
            packed += chunk
            if len(packed) >= _CONTENT_BYTES:
                return None
    if not packed:
        return {}
    above = place.lstrip("/").rpartition("/")[0]
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as tar:
        for entry in tar:
            entry.name = f"{above}/{entry.name}".lstrip("/")
            if entry.islnk():
                entry.linkname = f"{above}/{entry.linkname}".lstrip("/")
            if place != PROJECT and f"/{entry.name}/".startswith(f"{PROJECT}/"):
                continue  # the project's folder is handled separately
            entry.pax_headers = {}
            file = tar.extractfile(entry) if entry.isreg() else None
            content = file.read() if file else b""
            header = entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")
            name = f"{entry.name}/" if entry.isdir() else entry.name
            found[name] = header + content + bytes(-len(content) % tarfile.BLOCKSIZE)
    return found
