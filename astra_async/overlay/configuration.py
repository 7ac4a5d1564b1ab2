"""Files that a test runner, an interpreter, a build tool or a package manager of this problem reads by name.

A tool reads its configuration where it works: at the root, beside a manifest, in a folder that a command
enters, and some (pytest, TypeScript, Babel) in every folder above what they load. The same name elsewhere is
a file like others: `config/jest.js`, `locales/global.json`, `game/setup.py`.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from typing import TYPE_CHECKING, Literal

from astra_async.overlay.tools import WORD, named_paths, section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.overlay.tools import Tools

_RUNNER, _BUILD = "runner_configuration", "build_configuration"
_EXT = r"\.(?:[cm]?[jt]sx?|json[c5]?|ya?ml|toml|coffee)"
# A tool looks where it works (`place`), in the folders above what it loads too, or in any folder.
_Reach = Literal["place", "above", "any"]
# (rule, tools that read it, where they look, names in lower case)
_NAMES: tuple[tuple[str, str, _Reach, tuple[str, ...]], ...] = (
    (_RUNNER, "jest", "place", (
        rf"jest(?:[-.].*)?\.config{_EXT}|jest\.(?:unit|e2e|setup|preset|transform).*|jest-.*",
        rf"(?:jest-?)?setup-?(?:tests?|jest)(?:[-.].*)?{_EXT}",
        r"junitproperties\.js|jesthtmlreporter\.config\.json",
    )),
    (_RUNNER, "jest", "above", (rf"setup-?tests?{_EXT}",)),
    (_RUNNER, "vitest", "place", (rf"vitest[-.].*|vitest{_EXT}|(?:vitest[-_.]?)?setup-?vitest.*",)),
    (_RUNNER, "mocha", "place", (r"mocha\.opts|mocharc.*|(?:setup-?mocha|mocha[-_.]?setup).*",)),
    (_RUNNER, "karma", "place", (r"karma[-.].*",)),
    (_RUNNER, "jasmine", "place", (r"jasmine.*\.(?:json|js|mjs)",)),
    (_RUNNER, "nyc", "place", (r"nyc\.config.*",)),
    (_RUNNER, "cypress", "place", (r"cypress\.(?:config.*|json|env\.json)",)),
    (_RUNNER, "playwright", "place", (r"playwright.*\.config.*",)),
    (_RUNNER, "protractor wdio nightwatch codecept testcafe", "place", (
        r"protractor.*|wdio\..*|nightwatch\..*|codecept\..*|\.?testcaferc.*",
    )),
    (_RUNNER, "ava web-test-runner wallaby stryker cucumber", "place", (
        r"ava\.config.*|web-test-runner.*|wallaby\..*|stryker\..*|cucumber\..*",
    )),
    (_RUNNER, "pytest", "above", (r"pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml",)),
    (_RUNNER, "pytest", "any", (r"conftest\.py",)),
    (_RUNNER, "python", "any", (r"sitecustomize\.py|usercustomize\.py|pyvenv\.cfg",)),
    (_RUNNER, "nose", "place", (r"nose\.cfg|setup\.cfg",)),
    (_RUNNER, "unittest", "place", (r"unittest\.cfg",)),
    (_RUNNER, "tox nox", "place", (r"noxfile\.py|tox\.ini|pyproject\.toml|setup\.cfg",)),
    (_RUNNER, "rake rspec minitest", "place", (r"rakefile(?:\.rb)?|guardfile",)),
    (_RUNNER, "junit", "place", (r"surefire.*",)),
    (_RUNNER, "junit", "any", (r"junit-platform\.properties",)),
    (_RUNNER, "testng", "place", (r"testng.*\.(?:xml|ya?ml)",)),
    (_RUNNER, "phpunit", "place", (r"phpunit.*|codeception.*|behat\..*|pest\.php",)),
    (_RUNNER, "dotnet", "any", (r"xunit\.runner\.json|.*\.runsettings|testconfig\.json",)),
    (_BUILD, "babel", "above", (rf"babel\.config{_EXT}|babel-plugin-macros\.config.*",)),
    (_BUILD, "typescript", "above", (r"tsconfig.*\.json|jsconfig.*\.json",)),
    (_BUILD, "vite", "place", (r"vite\.config.*|svelte\.config.*",)),
    (_BUILD, "vite webpack", "above", (rf"postcss\.config{_EXT}",)),
    (_BUILD, "tailwind", "place", (r"tailwind\.config.*",)),
    (_BUILD, "webpack", "place", (
        rf"webpack[-.].*|vue\.config.*|craco\.config.*|config-overrides{_EXT}|rspack\..*",
        r"next\.config.*|nuxt\.config.*|metro\.config.*",
    )),
    (_BUILD, "angular", "place", (r"\.?angular(?:-cli)?\.json|ng-package\.json|project\.json|nx\.json",)),
    (_BUILD, "rollup esbuild gulp grunt nest eslint turbo lerna bun deno", "place", (
        r"rollup\.config.*|esbuild.*\.(?:js|mjs|cjs|ts)|gulpfile.*|gruntfile.*|nest-cli\.json",
        r"eslint\.config.*|turbo\.json|lerna\.json|bunfig\.toml|deno\.jsonc?",
    )),
    (_BUILD, "node", "place", (
        r"package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-.*\.yaml|bun\.lockb?|deno\.lock",
    )),
    (_BUILD, "maven gradle sbt junit", "place", (
        r"pom\.xml|build\.gradle.*|(?:settings|init)\.gradle.*|gradle\.properties|gradlew.*|mvnw.*",
        r"build\.sbt|lombok\.config",
    )),
    (_BUILD, "dotnet", "any", (
        r".*\.(?:csproj|fsproj|vbproj|sln|slnx|props|targets|rsp)|nuget\.config|packages\.lock\.json",
    )),
    (_BUILD, "dotnet", "place", (r"global\.json",)),
    (_BUILD, "pytest pip", "above", (r"setup\.py",)),
    (_BUILD, "pytest pip", "place", (r"manifest\.in|pipfile(?:\.lock)?|poetry\.lock|uv\.lock",)),
    (_BUILD, "bundler rake rspec minitest", "place", (
        r"gemfile(?:\.lock)?|gems\.(?:rb|locked)|.*\.gemspec",
    )),
    (_BUILD, "phpunit", "place", (r"composer\.(?:json|lock)",)),
    (_BUILD, "go cargo mix", "place", (r"go\.(?:mod|sum|work)|cargo\.(?:toml|lock)|mix\.(?:exs|lock)",)),
    (_BUILD, "make cmake", "place", (
        r"(?:gnu)?makefile(?:\..*)?|.*\.mk|cmakelists\.txt|cmakepresets\.json",
    )),
    (_BUILD, "just task", "place", (r"\.?justfile|taskfile\.ya?ml",)),
)  # fmt: skip
_COMPILED = tuple(
    (rule, frozenset(tools.split()), reach, re.compile("|".join(names)))
    for rule, tools, reach, names in _NAMES
)
# Where a tool looks whatever the name is, or where a file comes before the tool's own (Django's command).
_BY_PLACE = {
    "rake": re.compile(r"(?:^|/)rakelib/[^/]+\.rake$"),
    "unittest": re.compile(r"(?:^|/)management/commands/test\.py$"),
}
# `svgo.config.js` is read by the tool of that name: one that the project has for development.
_NAMED_CONFIG = re.compile(r"([\w-]+)(?:\.config\.(?:[cm]?[jt]s|json|ya?ml)|rc\.(?:[cm]?js|json|ya?ml|toml))")

# Files and folders with a dot that editors, linters and version control read, and no run of tests does.
_INERT_DOTFILE = re.compile(
    r"\.(?:git(?:keep|ignore|attributes)|keep|dockerignore|editorconfig|npmignore|nvmrc|node-version|tool-versions"
    r"|prettier(?:rc.*|ignore)|eslint(?:rc.*|ignore)|stylelint(?:rc.*|ignore)|markdownlint.*|jshintrc|flake8|pylintrc"
    r"|pre-commit-config\.ya?ml|rubocop.*\.ya?ml|travis\.ya?ml|gitlab-ci\.ya?ml|nojekyll|htaccess)"
)
_INERT_DOTFOLDERS = frozenset(
    {".github", ".vscode", ".idea", ".circleci", ".husky", ".storybook", ".well-known"}
)


def reads(tools: Tools, path: str, *, is_new: bool) -> str | None:
    """`runner_configuration` or `build_configuration` where a tool reads this file by its name.

    Of the project's own files those with such a name are configuration wherever they lie: a command or
    another configuration may name them.
    """
    folder, _, name = path.rpartition("/")
    for rule, readers, reach, names in _COMPILED:
        if not names.fullmatch(name.lower()) or (tools.names and not readers & tools.names):
            continue
        if folder in tools.places or reach == "any" or (reach == "above" and folder in tools.above_tests):
            return rule
        if not is_new and not _is_everyday(name):
            return rule
    if path.lower().endswith("config/environments/test.rb"):
        return _RUNNER
    if any(tool in tools and places.search(path.lower()) for tool, places in _BY_PLACE.items()):
        return _RUNNER
    if "gradle" in tools and re.match(r"(?:.*/)?buildSrc/|gradle/[^/]*\.(?:gradle(?:\.kts)?|toml)$", path):
        return _BUILD
    named = _NAMED_CONFIG.fullmatch(name.lower())
    return _BUILD if named and folder in tools.places and named[1] in tools.development else None


def is_dotfile(path: str) -> bool:
    """Whether a part of the path has a name with a dot, by which some tool may load it."""
    *folders, name = path.split("/")
    if any(folder.startswith(".") for folder in folders):
        return folders[0] not in _INERT_DOTFOLDERS
    return name.startswith(".") and not _INERT_DOTFILE.fullmatch(name)


def _is_everyday(name: str) -> bool:
    """Whether a name is also that of ordinary sources and data: only its place makes it configuration."""
    return re.fullmatch(
        r"(?:global|project|turbo|composer|deno)\.json|setup\.py|(?:cucumber|nightwatch|protractor|wallaby|karma|stryker)\..*"
        r"|(?:jest|vitest)[.-].*|.*\.(?:props|targets|sln)|task.*",
        name.lower(),
    ) is not None and not re.search(r"config|conf\.|setup\.[jt]s|preset|transform", name.lower())


# --- files that the project's own commands and settings name -------------------------------------------

# Scripts, and programs whose name says that they run or prepare tests. A command may also start the
# application itself (`node server.js & sleep 2; curl ...`): that stays the answer's to change.
_SCRIPT = re.compile(r"(?:.*/)?(?:[\w-]+|[\w.-]+\.(?:sh|bash|ps1|bat)|manage\.py)")
_HARNESS = re.compile(r"test|spec|check|grade|score|report|jest|mocha|karma|setup|register", re.IGNORECASE)
_SETTINGS_FILE = re.compile(
    r"(?:config|report|option|setting)[^/]*\.(?:json|ya?ml|xml|ini|toml|cfg|opts|[cm]?js)$", re.IGNORECASE
)
# Settings by which a runner loads a file, in JSON, YAML or code.
_SETTING = re.compile(
    r"\b(?:setupFiles\w*|setupFile|globalSetup|globalTeardown|testEnvironment|reporters?|require|import|file|resolver"
    r"|snapshotSerializers|transform|runner|testRunner|testSequencer|presets?|plugins?|loader|spec|supportFile"
    r"|reporter-?[oO]ptions?|reporterOptions|configFile|testSuitePropertiesFile|snapshotResolver|dependencyExtractor"
    r"|hasteImplModulePath|testResultsProcessor|prettierPath|extends|environment)\b[\"']?\s{0,5}[:=,]"
)
_ALSO_RUNNER = re.compile(
    r"(?:^|/)(?:\.mocharc|\.babelrc|babel\.config|vite\.config|vue\.config|craco\.config|\.c8rc|\.nycrc|tsconfig)"
)
_STRING = re.compile(r"[\"']([^\"'\n]{1,300})[\"']|(?<=[-:=]\s)([\w./-]{3,200})|(?<==)([\w./-]{3,200})")
_SETTING_LENGTH = 400
_SUFFIXES = ("", ".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".json", "/index.js", "/index.ts")


def runner_files(tools: Tools, texts: Mapping[str, str]) -> frozenset[str]:
    """Existing files that are part of how the tests are run, though no convention names them."""
    named = named_paths(WORD.findall(tools.commands.replace("=", " ")), tools.commands)
    words = {path for path in named if path in texts and _runs_tests(path)}
    for path, text in texts.items():
        if path.rpartition("/")[2] == "package.json":
            for name in ("jest", "mocha", "nyc", "ava", "vitest", "babel", "jest-junit"):
                words |= _named_by_settings(path, json.dumps(section(text, name)), texts)
        elif reads(tools, path, is_new=False) == _RUNNER or _ALSO_RUNNER.search(path):
            words |= _named_by_settings(path, text, texts)
    return frozenset(words)


def _runs_tests(path: str) -> bool:
    return any((_SCRIPT.fullmatch(path), _HARNESS.search(path), _SETTINGS_FILE.search(path)))


def _named_by_settings(path: str, text: str, texts: Mapping[str, str]) -> set[str]:
    """Existing files named right after a setting that makes the runner load them."""
    named = set()
    folder = posixpath.dirname(path)
    for setting in _SETTING.finditer(text):
        region = re.split(r"[\]})]", text[setting.end() : setting.end() + _SETTING_LENGTH], maxsplit=1)[0]
        for found in _STRING.findall(region):
            for word in _words(next(filter(None, found), "")):
                name = word.rpartition("=")[2].replace("<rootDir>/", "").removeprefix("./")
                targets = {posixpath.normpath(posixpath.join(base, name)) for base in (folder, "")}
                named |= {f"{target}{suffix}" for target in targets for suffix in _SUFFIXES} & texts.keys()
    return named


def _words(text: str) -> list[str]:
    """The words of a shell line; the line itself where its quotes do not pair."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
