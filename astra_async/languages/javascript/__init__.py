"""JavaScript and TypeScript, on Node.js and in browsers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from astra_async.languages.javascript.image import MANAGERS, find_node, installs
from astra_async.languages.javascript.lookup import SOURCES, NodeLookup
from astra_async.languages.javascript.mutate import read_tests
from astra_async.languages.language import (
    BUILD,
    RUNNER,
    Images,
    Language,
    Merge,
    Offline,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.project_files import read_table, table
from astra_async.types import Dropped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from astra_async.types import Project


_EXT = r"\.(?:[cm]?[jt]sx?|json[c5]?|ya?ml|toml|coffee)"
_PROGRAMS = (
    ProjectTool(
        "jest",
        r"\bjest\b(?!-dom|-axe)|react-scripts|@vue/cli-plugin-unit-jest|ng test",
        runs_tests=True,
        brings=("babel", "typescript", "node"),
    ),
    ProjectTool("vitest", r"\bvitest\b", runs_tests=True, brings=("vite", "typescript", "node")),
    ProjectTool("mocha", r"\bmocha\b", runs_tests=True, brings=("node",)),
    ProjectTool(
        "karma",
        r"\bkarma\b|\bng test\b|build-angular",
        runs_tests=True,
        brings=("webpack", "typescript", "angular", "jasmine", "node"),
    ),
    *(ProjectTool(name, rf"\b{name}\b", runs_tests=True) for name in ("jasmine", "cypress", "playwright")),
    ProjectTool("tape", r"\btape\b|\bnode --test\b|\btap\b", runs_tests=True),
    ProjectTool("nyc", r"\bnyc\b|\bc8\b"),
    ProjectTool("vite", r"\bvite\b"),
    ProjectTool(
        "webpack", r"\bwebpack\b|react-scripts|vue-cli-service|craco|\bnext\b|\bnuxt\b|build-angular"
    ),
    ProjectTool("angular", r"@angular/|\bng\b"),
    ProjectTool("babel", r"\bbabel\b|@babel/"),
    ProjectTool("typescript", r"\btypescript\b|\btsc\b|ts-node|ts-jest"),
    ProjectTool("tailwind", r"\btailwindcss\b"),
    *(
        ProjectTool(name, rf"\b{name}\b")
        for name in (
            *("protractor", "wdio", "nightwatch", "codecept", "testcafe", "ava", "web-test-runner"),
            *("wallaby", "stryker", "cucumber", "rollup", "esbuild", "gulp", "grunt", "nest", "eslint"),
            *("turbo", "lerna", "bun", "deno"),
        )
    ),
)
_READS = (
    Reads(RUNNER, "jest", "place", (
        rf"jest(?:[-.].*)?\.config{_EXT}|jest\.(?:unit|e2e|setup|preset|transform).*|jest-.*"
        rf"|(?:jest-?)?setup-?(?:tests?|jest)(?:[-.].*)?{_EXT}"
        r"|junitproperties\.js|jesthtmlreporter\.config\.json"
    )),
    Reads(RUNNER, "jest", "above", rf"setup-?tests?{_EXT}"),
    Reads(RUNNER, "vitest", "place", rf"vitest[-.].*|vitest{_EXT}|(?:vitest[-_.]?)?setup-?vitest.*"),
    Reads(RUNNER, "mocha", "place", r"mocha\.opts|mocharc.*|(?:setup-?mocha|mocha[-_.]?setup).*"),
    Reads(RUNNER, "karma", "place", r"karma[-.].*"),
    Reads(RUNNER, "jasmine", "place", r"jasmine.*\.(?:json|js|mjs)"),
    Reads(RUNNER, "nyc", "place", r"nyc\.config.*"),
    Reads(RUNNER, "cypress", "place", r"cypress\.(?:config.*|json|env\.json)"),
    Reads(RUNNER, "playwright", "place", r"playwright.*\.config.*"),
    Reads(RUNNER, "protractor wdio nightwatch codecept testcafe", "place", (
        r"protractor.*|wdio\..*|nightwatch\..*|codecept\..*|\.?testcaferc.*"
    )),
    Reads(RUNNER, "ava web-test-runner wallaby stryker cucumber", "place", (
        r"ava\.config.*|web-test-runner.*|wallaby\..*|stryker\..*|cucumber\..*"
    )),
    Reads(BUILD, "babel", "above", rf"babel\.config{_EXT}|babel-plugin-macros\.config.*"),
    Reads(BUILD, "typescript", "above", r"tsconfig.*\.json|jsconfig.*\.json"),
    Reads(BUILD, "vite", "place", r"vite\.config.*|svelte\.config.*"),
    Reads(BUILD, "vite webpack", "above", rf"postcss\.config{_EXT}"),
    Reads(BUILD, "tailwind", "place", r"tailwind\.config.*"),
    Reads(BUILD, "webpack", "place", (
        rf"webpack[-.].*|vue\.config.*|craco\.config.*|config-overrides{_EXT}|rspack\..*"
        r"|next\.config.*|nuxt\.config.*|metro\.config.*"
    )),
    Reads(BUILD, "angular", "place", r"\.?angular(?:-cli)?\.json|ng-package\.json|project\.json|nx\.json"),
    Reads(BUILD, "rollup esbuild gulp grunt nest eslint turbo lerna bun deno", "place", (
        r"rollup\.config.*|esbuild.*\.(?:js|mjs|cjs|ts)|gulpfile.*|gruntfile.*|nest-cli\.json"
        r"|eslint\.config.*|turbo\.json|lerna\.json|bunfig\.toml|deno\.jsonc?"
    )),
    Reads(BUILD, "node", "place", (
        r"package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-.*\.yaml|bun\.lockb?|deno\.lock"
    )),
)  # fmt: skip
_CALL = re.compile(r"\b(?:npm|yarn|pnpm)\s+(?:run(?:-script)?\s+)?([\w:.-]+)")
_SECTIONS = ("jest", "mocha", "nyc", "ava", "vitest", "babel", "jest-junit")


def _section(path: str, text: str, name: str) -> Mapping[str, object]:
    is_manifest = path.rpartition("/")[2] == "package.json"
    return table((read_table(text) or {}).get(name)) if is_manifest else {}


def _scripts(path: str, text: str, commands: str) -> dict[str, str]:
    names = _CALL.findall(commands)
    known = _section(path, text, "scripts") if names else {}
    called = ("test" if name in ("t", "tst") else name for name in names)
    return {
        f"{path}:{each}": str(known[each])
        for name in called
        for each in (f"pre{name}", name, f"post{name}")
        if each in known
    }


def _settings(path: str, text: str) -> Iterator[str]:
    for name in _SECTIONS:
        if section := _section(path, text, name):
            yield json.dumps(section)


def _development(path: str, text: str) -> Collection[str]:
    used = _section(path, text, "dependencies")
    return {name.rpartition("/")[2] for name in _section(path, text, "devDependencies") if name not in used}


TOOLS = Tools(
    programs=_PROGRAMS,
    reads=_READS,
    manifests=r"package\.json",
    everyday=(
        r"(?:global|project|turbo|deno)\.json"
        r"|(?:cucumber|nightwatch|protractor|wallaby|karma|stryker)\..*|(?:jest|vitest)[.-].*|task.*"
    ),
    settings=(
        r"setupFiles\w*|setupFile|globalSetup|globalTeardown|testEnvironment|reporters?|require|import|file"
        r"|resolver|snapshotSerializers|transform|runner|testRunner|testSequencer|presets?|plugins?|loader|spec"
        r"|supportFile|reporter-?[oO]ptions?|reporterOptions|configFile|snapshotResolver|dependencyExtractor"
        r"|testSuitePropertiesFile|hasteImplModulePath|testResultsProcessor|prettierPath|extends"
    ),
    settings_files=(
        r"(?:^|/)(?:\.mocharc|\.babelrc|babel\.config|vite\.config|vue\.config|craco\.config|\.c8rc|\.nycrc"
        r"|tsconfig)"
    ),
    sections=_settings,
    ends=(".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".json", "/index.js", "/index.ts"),
    scripts=_scripts,
    development=_development,
    inert=(
        r"npmignore|nvmrc|node-version|prettier(?:rc.*|ignore)|eslint(?:rc.*|ignore)|stylelint(?:rc.*|ignore)"
        r"|jshintrc"
    ),
    variables=(
        r"NODE_OPTIONS|NODE_PATH|NODE_V8_COVERAGE|NODE_EXTRA_CA_CERTS"
        r"|(?:JEST|VITEST|MOCHA|KARMA|BABEL|CYPRESS|PLAYWRIGHT|NPM_CONFIG|YARN|TS_NODE|SWC)_\w{0,80}"
    ),
    dependency_folders=frozenset(
        {"node_modules", "bower_components", "jspm_packages", "web_modules", ".yarn"}
    ),
)


_INSTALLS = re.compile(r"\b(?:npm|pnpm|yarn)\s+(?:install|i|ci)\b|\byarn\s*(?:$|&&|;)", re.MULTILINE)
_BASH = (b"#!/bin/bash", b"#!/usr/bin/env bash")
_HOOKS = ("preinstall", "pretest", "posttest")
_WRAPPER = """\
{tool}() {{ case "${{1-{default}}}" in install|i|ci) echo "{tool} ${{1-}}: skipped, the image holds the \
dependencies"; return 0;; esac; command {tool} "$@"; }}; export -f {tool}
"""
_TOOLS = (("npm", ""), ("pnpm", ""), ("yarn", "install"))  # `yarn` without arguments installs


def offline_environment(project: Project) -> dict[str, str]:
    """Return variables that keep the hooks of package.json from installing packages."""
    package = next((file.content for file in project.files if file.path == "package.json"), None)
    scripts = table((read_table(package) or {}).get("scripts"))
    installs = any(_INSTALLS.search(str(scripts.get(hook, ""))) for hook in _HOOKS)
    return {"npm_config_ignore_scripts": "true"} if installs else {}


def offline_command(command: str, project: Project) -> str:
    """Return the test command; if it or a shell script of the project installs packages, skip that."""
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


_MERGED = ("dependencies", "devDependencies")
_NAME = re.compile(r"(?:@[a-z0-9._~-]{1,100}/)?[a-zA-Z0-9._~-]{1,200}")
_VERSION = re.compile(r"[\w.+~^<>=|* -]{1,100}")


def _merged(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    old, new = read_table(pristine, strict=False), read_table(answer, strict=False)
    if old is None or new is None:
        return None, [Dropped(path=path, reason="invalid_json")]
    dropped = [
        Dropped(path=f"{path}#{key}", reason=RUNNER)
        for key in dict.fromkeys([*new, *old])
        if key not in _MERGED and old.get(key) != new.get(key, old.get(key))
    ]
    result = dict(old)
    for section in _MERGED:
        _merge_section(path, section, new.get(section), result, dropped)
    if result == old:
        return None, dropped
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n", dropped


def _merge_section(
    path: str, section: str, wanted: Any, result: dict[str, Any], dropped: list[Dropped]
) -> None:
    existing = result.get(section, {})
    if wanted is None or not isinstance(existing, dict):
        return
    entries = wanted.items() if isinstance(wanted, dict) else [("", wanted)]
    taken = dict(existing)
    for name, version in entries:
        if taken.get(name) == version:
            continue
        if isinstance(version, str) and _NAME.fullmatch(name) and _VERSION.fullmatch(version):
            taken[name] = version
        else:
            dropped.append(Dropped(path=f"{path}#{section}.{name[:200]}", reason="not_a_version"))
    if taken != existing:
        result[section] = taken


PACKAGE_JSON = Merge(
    takes=lambda path, _: path.rpartition("/")[2] == "package.json",
    merged=_merged,
)


_SOURCE_EXT = r"\.(?:[cm]?[jt]sx?|vue|coffee)"
JAVASCRIPT = Language(
    name="javascript",
    suffixes=SOURCES,
    images=Images(
        find=find_node,
        calls=re.compile(
            r"(?<![\w./-])(?:npm|npx|yarn|pnpm|node|ng|jest|mocha|vitest|karma|react-scripts|vue-cli-service"
            r"|tape|cypress)(?![\w./-])|node_modules/\.bin"
        ),
        signs=("package.json",),
        installs=installs,
        managers=MANAGERS,
        leavings=("package-lock.json", "yarn.lock", "pnpm-lock.yaml"),
        holds="javascript/installed.sh",
    ),
    tools=TOOLS,
    tests=TestFiles(
        paths=re.compile(
            rf"[.](?:tests?|specs?|cy|e2e|e2e-spec){_SOURCE_EXT}$|\.snap$"
            r"|(?:^|/)(?:__tests__|__mocks__|__snapshots__|__fixtures__)/|^(?:e2e|cypress|playwright)/"
            r"|(?:^|/)src/test\.[jt]s$"  # loads all spec files in Angular projects with karma
        ),
        likely=re.compile(
            rf"(?:^|[-_./])(?:[Tt]ests?|[Ss]pecs?)(?:[-_.][^/]*)?{_SOURCE_EXT}$|[a-z]Tests?{_SOURCE_EXT}$"
        ),
        content=(
            re.compile(r"(?<![.\w$])(?:it|test|specify)(?:\.(?:only|skip|each|concurrent))?\(\s{0,50}[\"'`]"),
            re.compile(r"\bexpect\s?\(|\bassert\b|\bshould\b|\.expect\(|\bt\.(?:is|equal|ok|same)\("),
        ),
        alone=re.compile(r"\.snap$|(?:^|/)__snapshots__/"),
        folders=frozenset(
            {*("__tests__", "__mocks__", "__snapshots__", "__fixtures__"), *("e2e", "cypress", "playwright")}
        ),
    ),
    lookup=NodeLookup,
    merge=PACKAGE_JSON,
    offline=OFFLINE,
    compiled=r"\.node$",
    unbuilt=(
        r"SyntaxError|Syntax Error|ParseError|Module parse failed|Failed to compile|error (?:TS|NG)\d"
        r"|Test suite failed to run|Cannot find module"
    ),
    mutate=read_tests,
)
