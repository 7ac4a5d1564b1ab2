"""Writes the folders from which a toolchain's image and a project's image are made (see `images.build`)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from astra_async.images.stacks.node import JEST_CACHE
from astra_async.images.stacks.node_version import RELEASES
from astra_async.images.stacks.scripts import script, template

if TYPE_CHECKING:
    from astra_async.images.stacks.model import Stack, Toolchain

_OFFLINE = "/opt/offline/bin"
_PATH = f"{_OFFLINE}:/opt/venv/bin:/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SKIPPED = (
    *("npm", "yarn", "pnpm", "bun", "pip", "pip3", "gem", "bundle", "bundler"),
    *("rvm", "rbenv", "apt", "apt-get", "sudo"),
)
_HOME_FILES = {".nvm/nvm.sh": "home/.nvm/nvm.sh", ".rvm/scripts/rvm": "home/.rvm/scripts/rvm"}
_EVERYWHERE = frozenset({"ca-certificates", "curl", "procps"})
_NODE = ("nodejs", "npm")
_APT = (
    "RUN apt-get update \\\n    && apt-get install -y --no-install-recommends {packages} \\\n"
    "    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb\n"
)


def toolchain_set(toolchain: Toolchain) -> tuple[str, dict[str, bytes]]:
    """Name and files of a toolchain's set: system packages, another Node.js, the runs' user and its HOME."""
    files = {f"home/{path}": template(source) for path, source in _HOME_FILES.items()}
    files["offline/skip-installs"] = template("offline/skip-installs")
    if "chromium" in toolchain.packages:
        files["browser/chrome"] = template("browser/chrome")
    files["Dockerfile"] = _toolchain_dockerfile(toolchain).encode()
    setup = toolchain.setup
    if toolchain.node is not None:
        version, npm = RELEASES[toolchain.node]
        setup += script("node.sh", NODE=".".join(map(str, version)), NPM=npm)
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


_GENERATED = ("package-lock.json", "yarn.lock", "pnpm-lock.yaml")


def _toolchain_dockerfile(toolchain: Toolchain) -> str:
    rest = sorted((toolchain.packages | _EVERYWHERE) - set(_NODE))
    lines = [f"ARG BASE=debian:bookworm-slim\nFROM {toolchain.image or '${BASE}'}\n"]
    if "nodejs" in toolchain.packages:
        lines.append(_APT.format(packages=" ".join(_NODE)))  # the layer of the bundled JavaScript sets
    if any(name.startswith("openjdk-") for name in rest):
        # A slim Debian leaves the manual out, but Java's packages want to link their pages in its folder.
        lines.append("RUN mkdir -p /usr/share/man/man1\n")
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
        f'    && mkdir -p /projects {JEST_CACHE} && chown -R 1000:1000 "$home" /projects {JEST_CACHE}\n'
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
