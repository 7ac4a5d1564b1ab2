"""Images of Python projects, from requirements files, Pipfile.lock or pyproject.toml."""

from __future__ import annotations

import posixpath
import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

from astra_async.languages.needs import Part, Toolchain, script
from astra_async.languages.project_files import package_names, read_table, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.languages.needs import Commands

VENV = "/opt/venv"
PYTHON_VERSION = "3.11.2"  # of Debian bookworm
_REQUIREMENTS = re.compile(
    r"(?:[\w-]*[_-])?requirements?(?:[_-][\w-]+)?\.txt|requirements/[\w-]+\.txt", re.IGNORECASE
)
_INCLUDE = re.compile(r"(?m)^\s*(?:-r|--requirement|-c|--constraint)[ =]?\s*(\S+)")
_NAMED = re.compile(r"(?:-r|--requirement)[ =]?\s*[\"']?([\w./-]+\.(?:txt|in|pip))")
_NAME = re.compile(r"(?m)^\s*([A-Za-z0-9][\w.-]*)")
_MAX_FILES = 40
# (pattern in commands or sources, package to install if no requirement names it)
_RUNNERS = (
    (re.compile(rb"\b(?:pytest|py\.test)\b"), "pytest"),
    (re.compile(rb"\bxmlrunner\b"), "unittest-xml-reporting"),
    (re.compile(rb"\bnosetests\b"), "pynose"),
)
# Packages, and their modules that print --version if they can start.
_STARTS = (
    ("pytest", "pytest"),
    ("django", "django"),
    ("pynose", "nose"),
    ("unittest-xml-reporting", "xmlrunner"),
)
_LABELS = ("django", "flask", "fastapi")
TOOLCHAIN = Toolchain(
    label="python",
    packages=frozenset({"python3", "python3-venv", "tzdata"}),
    environment={"PIP_NO_INDEX": "1"},
    setup=f"python3 -m venv {VENV} || exit 1\n",
)


