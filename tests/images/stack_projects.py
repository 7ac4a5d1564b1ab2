"""Projects as real questions have them, small: only what decides about their images."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from astra_async.types import Problem, Project, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Mapping

NVM = "bash bin/env_setup && . $HOME/.nvm/nvm.sh && "
ENV_SETUP = """#!/usr/bin/env bash
curl -o- https://raw.githubusercontent.com/nvm-sh/nvm/v0.35.3/install.sh | bash
export NVM_DIR="$HOME/.nvm"
[ -s "$NVM_DIR/nvm.sh" ] && \\. "$NVM_DIR/nvm.sh" # This loads nvm
nvm install VERSION
nvm use VERSION
exit 0
"""


def project(files: Mapping[str, str | bytes | dict[str, Any]]) -> Project:
    """A project of these files; a mapping is written as JSON."""
    contents = {
        path: json.dumps(content).encode()
        if isinstance(content, dict)
        else content.encode()
        if isinstance(content, str)
        else content
        for path, content in files.items()
    }
    return Project(
        files=tuple(ProjectFile(path=path, content=contents[path]) for path in sorted(contents)),
        sha256=hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest(),
    )


def problem(command: str = "npm test") -> Problem:
    return Problem(id="p", statement="Do it.", project="p.zip", test_command=command)


def manifest(install: str) -> str:
    return f"""version: 1.0
configuration:
  scoring:
    command: npm test
    files: [unit.xml]
  ide_config:
    project_menu:
      install: {install}
"""
