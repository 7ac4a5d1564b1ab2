"""List the modules that an image holds in addition to a project, once for each image, in the cache.

The overlay needs the list to tell a file that would be loaded in place of an installed module from a file
whose name is only similar. The container holds neither the project nor an answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.files import write_atomically
from astra_async.languages import LANGUAGES
from astra_async.overlay import project_archive
from astra_async.types import Job, Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.overlay import Installed
    from astra_async.prepare import Prepared
    from astra_async.types import Limits, Sandbox

_LEAST_S = 120.0
_FOLDER = "astra-installed"
_MOST_NAMES = 400_000


class InstalledModules:
    """Lists each image's modules once and stores them in `cache`."""

    def __init__(self, cache: Path, sandbox: Sandbox, limits: Limits) -> None:
        self._cache = cache
        self._sandbox = sandbox
        self._limits = limits
        self._known: dict[str, Installed] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def fitted(self, prepared: Prepared, image: str) -> Prepared:
        """Return the problem with rules that know the modules in its image. Raises SandboxError."""
        return replace(prepared, policy=prepared.policy.with_installed(await self.of(image)))

    async def of(self, image: str) -> Installed:
        """Return the image's modules by language; languages without a list are absent.

        Raises SandboxError.
        """
        async with self._locks.setdefault(image, asyncio.Lock()):
            if image not in self._known:
                image_id = await self._sandbox.image_id(image)
                digest = hashlib.sha256(f"{image_id}\0{_command()}".encode()).hexdigest()
                path = self._cache / f"installed-{digest}.json"
                found = await asyncio.to_thread(read_stored, path)
                if found is None:
                    found = await self._ask(image)
                    self._cache.mkdir(parents=True, exist_ok=True)
                    await asyncio.to_thread(write_atomically, path, orjson.dumps(found))
                self._known[image] = {language: frozenset(names) for language, names in found.items()}
            return self._known[image]

    async def _ask(self, image: str) -> dict[str, list[str]]:
        languages = _scripts()
        job = Job(
            image=image,
            archive=project_archive(Project(files=(), sha256=""), {}),
            command=_command(),
            result_files=tuple(f"{_FOLDER}/{name}" for name in languages),
            limits=replace(self._limits, timeout_s=max(self._limits.timeout_s, _LEAST_S)),
            label="installed modules",
        )
        reports = (await self._sandbox.run(job)).reports
        return {
            name: reports[f"{_FOLDER}/{name}"].decode(errors="replace").splitlines()[:_MOST_NAMES]
            for name in languages
            if reports.get(f"{_FOLDER}/{name}")
        }


@cache
def _scripts() -> Mapping[str, str]:
    """Return for each language the script that lists an image's modules, one name a line."""
    root = resources.files("astra_async.languages")
    held = {each.name: each.images.holds for each in LANGUAGES if each.images and each.images.holds}
    return {name: (root / script).read_text() for name, script in held.items()}


@cache
def _command() -> str:
    return f"mkdir -p {_FOLDER}\n{''.join(_scripts().values())}true\n"


def read_stored(path: Path) -> dict[str, Any] | None:
    """Return the stored JSON object, or None if the file is missing or damaged."""
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
