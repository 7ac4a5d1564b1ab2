"""Images of Node.js projects, with npm, yarn or pnpm depending on the lock file."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from astra_async.languages.javascript.node_version import DEBIAN, RELEASES, choose_node
from astra_async.languages.needs import CACHE, Part, Toolchain, script
from astra_async.languages.project_files import dependencies_of, package_names, read_table, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.languages.javascript.node_version import NodeChoice
    from astra_async.languages.needs import Commands

MODULES = "node_modules"
# Fields of package.json that affect the installation. Scripts are excluded: the project's own hooks need its
# sources, and problems that differ only in scripts can share an image.
_FIELDS = (
    *("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"),
    *("peerDependenciesMeta", "bundleDependencies", "bundledDependencies", "overrides", "resolutions"),
    *("workspaces", "pnpm", "packageManager", "dependenciesMeta"),
)
_LOCKS = {
    "npm-shrinkwrap.json": "npm",
    "package-lock.json": "npm",
    "yarn.lock": "yarn",
    "pnpm-lock.yaml": "pnpm",
}
_SETTINGS = (".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml")
_NATIVE = re.compile(
    rb'(?:^|[\s"/])(?:sqlite3|better-sqlite3|bcrypt|node-sass|canvas|argon2|libxmljs2?|re2|deasync|fibers|grpc'
    rb"|sodium-native|microtime|zeromq|node-expat|leveldown|robotjs|serialport|node-gyp|nan|node-addon-api"
    rb'|node-pre-gyp|@mapbox/node-pre-gyp|bindings)(?:["@:\s]|$)',
    re.MULTILINE,
)
_GIT = re.compile(rb"git\+(?:ssh|https?)|git://|\"(?:github|gitlab|bitbucket):|codeload\.github\.com")
_BROWSERS = ("karma-chrome-launcher", "puppeteer", "puppeteer-core", "testcafe", "selenium-webdriver")
_JEST = ("jest", "react-scripts", "@vue/cli-plugin-unit-jest", "jest-preset-angular", "ts-jest", "jest-cli")
_FRAMEWORKS = ("@angular/core", "next", "react-native", "react", "vue", "svelte", "express", "typescript")
# Tools that print --version if they can start.
_RUNNERS = ("jest", "mocha", "vitest", "karma", "jasmine", "ava", "tape", "@angular/cli")
_CHROME = "/opt/browser/chrome"
_NVM = re.compile(r"\bnvm\s+(?:install|use)\s+(?:--\S+\s+)*[\"']?(v?\d[\w.*]*|lts/\w+)")
MANAGERS = ("npm", "yarn", "pnpm", "bun")


def find_node(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """Return the part of a folder with a package.json; None if there is none or it needs nothing."""
    prefix = f"{folder}/" if folder else ""
    package = read_table(files.get(f"{prefix}package.json"))
    if package is None:
        return None
    dependencies = dependencies_of(package)
    if folder and not dependencies:
        return None
    lock = next((name for name in _LOCKS if prefix + name in files), "")
    choice = _version(files, prefix, package, lock, commands)
    kept = _files(files, prefix, package, lock)
    framework = next((name for name in _FRAMEWORKS if name in dependencies), "node")
    manager, version = _manager(package, lock)
    return Part(
        language="javascript",
        label=framework.removeprefix("@").partition("/")[0],
        toolchain=_toolchain(choice, kept, dependencies),
        files=kept,
        install=script(
            f"javascript/{manager}.sh",
            FOLDER=folder or ".",
            LOCK=lock,
            VERSION=version,
            RUNNERS=" ".join(name for name in _RUNNERS if name in dependencies),
        ),
        environment=_environment(choice, dependencies),
        warms=True,
        notes=(f"{prefix}package.json: Node.js {choice.major} ({choice.reason})",),
    )


def _manager(package: Mapping[str, Any], lock: str) -> tuple[str, str]:
    """Return package manager and version: from `packageManager`, else the manager from the lock file."""
    named = re.fullmatch(
        r"(npm|yarn|pnpm)@(\d+\.\d+\.\d+(?:-[\w.]+)?)(?:\+.*)?", str(package.get("packageManager", ""))
    )
    by_lock = _LOCKS.get(lock)
    if named and by_lock in (None, named[1]):
        return named[1], named[2] if named[1] != "npm" else ""
    return by_lock or "npm", ""


def _version(
    files: Mapping[str, bytes], prefix: str, package: Mapping[str, Any], lock: str, commands: Commands
) -> NodeChoice:
    def first_line(name: str) -> str:
        content = files.get(prefix + name) or files.get(name) or b""
        return content.decode(errors="replace").strip().split("\n")[0].strip()

    wanted = (
        (".nvmrc", first_line(".nvmrc")),
        (".node-version", first_line(".node-version")),
        ("nvm in the commands", asked[1] if (asked := _NVM.search(commands.text)) else ""),
        ("volta in package.json", str(table(package.get("volta")).get("node", ""))),
        ("engines in package.json", str(table(package.get("engines")).get("node", ""))),
    )
    npm_lock = files.get(prefix + lock, b"") if _LOCKS.get(lock) == "npm" else b""
    return choose_node(package, npm_lock, wanted=wanted)


def _files(
    files: Mapping[str, bytes], prefix: str, package: Mapping[str, Any], lock: str
) -> dict[str, bytes]:
    """Return the reduced package.json files, the lock file and the settings of package managers."""
    kept = {f"{prefix}package.json": _reduced(package)}
    for name in (lock, *_SETTINGS):
        if name and prefix + name in files:
            kept[prefix + name] = files[prefix + name]
    specs = dependencies_of(package).values()
    local = any(spec.startswith(("file:", "link:", "workspace:")) for spec in specs)
    if local or package.get("workspaces") or f"{prefix}pnpm-workspace.yaml" in files:
        for path, content in files.items():
            own = (
                path.startswith(prefix) and path.endswith("/package.json") and MODULES not in path.split("/")
            )
            if own and path not in kept and (inner := read_table(content)) is not None:
                kept[path] = _reduced(inner, "name", "version")
    return kept


def _reduced(package: Mapping[str, Any], *further: str) -> bytes:
    fields = {name: package[name] for name in (*further, *_FIELDS) if name in package}
    return json.dumps(fields, indent=1, sort_keys=True).encode()


def _toolchain(choice: NodeChoice, kept: Mapping[str, bytes], dependencies: Mapping[str, Any]) -> Toolchain:
    everything = b"\n".join(kept.values())
    version, npm = RELEASES[choice.major]
    fetched = script("javascript/node.sh", NODE=".".join(map(str, version)), NPM=npm)
    packages = {"nodejs", "npm"}
    environment = {}
    label = f"node{choice.major}"
    if _NATIVE.search(everything):
        packages |= {"build-essential", "python3", "python-is-python3"}  # old node-gyp runs `python`
        label += "-native"
    if _GIT.search(everything):
        packages.add("git")
    if any(name in dependencies for name in _BROWSERS):
        packages |= {"chromium", "fonts-liberation"}
        label += "-chromium"
        environment = {
            "CHROME_BIN": _CHROME,
            "CHROMIUM_BIN": _CHROME,
            "PUPPETEER_EXECUTABLE_PATH": _CHROME,
            "PUPPETEER_SKIP_DOWNLOAD": "true",
            "PUPPETEER_SKIP_CHROMIUM_DOWNLOAD": "true",
        }
    return Toolchain(
        label=label,
        packages=frozenset(packages),
        first=("nodejs", "npm"),  # same layer as the bundled JavaScript problems
        versions={"node": (choice.major, fetched if choice.major != DEBIAN else "")},
        environment=environment,
    )


def installs(words: Sequence[str]) -> str:
    """Return the npm command equivalent to an npm or yarn command that adds packages by name; else ''."""
    match list(words):
        case ["npm", "install" | "i" | "add", *rest] if packages := package_names(rest):
            where = "--global" if {"-g", "--global"} & set(rest) else "--no-save"
            return shlex.join(["npm", "install", where, *packages])
        case ["yarn", "global", "add", *rest] if packages := package_names(rest):
            return shlex.join(["npm", "install", "--global", *packages])
    return ""


def _environment(choice: NodeChoice, dependencies: Mapping[str, Any]) -> dict[str, str]:
    environment = {}
    if choice.legacy_openssl:
        environment["NODE_OPTIONS"] = "--openssl-legacy-provider"
    if any(name in dependencies for name in _JEST):
        environment["TMPDIR"] = CACHE  # Jest's default location for transformed modules
    return environment
