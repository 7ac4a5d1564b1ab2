"""Derive a Docker image from a project: languages, versions and dependencies in its files and commands.

`detect` returns a `Stack` for a pristine project, or None. Two image sets follow from a stack. The toolchain
set (system packages, Node.js, browser, the user of test runs) is shared by all projects with that toolchain.
The project set holds only the project's dependency files. `images.build` builds both.

All functions are pure: nothing is run, downloaded or written.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from astra_async.languages import LANGUAGES
from astra_async.languages.needs import CACHE, Commands, Part, Stack, Toolchain
from astra_async.overlay.tools import ENTERED
from astra_async.problems.manifest import find_manifest, read_install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable

    from astra_async.types import Problem, Project


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
    """Return name and files of a toolchain's set: system packages, programs, the tests' user and its HOME."""
    folders = ("home", "offline", *(["browser"] if "chromium" in toolchain.packages else []))
    files = {path: content for folder in folders for path, content in _below(_TEMPLATES / folder, folder)}
    files["Dockerfile"] = _toolchain_dockerfile(toolchain).encode()
    setup = toolchain.setup + "".join(fetched for _, fetched in toolchain.versions.values())
    if setup:
        setup = f"(\n{setup}) || exit 1\nrm -rf home offline browser\n"
        files["install.sh"] = _install_script(setup).encode()
    return f"stack-{toolchain.label}", files


def project_set(stack: Stack, toolchain_image: str) -> tuple[str, dict[str, bytes]]:
    """Return name and files of the set with a project's dependencies, based on `toolchain_image`."""
    environment = "".join(_env(name, value) for name, value in sorted(stack.environment.items()))
    # The Dockerfile names its parent image, so the parent is part of this image's hash.
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
    """Return the content of a file in `templates/`."""
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


_SCRIPT_BYTES = 64 * 1024
_MANIFEST_BYTES = 1024**2
_DEPTH = 3  # a script that calls a script that calls a script
_MAX_SEGMENTS = 400
_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^!].*$")
_SCRIPTS = [language.tools.scripts for language in LANGUAGES if language.tools.scripts]
_PREFIXES = ("sudo", "exec", "time", "env", "(", "{")


def read_commands(problem: Problem, files: Mapping[str, bytes], manifest: bytes) -> Commands:
    """Parse the test command, the manifest's install command, and the scripts they call."""
    lines = [problem.test_command, read_install_command(manifest)]
    text = _COMMENT.sub("", "\n".join([*lines, *_called(lines, files)]))
    return Commands(
        text=text,
        languages=frozenset(
            language.name for language in LANGUAGES if language.images and language.images.calls.search(text)
        ),
        folders=tuple(dict.fromkeys(folder.strip("/") for folder in ENTERED.findall(text))),
        installs=tuple(dict.fromkeys(_installs(text))),
    )


def segments(text: str) -> Iterator[list[str]]:
    """Yield the simple commands of a shell text as words; skip parts that shlex cannot split."""
    for number, segment in enumerate(_SEGMENT.split(text)):
        if number > _MAX_SEGMENTS:
            return
        try:
            words = shlex.split(segment, comments=False)
        except ValueError:
            continue
        while words and (re.match(r"\w+=", words[0]) or words[0] in _PREFIXES):
            words.pop(0)
        if words:
            yield words


def _called(lines: list[str], files: Mapping[str, bytes]) -> list[str]:
    """Return the npm and shell scripts that the lines call, directly or indirectly, as texts."""
    found: dict[str, str] = {}
    texts = list(lines)
    for _ in range(_DEPTH):
        fresh: dict[str, str] = {}
        for words in segments("\n".join(texts)):
            fresh |= {name: text for name, text in _calls_of(words, files) if name not in found}
        found |= fresh
        texts = list(fresh.values())
    return list(found.values())


