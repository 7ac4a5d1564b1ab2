"""Installs that a project asks for when its tests run, made harmless: the image holds the dependencies.

Without a network `"pretest": "npm install"` hangs for minutes, and `npm install && npm test` never gets to
its second half. Two remedies, each only where it is needed:

- npm is told to ignore scripts when a hook of package.json installs; `npm test` itself still runs, and
  other hooks (a build) stay alive where no hook installs.
- npm, yarn and pnpm are wrapped in exported bash functions that skip an install, when the test command or
  a shell script of the project installs. The functions reach bash and its children, nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import Offline
from astra_async.languages.project_files import read_table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.types import Project

_INSTALLS = re.compile(r"\b(?:npm|pnpm|yarn)\s+(?:install|i|ci)\b|\byarn\s*(?:$|&&|;)", re.MULTILINE)
_BASH = (b"#!/bin/bash", b"#!/usr/bin/env bash")
_HOOKS = ("preinstall", "pretest", "posttest")
_WRAPPER = """\
{tool}() {{ case "${{1-{default}}}" in install|i|ci) echo "{tool} ${{1-}}: skipped, the image holds the \
dependencies"; return 0;; esac; command {tool} "$@"; }}; export -f {tool}
"""
_TOOLS = (("npm", ""), ("pnpm", ""), ("yarn", "install"))  # yarn without a word installs


def offline_environment(project: Project) -> dict[str, str]:
    """The environment that keeps hooks of package.json from installing."""
    package = next((file.content for file in project.files if file.path == "package.json"), None)
    scripts = table((read_table(package) or {}).get("scripts"))
    installs = any(_INSTALLS.search(str(scripts.get(hook, ""))) for hook in _HOOKS)
    return {"npm_config_ignore_scripts": "true"} if installs else {}


def offline_command(command: str, project: Project) -> str:
    """The test command, with installs skipped if it, or a shell script of the project, asks for one."""
    texts = [command, *_shell_scripts(project)]
    if not any(_INSTALLS.search(text) for text in texts):
        return command
    return "".join(_WRAPPER.format(tool=tool, default=default) for tool, default in _TOOLS) + command


def _shell_scripts(project: Project) -> Iterator[str]:
    for file in project.files:
        folder, _, name = file.path.rpartition("/")
        in_bin = folder == "bin" and "." not in name
        if name.endswith(".sh") or in_bin or file.content.startswith(_BASH):
            yield file.content.decode(errors="replace")


OFFLINE = Offline(command=offline_command, environment=offline_environment)
