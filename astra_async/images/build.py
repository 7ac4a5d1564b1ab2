"""Build one image for each dependency set, once, named by the hash of its inputs.

A set is a folder with a `Dockerfile` (`ARG BASE`, `FROM ${BASE}`, system packages) and, optionally,
`install.sh` and the files it needs. The Dockerfile is built first. `install.sh` then runs in a container of
that image: as root, in `/projects`, with the set's files, network access and the host's certificate
authorities (in $SSL_CERT_FILE and similar variables). The files that it leaves, such as
`/projects/node_modules`, are committed to the image; certificates and environment variables of that step are
not. Sets come from the problem set or from this package, never from an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import re
import tarfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.errors import ImageError, StorageError
from astra_async.images.base_image import build_image, ensure_base, proxies, remove_unnamed
from astra_async.testing.reports.suite_failures import relevant_lines
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.testing.sandbox.keeper import HELD, Keeper, entry_point
from astra_async.testing.sandbox.sweep import LABELS, container_name
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from astra_async.images.failed_images import FailedImages
    from astra_async.testing.sandbox.engine import Engine

_RULES = "1"  # increment if a change to this module changes the images of unchanged folders
_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*\Z")
_FOLDER = "/projects"
_AUTHORITIES = "/.astra-authorities.crt"
_AUTHORITY_VARIABLES = (
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "GIT_SSL_CAINFO",
)  # fmt: skip
_CACHES = "/tmp/astra-install"  # noqa: S108 - inside a container of our own, removed before the commit
_QUIET = {
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_cache": f"{_CACHES}/npm",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
}
_INSTALL = (
    f"bash ./install.sh; status=$?; rm -rf -- ./install.sh ./Dockerfile {_CACHES} {_AUTHORITIES}; "
    "exit $status"
)
_INSTALL_LIMITS = Limits(timeout_s=3600.0, disk_bytes=32 * 1024**3, output_bytes=64 * 1024)
_NOTE = "astra: "


def image_tag(folder: Path) -> str:
    """Return the name of a set's image: `astra/<folder name>:<12 hex digits of the hash of its contents>`.

    Raises:
        ImageError: there is no Dockerfile, or the folder's name is not a valid image name.
    """
    if not (folder / "Dockerfile").is_file():
        raise ImageError(f"{folder} has no Dockerfile, so no image can be built from it")
    if not _NAME.match(folder.name):
        raise ImageError(f"{folder.name!r} is no valid image name; use lower-case letters, digits, - . and _")
    digest = hashlib.sha256(f"{_RULES}\0{os.environ.get('ASTRA_BASE_IMAGE', '')}".encode())
    for path in _files(folder):
        content = path.read_bytes()
        executable = os.access(path, os.X_OK)
        name = path.relative_to(folder).as_posix()
        digest.update(f"\0{name}\0{executable:d}\0{len(content)}\0".encode() + content)
    return f"astra/{folder.name}:{digest.hexdigest()[:12]}"


async def ensure_image_set(
    engine: Engine,
    folder: Path,
    *,
    progress: Callable[[str], None],
    base: str = "",
    failures: FailedImages | None = None,
) -> str:
    """Return the name of a set's image; build the image first if it does not exist (takes minutes).

    `base` is the parent image, by default the common base image. It affects the name only if the set's files
    mention it. Lines of install.sh's output that begin with `astra: ` are passed to `progress`. A set that
    has failed according to `failures` is not built again, and a new failure is recorded there.

    Raises:
        ImageError: the build or the installation failed; the message has the last lines of output. No partial
            image is left.
    """
    tag = await asyncio.to_thread(image_tag, folder)
    if await engine.image(tag):
        return tag
    if failures and (known := failures.of(tag)):
        raise ImageError(known.why)
    base = base or await ensure_base(engine, progress=progress)
    try:
        await _make(engine, folder, tag, base=base, progress=progress)
    except ImageError as error:
        if failures:
            with contextlib.suppress(OSError, StorageError):  # unrecorded failures are simply tried again
                await asyncio.to_thread(failures.keep, tag, error)
        raise
    if failures:
        await asyncio.to_thread(failures.forget, tag)
    progress(f"Built {tag}")
    return tag


async def _make(
    engine: Engine, folder: Path, tag: str, *, base: str, progress: Callable[[str], None]
) -> None:
    context = await asyncio.to_thread(_archive, folder)
    installs = (folder / "install.sh").is_file()
    image_id = await build_image(
        engine,
        io.BytesIO(context),
        tag=None if installs else tag,
        arguments={"BASE": base},
        progress=lambda step: progress(f"Building {tag}: {step}"),
    )
    if installs:
        progress(f"Installing the dependencies of {tag}")
        output = await _install(engine, image_id, context, tag)
        for line in output.splitlines():
            if line.startswith(_NOTE):
                progress(f"{tag}: {line.removeprefix(_NOTE)}")


async def _install(engine: Engine, image_id: str, files: bytes, tag: str) -> str:
    """Run install.sh in a container of the image, commit the result under `tag`, and return its output."""
    config = (await engine.image(image_id) or {}).get("Config") or {}
    try:
        async with temporary_container(engine, _install_config(image_id)) as container:
            output = await _run_install(engine, container, files, tag)
            # Another process may have built this image already; a second commit would take over its tag.
            if not await engine.image(tag):
                await engine.commit(container, tag, committed_config(config))
    finally:
        # Remove the Dockerfile's image, unless the committed image is based on it.
        await asyncio.shield(remove_unnamed(engine, image_id))
    return output


@asynccontextmanager
async def temporary_container(engine: Engine, config: Mapping[str, Any]) -> AsyncIterator[str]:
    """Create a container and remove it at the end, even if the caller is cancelled during its creation."""

    async def remove() -> None:
        await asyncio.wait({creation})
        if not creation.cancelled() and creation.exception() is None:
            await engine.remove(creation.result())

    creation = asyncio.create_task(engine.create(config, container_name("images")))
    try:
        yield await asyncio.shield(creation)
    finally:
        await asyncio.shield(remove())


def committed_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration for an image that is committed from a container of another image.

    The engine fills missing fields from the container's configuration. Therefore containers of this step have
    no labels of this program: every container of the new image, and of images built from it, would inherit
    them. Labels of images made by earlier versions are removed for the same reason.
    """
    labels = {name: text for name, text in (config.get("Labels") or {}).items() if name not in LABELS}
    return {**config, "Entrypoint": [], "Cmd": ["bash"], "Labels": labels}


