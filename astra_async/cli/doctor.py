"""`astra doctor`: check of this machine, with remedies."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from astra_async.asking.providers import PROVIDERS
from astra_async.cli.console import say
from astra_async.cluster import check_installed
from astra_async.errors import SandboxError
from astra_async.redaction import public_text
from astra_async.running.problem_set import cache_root

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOSTS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "registry-1.docker.io")
_WANTED_DISK_BYTES = 20 * 10**9
_WANTED_MEMORY_BYTES = 4 * 10**9
_REACH_S = 5.0


@dataclass(frozen=True, slots=True)
class _Finding:
    subject: str
    state: str
    good: bool | None  # None: information without a judgment
    remedy: str = ""


@click.command()
@click.option("--cluster", metavar="ADDRESS", help="Check the nodes of this cluster instead of this machine.")
def doctor(*, cluster: str | None) -> int:
    """Check this machine, print missing parts and remedies; exit with 1 if a part is missing."""
    findings = asyncio.run(_nodes(cluster) if cluster else _examine())
    for finding in findings:
        mark = {True: "ok", False: "MISSING", None: "-"}[finding.good]
        remedy = f"  -> {finding.remedy}" if finding.remedy and not finding.good else ""
        say(f"{mark:>8}  {finding.subject:<26} {finding.state}{remedy}")
    return 1 if any(finding.good is False for finding in findings) else 0


async def _examine() -> list[_Finding]:
    return [*_machine(), *await _docker(), *_credentials(), *await asyncio.gather(*map(_reach, _HOSTS))]


def _machine() -> Iterator[_Finding]:
    yield _Finding("Python", platform.python_version(), good=True)
    yield _Finding("cores", str(os.cpu_count()), good=None)
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory = pages * page_bytes
    enough = memory >= _WANTED_MEMORY_BYTES
    yield _Finding(
        "memory", f"{memory / 1e9:.1f} GB", enough, "each container may use 4 GB: add --sandboxes 1"
    )
    place = cache_root()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    state = f"{free / 1e9:.0f} GB free at {place}"
    yield _Finding("disk", state, free >= _WANTED_DISK_BYTES, "images need 1 to 2 GB each: free disk space")


async def _nodes(address: str) -> list[_Finding]:
    check_installed()
    from astra_async.cluster.membership import survey

    found = [
        _Finding(f"node {name}", line, good=not trouble, remedy=trouble)
        for name, line, trouble in await survey(address)
    ]
    return found or [_Finding("nodes", "no node has joined", good=False, remedy=f"astra worker {address}")]


async def _docker() -> list[_Finding]:
    from astra_async.bundled import image_sets
    from astra_async.images.build import image_tag
    from astra_async.testing.sandbox.engine import Engine

    try:
        async with await Engine.open() as engine:
            about = await engine.ping()
            found = [
                _Finding(
                    "Docker Engine", f"{about.get('Version')} (API {about.get('ApiVersion')})", good=True
                )
            ]
            for name, folder in image_sets().items():
                there = await engine.image(image_tag(folder)) is not None
                state = "built" if there else "not built; a run or `astra images build` builds it"
                found.append(_Finding(f"image set {name}", state, good=True if there else None))
            return found
    except SandboxError as error:
        remedy = "run scripts/engine as root, or on Debian: apt-get install docker.io"
        if named := os.environ.get("DOCKER_HOST"):
            remedy = f"only DOCKER_HOST={public_text(named)} is used: correct it, or unset it"
        return [_Finding("Docker Engine", str(error), good=False, remedy=remedy)]


def _credentials() -> Iterator[_Finding]:
    users: dict[str, list[str]] = {}
    for provider, known in PROVIDERS.items():
        for name in filter(None, (known.key_variable, *known.credentials)):
            users.setdefault(name, []).append(provider)
    for name, providers in users.items():
        state = "set" if os.environ.get(name, "").strip() else "not set"
        yield _Finding(name, f"{state} ({', '.join(providers)})", good=None)


async def _reach(host: str) -> _Finding:
    try:
        async with asyncio.timeout(_REACH_S):
            _, writer = await asyncio.open_connection(host, 443)
    except (OSError, TimeoutError):
        return _Finding(host, "not reached", good=None)
    writer.close()
    return _Finding(host, "reachable", good=None)
