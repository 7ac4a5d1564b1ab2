"""JavaScript's test runners, bundlers and package managers, and the files that they read by name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from astra_async.languages.language import BUILD, RUNNER, ProjectTool, Reads, Tools
from astra_async.languages.project_files import read_table, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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