async def _run_install(engine: Engine, container: str, files: bytes, tag: str) -> str:
    environment = {**proxies(), **_QUIET}
    authorities = await asyncio.to_thread(_authorities)
    if authorities is not None:
        environment |= dict.fromkeys(_AUTHORITY_VARIABLES, _AUTHORITIES)
        await engine.upload(container, "/", _tar_of([(_AUTHORITIES.lstrip("/"), authorities, False)]))
    await engine.upload(container, _FOLDER, files)
    install = Command(text=_INSTALL, user="root", environment=environment)
    async with await Keeper.start(engine, container):
        ended = await run_command(engine, container, install, _INSTALL_LIMITS)
    output = ended.output.text()
    if ended.exit_code or ended.stopped:
        why = f"stopped by its {ended.stopped} limit" if ended.stopped else f"exit code {ended.exit_code}"
        raise ImageError(
            f"The dependencies of {tag} cannot be installed ({why}):\n{relevant_lines(output)}", output=output
        )
    return output


def _install_config(image_id: str) -> dict[str, Any]:
    return {
        "Image": image_id,
        "Entrypoint": entry_point(_INSTALL_LIMITS.timeout_s),
        "Cmd": [],
        "User": "root",
        "WorkingDir": _FOLDER,
        **HELD,
        "HostConfig": {"LogConfig": {"Type": "none", "Config": {}}},
    }


def _authorities() -> bytes | None:
    """Return the host's certificate authorities, which may include those of a company proxy."""
    candidates = (os.environ.get("SSL_CERT_FILE", ""), "/etc/ssl/certs/ca-certificates.crt")
    found = next((Path(each) for each in candidates if each and Path(each).is_file()), None)
    return found.read_bytes() if found else None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _archive(folder: Path) -> bytes:
    """Return the set's files as a tar, owned by root and without times, so that the builder's cache works."""
    return _tar_of(
        (path.relative_to(folder).as_posix(), path.read_bytes(), os.access(path, os.X_OK))
        for path in _files(folder)
    )


def _tar_of(files: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """Return a tar of files given by name, content and executable flag."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        for name, content, is_program in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if is_program else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
