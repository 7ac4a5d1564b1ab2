"""Reads the commands of a problem: which languages they call, what they install, which folders they name.

Commands are read, not run: `bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm install` and its hundred
variants would fetch version managers and start servers. Scripts of the project that a command calls are
read with it, and so are the npm scripts.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.images.stacks.package_files import read_table, table
from astra_async.problems.manifest import read_install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.images.stacks.model import Language
    from astra_async.types import Problem

_SCRIPT_BYTES = 64 * 1024
_DEPTH = 3  # a script that calls a script that calls a script
_MAX_SEGMENTS = 400
_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^!].*$")
_CALLS: Mapping[Language, re.Pattern[str]] = {
    "node": re.compile(
        r"(?<![\w./-])(?:npm|npx|yarn|pnpm|node|ng|jest|mocha|vitest|karma|react-scripts|vue-cli-service|tape"
        r"|cypress)(?![\w./-])|node_modules/\.bin"
    ),
    "python": re.compile(
        r"(?<![\w.-])(?:python[\d.]*|pip3?|pytest|py\.test|manage\.py|tox|nosetests)(?![\w-])"
    ),
    "ruby": re.compile(r"(?<![\w.-])(?:ruby|bundle|rake|rspec|rails|gem|rvm|rbenv)(?![\w-])"),
    "java": re.compile(r"(?<![\w.-])(?:mvnw?|javac?|gradlew?)(?![\w-])"),
    "dotnet": re.compile(r"(?<![\w.-])dotnet(?![\w-])"),
}
_NPM_SHORT = {"t": "test", "tst": "test"}
_PREFIXES = ("sudo", "exec", "time", "env", "(", "{")
_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w./@+~^=<>!,\[\]*-]*\Z")
_NODE_WANTED = re.compile(r"\bnvm\s+(?:install|use)\s+(?:--\S+\s+)*[\"']?(v?\d[\w.*]*|lts/\w+)")
_FOLDERS = re.compile(r"(?:\bcd|(?<!\w)-C|--prefix[= ]|--cwd[= ])\s*[\"']?(?:\./)?([\w.-]+(?:/[\w.-]+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Everything that is run for a problem, as one text, and what follows from it.

    `installs` are command lines that add packages by name (`npm install -g X`, `pip install X`), to be run
    beside the installation from the project's files.
    """

    text: str
    languages: frozenset[Language]
    folders: tuple[str, ...]
    node_version: str
    installs: tuple[tuple[Language, str], ...]


def read_commands(problem: Problem, files: Mapping[str, bytes], manifest: bytes) -> Commands:
    """What the test command and the manifest's install command say, with the scripts they call."""
    lines = [problem.test_command, read_install_command(manifest)]
    text = _COMMENT.sub("", "\n".join([*lines, *_called(lines, files)]))
    wanted = _NODE_WANTED.search(text)
    return Commands(
        text=text,
        languages=frozenset(name for name, calls in _CALLS.items() if calls.search(text)),
        folders=tuple(dict.fromkeys(folder.strip("/") for folder in _FOLDERS.findall(text))),
        node_version=wanted[1] if wanted else "",
        installs=tuple(dict.fromkeys(_installs(text))),
    )


def manifest_of(files: Mapping[str, bytes]) -> bytes:
    """The manifest's content, empty when the project has none."""
    name = next((path for path in files if path.lower() in ("hackerrank.yml", "hackerrank.yaml")), "")
    return files.get(name, b"")


def segments(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell text as words; those that are no plain commands are left out."""
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
    """The npm scripts and the project's shell scripts that the lines call, and what those call, as texts."""
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
    if words[0] in ("npm", "yarn", "pnpm") and "package.json" in files:
        scripts = table((read_table(files["package.json"]) or {}).get("scripts"))
        given = [_NPM_SHORT.get(name, name) for name in words[1:3]]
        for word in (name for name in given if name in scripts):
            for name in (f"pre{word}", word, f"post{word}"):
                if name in scripts:
                    yield f"package.json:{name}", str(scripts[name])
    for word in words[:3]:
        path = word.removeprefix("./")
        content = files.get(path)
        is_script = content is not None and (content.startswith(b"#!") or path.endswith((".sh", "env_setup")))
        if content is not None and is_script and len(content) <= _SCRIPT_BYTES:
            yield path, content.decode(errors="replace").replace("\\\n", " ")


def _installs(text: str) -> Iterator[tuple[Language, str]]:
    for words in segments(text):
        if words[:2] in (["python", "-m"], ["python3", "-m"]):
            words = words[2:]  # noqa: PLW2901 - the same command under its own name
        match words:
            case ["npm", "install" | "i" | "add", *rest] if packages := _packages(rest):
                where = "--global" if {"-g", "--global"} & set(rest) else "--no-save"
                yield "node", shlex.join(["npm", "install", where, *packages])
            case ["yarn", "global", "add", *rest] if packages := _packages(rest):
                yield "node", shlex.join(["npm", "install", "--global", *packages])
            case ["pip" | "pip3", "install", *rest] if packages := _packages(rest, values=("-r", "-c", "-e")):
                yield "python", shlex.join(["pip", "install", *packages])
            case ["gem", "install", _, *_]:
                yield "ruby", shlex.join(words)


def _packages(words: list[str], values: tuple[str, ...] = ()) -> list[str]:
    """Names of packages among the words of an install command, without options and their values."""
    packages = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in values
        elif _PACKAGE.match(word) and not word.startswith((".", "/")):
            packages.append(word)
    return packages
