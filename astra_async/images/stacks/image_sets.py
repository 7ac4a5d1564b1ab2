"""Writes the folders from which a toolchain's image and a project's image are made (see `images.build`)."""

from __future__ import annotations

import shlex
from importlib import resources
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.needs import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from astra_async.languages.needs import Stack, Toolchain

_TEMPLATES = resources.files("astra_async.images.stacks") / "templates"

_OFFLINE = "/opt/offline/bin"
_PATH = f"{_OFFLINE}:/opt/venv/bin:/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RULES = [language.images for language in LANGUAGES if language.images]
_SKIPPED = (*(name for rules in _RULES for name in rules.managers), "apt", "apt-get", "sudo")
_GENERATED = tuple(name for rules in _RULES for name in rules.leavings)
_EVERYWHERE = frozenset({"ca-certificates", "curl", "procps"})
_APT = (
    "RUN apt-get update \\\n    && apt-get install -y --no-install-recommends {packages} \\\n"
    "    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb\n"
)


def toolchain_set(toolchain: Toolchain) -> tuple[str, dict[str, bytes]]:
    """Name and files of a toolchain's set: system packages, fetched programs, the runs' user and its HOME."""
    folders = ("home", "offline", *(["browser"] if "chromium" in toolchain.packages else []))
    files = {path: content for folder in folders for path, content in _below(_TEMPLATES / folder, folder)}
    files["Dockerfile"] = _toolchain_dockerfile(toolchain).encode()
    setup = toolchain.setup + "".join(fetched for _, fetched in toolchain.versions.values())
    if setup:
        setup = f"(\n{setup}) || exit 1\nrm -rf home offline browser\n"
        files["install.sh"] = _install_script(setup).encode()
    return f"stack-{toolchain.label}", files


def project_set(stack: Stack, toolchain_image: str) -> tuple[str, dict[str, bytes]]:
    """Name and files of the set of a project's dependencies, standing on `toolchain_image`."""
    environment = "".join(_env(name, value) for name, value in sorted(stack.environment.items()))
    # The name of the image below is in the text, so that it is in this one's hash.
    dockerfile = f"ARG BASE\n# on {toolchain_image}\nFROM ${{BASE}}\n{environment}"
    folders = dict.fromkeys(path.rpartition("/")[0] for path in stack.files)
    generated = (f"{folder}/{name}".lstrip("/") for folder in folders for name in _GENERATED)
    ours = " ".join(shlex.quote(path) for path in (*stack.files, *generated))
    install = (
        "mkdir -p challenge && cd challenge || exit\n"
        f"{stack.install}"
        f"rm -f -- {ours}\n"
        "find . -name node_modules -prune -o -type d -empty ! -name . -print | sort -r"
        " | xargs -r -d '\\n' rmdir -- 2>/dev/null\n"
        "chown -R 1000:1000 .\n"
    )
    files = {f"challenge/{path}": content for path, content in stack.files.items()}
    files |= {"Dockerfile": dockerfile.encode(), "install.sh": _install_script(install).encode()}
    return stack.name, files


def template(name: str) -> bytes:
    """A file of `templates/`."""
    return (_TEMPLATES / name).read_bytes()


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        path = f"{prefix}/{each.name}"
        if each.is_dir():
            yield from _below(each, path)
        else:
            yield path, each.read_bytes()


def _toolchain_dockerfile(toolchain: Toolchain) -> str:
    rest = sorted((toolchain.packages | _EVERYWHERE) - set(toolchain.first))
    lines = [f"ARG BASE=debian:bookworm-slim\nFROM {toolchain.image or '${BASE}'}\n"]
    if toolchain.first:
        lines.append(_APT.format(packages=" ".join(toolchain.first)))
    lines.append(toolchain.dockerfile)
    lines.append(_APT.format(packages=" ".join(rest)))
    lines.append("COPY offline/ /opt/offline/bin/\n")
    links = " ".join(_SKIPPED)
    lines.append(f"RUN cd {_OFFLINE} \\\n    && for name in {links}; do ln -s skip-installs $name; done\n")
    if "chromium" in toolchain.packages:
        lines.append("COPY browser/ /opt/browser/\n")
    lines.append("COPY home/ /opt/home/\n")
    home = '"$(getent passwd 1000 | cut -d: -f6)"'
    lines.append(
        "RUN { getent passwd 1000 || useradd --uid 1000 --create-home runner; } >/dev/null \\\n"
        f'    && home={home} && cp -rT /opt/home "$home" && rm -r /opt/home \\\n'
        f'    && mkdir -p /projects {CACHE} && chown -R 1000:1000 "$home" /projects {CACHE}\n'
    )
    environment = {"PATH": _PATH, **toolchain.environment}
    return "".join([*lines, *(_env(name, value) for name, value in sorted(environment.items()))])


def _install_script(body: str) -> str:
    return (
        "#!/bin/bash\n"
        "# Runs as root in /projects with the network on; see docs/images.md.\n"
        "set -uo pipefail\n"
        f"export PATH=${{PATH#{_OFFLINE}:}} TMPDIR=/tmp HOME=/root CI=true\n"
        "unset PIP_NO_INDEX NODE_OPTIONS\n"
        f"{body}"
        "rm -rf /root/.npm /root/.cache /root/.yarn /root/.local/share/pnpm /root/.bundle/cache\n"
    )


def _env(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'ENV {name}="{escaped}"\n'