def find_python(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """Return the part of a folder with Python dependencies; at the root, dependencies are optional."""
    prefix = f"{folder}/" if folder else ""
    kept = _requirement_files(files, prefix, commands)
    top = [path for path in kept if not _is_included(path, kept)]
    if not kept:
        listed = [*_from_pipfile(files.get(f"{prefix}Pipfile.lock"))]
        listed = listed or [*_from_pyproject(files.get(f"{prefix}pyproject.toml"))]
        if listed:
            top = [f"{prefix}.astra-requirements.txt"]
            kept = {top[0]: ("\n".join(listed) + "\n").encode()}
    if not kept and (folder or not any(path.endswith(".py") for path in files)):
        return None
    names = _names(kept)
    return Part(
        language="python",
        label=next((name for name in _LABELS if name in names), "python"),
        toolchain=TOOLCHAIN,
        files=kept,
        install=script(
            "python/pip.sh",
            REQUIREMENTS=shlex.join(top),
            EXTRA=" ".join(extra := list(_extra(files, prefix, commands, names))),
            RUNNERS=" ".join(module for name, module in _STARTS if name in names or name in extra),
        ),
        notes=(f"{', '.join(top) or 'no requirements file'}: Debian's Python 3.11",),
    )


def unmet_version(files: Mapping[str, bytes]) -> str:
    """Return the `requires-python` of a project that the image's Python does not meet; "" if there is none.

    Poetry's `python` is read as well. Invalid versions are left to pip's own message.
    """
    root = _toml(files.get("pyproject.toml"))
    poetry = table(table(table(root.get("tool")).get("poetry")).get("dependencies"))
    wanted = table(root.get("project")).get("requires-python") or poetry.get("python")
    if not isinstance(wanted, str):
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        is_met = SpecifierSet(_poetry_range(wanted).strip()).contains(PYTHON_VERSION)
    except InvalidSpecifier:
        return ""
    return "" if is_met else wanted


def installs(words: Sequence[str]) -> str:
    """Return the pip command for the image if the command adds packages by name; else ''."""
    match list(words):
        case ["pip" | "pip3", "install", *rest] if packages := package_names(rest, values=("-r", "-c", "-e")):
            return shlex.join(["pip", "install", *packages])
    return ""


def _requirement_files(files: Mapping[str, bytes], prefix: str, commands: Commands) -> dict[str, bytes]:
    """Return the folder's requirements files, those named in commands, and the files they include."""
    named = (prefix + path.removeprefix("./") for path in _NAMED.findall(commands.text))
    waiting = [path for path in named if path in files]
    waiting += [
        path
        for path in sorted(files)
        if path.startswith(prefix) and _REQUIREMENTS.fullmatch(path.removeprefix(prefix))
    ]
    kept: dict[str, bytes] = {}
    while waiting and len(kept) < _MAX_FILES:
        path = waiting.pop(0)
        content = files.get(path)
        if path in kept or content is None:
            continue
        kept[path] = content
        beside = path.rpartition("/")[0]
        for name in _INCLUDE.findall(content.decode(errors="replace")):
            waiting.append(_joined(beside, name))
    return kept


def _joined(folder: str, name: str) -> str:
    return posixpath.normpath(f"/{folder}/{name}").lstrip("/")  # cannot leave the project


def _is_included(path: str, kept: Mapping[str, bytes]) -> bool:
    return any(
        _joined(other.rpartition("/")[0], name) == path
        for other, content in kept.items()
        if other != path
        for name in _INCLUDE.findall(content.decode(errors="replace"))
    )


def _from_pipfile(lock: bytes | None) -> Iterator[str]:
    """Parse Pipfile.lock: `default` and `develop`, each `{name: {"version": "==1.2", "extras": [..]}}`."""
    for group in ("default", "develop"):
        for name, entry in table((read_table(lock) or {}).get(group)).items():
            extras = table(entry).get("extras")
            shown = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
            yield f"{name}{shown}{table(entry).get('version', '')}".replace("*", "")


def _toml(content: bytes | None) -> Mapping[str, Any]:
    """Return the tables of a TOML file; no tables if it is missing or invalid."""
    try:
        return tomllib.loads((content or b"").decode(errors="replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _from_pyproject(content: bytes | None) -> Iterator[str]:
    """Parse pyproject.toml: dependencies, extras and groups (PEP 621, PEP 735), or Poetry's tables."""
    root = _toml(content)
    project = table(root.get("project"))
    groups = [*table(project.get("optional-dependencies")).values()]
    groups += table(root.get("dependency-groups")).values()
    for group in (project.get("dependencies", []), *groups):
        yield from (entry for entry in group if isinstance(entry, str))
    poetry = table(table(root.get("tool")).get("poetry"))
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    tables += [table(group).get("dependencies") for group in table(poetry.get("group")).values()]
    for each in tables:
        for name, entry in table(each).items():
            if name.lower() != "python":
                yield name + _poetry_range(entry if isinstance(entry, str) else table(entry).get("version"))


def _poetry_range(text: object) -> str:
    """Convert Poetry's `^1.2` to pip's notation; return '' for other ranges, so that pip may choose."""
    shown = str(text or "").strip()
    caret = re.fullmatch(r"\^(\d+)((?:\.\d+)*)", shown)
    if caret:
        return f">={caret[1]}{caret[2]},<{int(caret[1]) + 1}"
    if re.fullmatch(r"\d+(\.\d+)*", shown):
        return f"=={shown}"
    return shown if re.fullmatch(r"[<>=!~][<>=!~\w.,* ]*", shown) else ""


def _extra(files: Mapping[str, bytes], prefix: str, commands: Commands, names: set[str]) -> Iterator[str]:
    sources = [content for path, content in files.items() if path.startswith(prefix) and path.endswith(".py")]
    for call, package in _RUNNERS:
        called = call.search(commands.text.encode()) or any(call.search(source) for source in sources)
        if called and package not in names:
            yield package


def _names(kept: Mapping[str, bytes]) -> set[str]:
    text = "\n".join(content.decode(errors="replace") for content in kept.values())
    return {name.lower().replace("_", "-") for name in _NAME.findall(text)}