def _calls_of(words: list[str], files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    line = " ".join(words)
    top = {path: text for path, text in files.items() if "/" not in path and len(text) <= _MANIFEST_BYTES}
    for path, text in top.items():
        for read in _SCRIPTS:
            yield from read(path, text.decode(errors="replace"), line).items()
    for word in words[:3]:
        path = word.removeprefix("./")
        content = files.get(path)
        is_script = content is not None and (content.startswith(b"#!") or path.endswith((".sh", "env_setup")))
        if content is not None and is_script and len(content) <= _SCRIPT_BYTES:
            yield path, content.decode(errors="replace").replace("\\\n", " ")


def _installs(text: str) -> Iterator[tuple[str, str]]:
    for words in segments(text):
        if words[:2] in (["python", "-m"], ["python3", "-m"]):
            words = words[2:]  # noqa: PLW2901 - `python -m pip` equals `pip`
        for language in LANGUAGES:
            adds = language.images.installs if words and language.images else None
            if adds and (line := adds(words)):
                yield language.name, line


T = TypeVar("T")
_NEVER = frozenset({"node_modules", "vendor", ".git", "target", "build", "dist", "bin", "obj", "__pycache__"})
_MAX_FOLDERS = 12
_MAX_FILE_BYTES = 16 * 1024**2


def detect(project: Project, problem: Problem) -> Stack | None:
    """Return what the project's image needs, or None if no file or command says what to install.

    Dependencies are searched in the root, in its direct subfolders and in folders that the commands name. If
    the commands show the languages of the tests, only those languages are used.
    """
    files = {
        file.path: file.content
        for file in project.files
        if file.link is None and len(file.content) <= _MAX_FILE_BYTES
    }
    manifest = find_manifest(project)
    commands = read_commands(problem, files, manifest.content if manifest else b"")
    parts = [
        part
        for folder in _folders(files, commands)
        for language in LANGUAGES
        if language.images and (part := language.images.find(files, folder, commands)) is not None
    ]
    whole = {part.language for part in parts if part.files}
    parts = [part for part in parts if part.files or part.language not in whole]
    used = [part for part in parts if part.language in commands.languages]
    return _stack(used or parts, commands) if parts else None


def _folders(files: Mapping[str, bytes], commands: Commands) -> list[str]:
    below = sorted({path.split("/")[0] for path in files if path.count("/") == 1} - _NEVER)
    known = {path.rpartition("/")[0] for path in files}
    named = [folder for folder in commands.folders if folder in known]
    return list(dict.fromkeys(["", *named, *below]))[:_MAX_FOLDERS]


def _stack(parts: Sequence[Part], commands: Commands) -> Stack:
    steps = [part.install for part in parts if part.install]
    languages = {part.language for part in parts}
    # A package in a command may already be in the image under another name, so a failure is only noted.
    added = (line for language, line in commands.installs if language in languages)
    steps += [f"attempt {line} || note {shlex.quote(line + ' failed')}\n" for line in added]
    return Stack(
        name="-".join(dict.fromkeys(part.label for part in parts)),
        toolchain=_together([part.toolchain for part in parts]),
        files=_united(part.files for part in parts),
        install=template("attempts.sh").decode() + "".join(f"(\n{step}) || exit 1\n" for step in steps),
        environment=_united(part.environment for part in parts),
        warms=any(part.warms for part in parts),
        notes=tuple(_printable(note) for part in parts for note in part.notes),
    )


def _united(tables: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {name: value for table in tables for name, value in table.items()}


def _printable(text: str) -> str:
    """Return a note that is safe for a terminal, because it quotes arbitrary text of the project."""
    return "".join(each if each.isprintable() else "?" for each in text)[:300]


def _together(toolchains: Sequence[Toolchain]) -> Toolchain:
    """Merge toolchains into one with all their packages and the newest version of each program."""
    different = list(dict.fromkeys(toolchain.label for toolchain in toolchains))
    short = "several-" + hashlib.sha256("\0".join(different).encode()).hexdigest()[:8]
    return Toolchain(
        label="-".join(different) if len(different) <= 3 else short,  # noqa: PLR2004 - keep the name readable
        packages=frozenset().union(*(toolchain.packages for toolchain in toolchains)),
        first=tuple(dict.fromkeys(name for toolchain in toolchains for name in toolchain.first)),
        versions={
            program: max(each.versions[program] for each in toolchains if program in each.versions)
            for program in _united(each.versions for each in toolchains)
        },
        environment=_united(toolchain.environment for toolchain in toolchains),
        setup="".join(dict.fromkeys(toolchain.setup for toolchain in toolchains)),
        dockerfile="".join(dict.fromkeys(toolchain.dockerfile for toolchain in toolchains)),
        image=next((toolchain.image for toolchain in toolchains if toolchain.image), ""),
    )


__all__ = ["Stack", "detect", "project_set", "toolchain_set"]
