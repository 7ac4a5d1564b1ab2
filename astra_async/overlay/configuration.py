"""Files that a test runner, an interpreter, a build tool or a package manager of this problem reads by name.

Which tools a problem has follows from its commands, with the scripts and npm scripts that they call, and
from its manifests (`Tools.of`); where no test runner is recognised, it may be any. A tool reads its
configuration where it works: at the root, beside a manifest, in a folder that a command enters, and some
(pytest, TypeScript, Babel) in every folder above what they load. The same name elsewhere is a file like
others: `config/jest.js`, `locales/global.json`, `game/setup.py`.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from astra_async.overlay.paths import above

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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

# What tells of a tool, in commands and manifests; what it brings along; whether it runs tests.
_SIGNS = {
    "jest": r"\bjest\b|react-scripts|@vue/cli-plugin-unit-jest|ng test",
    "vitest": r"\bvitest\b",
    "mocha": r"\bmocha\b",
    "karma": r"\bkarma\b|\bng test\b|build-angular",
    "jasmine": r"\bjasmine\b",
    "cypress": r"\bcypress\b",
    "playwright": r"\bplaywright\b",
    "tape": r"\btape\b|\bnode --test\b|\btap\b",
    "pytest": r"\bpy\.?test\b",
    "unittest": r"\bunittest\b|\bxmlrunner\b|manage\.py|\bdjango\b",
    "rspec": r"\brspec\b",
    "minitest": r"\bminitest\b|\brails\s+test\b|\bruby\b[^\n]{0,200}\btest",
    "junit": r"\bjunit\b|jupiter|\bmvnw?\b|gradle|surefire",
    "testng": r"\btestng\b",
    "phpunit": r"\bphpunit\b|\bpest\b|\bcodecept",
    "dotnet": r"\bdotnet\b|\bxunit\b|\bnunit\b",
    "go": r"\bgo test\b",
    "cargo": r"\bcargo\b",
    "mix": r"\bmix test\b",
}
_FURTHER_SIGNS = {
    "nyc": r"\bnyc\b|\bc8\b",
    "rake": r"\brake\b|\brails\b",
    "bundler": r"\bbundle\b|\bgem ['\"]",
    "pip": r"\bpip3?\b|\bpoetry\b|\buv\b|\bpipenv\b",
    "nose": r"\bnose",
    "vite": r"\bvite\b",
    "webpack": r"\bwebpack\b|react-scripts|vue-cli-service|craco|\bnext\b|\bnuxt\b|build-angular",
    "angular": r"@angular/|\bng\b",
    "babel": r"\bbabel\b|@babel/",
    "typescript": r"\btypescript\b|\btsc\b|ts-node|ts-jest",
    "tailwind": r"\btailwindcss\b",
    "maven": r"\bmvnw?\b",
    "gradle": r"gradle",
    "cmake": r"\bcmake\b|\bctest\b",
    **{
        name: rf"\b{name}\b"
        for name in (
            *(
                "protractor",
                "wdio",
                "nightwatch",
                "codecept",
                "testcafe",
                "ava",
                "web-test-runner",
                "wallaby",
            ),
            *(
                "stryker",
                "cucumber",
                "rollup",
                "esbuild",
                "gulp",
                "grunt",
                "nest",
                "eslint",
                "turbo",
                "lerna",
            ),
            *("bun", "deno", "tox", "nox", "sbt", "make", "just", "task"),
        )
    },
}
_BRINGS = {
    "jest": ("babel", "typescript", "node"),
    "vitest": ("vite", "typescript", "node"),
    "mocha": ("node",),
    "karma": ("webpack", "typescript", "angular", "jasmine", "node"),
    "pytest": ("python",),
    "unittest": ("python",),
    "junit": ("maven", "gradle"),
}
_MANIFESTS = re.compile(
    r"(?:.*/)?(?:package\.json|pom\.xml|build\.gradle(?:\.kts)?|gemfile|requirements[^/]*\.txt|pyproject\.toml|pipfile"
    r"|setup\.cfg|tox\.ini|makefile|composer\.json|[^/]*\.csproj)",
    re.IGNORECASE,
)
_CD = re.compile(r"(?:\bcd|(?<!\w)-C|--prefix[= ]|--cwd[= ])\s*[\"']?(?:\./)?([\w.-]+(?:/[\w.-]+)*)")
_NPM_CALL = re.compile(r"\b(?:npm|yarn|pnpm)\s+(?:run(?:-script)?\s+)?([\w:.-]+)")
_WORD = re.compile(r"[\w@./-]{2,300}")
_FILES_OF = {"make": ("GNUmakefile", "makefile", "Makefile"), "rake": ("rakefile", "Rakefile")}
_DEPTH, _MOST_TEXT = 4, 200_000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools at hand, the folders where they look, and everything that is run, as one text.

    `above_tests` are the folders above the tests; `development` names packages for development alone.
    """

    names: frozenset[str]
    places: frozenset[str]
    tests: frozenset[str]
    above_tests: frozenset[str]
    commands: str
    development: frozenset[str]

    @classmethod
    def of(cls, command: str, texts: Mapping[str, str], tests: Collection[str]) -> Tools:
        """From the test command and the text of the pristine files."""
        commands = "\n".join(_commands(command, texts))
        manifests = {path: text for path, text in texts.items() if _MANIFESTS.fullmatch(path)}
        places = {"", *(posixpath.dirname(path) for path in manifests), *_CD.findall(commands)}
        return cls(
            names=_at_hand("\n".join([commands, *manifests.values(), *_own_settings(texts)])),
            places=frozenset(places),
            tests=frozenset(tests),
            above_tests=frozenset({"", *(folder for path in tests for folder in above(path))}),
            commands=commands,
            development=frozenset(_development(manifests)),
        )

    def __contains__(self, tool: object) -> bool:
        return not self.names or tool in self.names

    def reads(self, path: str, *, is_new: bool) -> str | None:
        """`runner_configuration` or `build_configuration` where a tool reads this file by its name.

        Of the project's own files those with such a name are configuration wherever they lie: a command or
        another configuration may name them.
        """
        folder, _, name = path.rpartition("/")
        for rule, tools, reach, names in _COMPILED:
            if not names.fullmatch(name.lower()) or (self.names and not tools & self.names):
                continue
            if folder in self.places or reach == "any" or (reach == "above" and folder in self.above_tests):
                return rule
            if not is_new and not _is_everyday(name):
                return rule
        if path.lower().endswith("config/environments/test.rb"):
            return _RUNNER
        if "gradle" in self and re.match(r"(?:.*/)?buildSrc/|gradle/[^/]*\.(?:gradle(?:\.kts)?|toml)$", path):
            return _BUILD
        named = _NAMED_CONFIG.fullmatch(name.lower())
        return _BUILD if named and folder in self.places and named[1] in self.development else None


def is_dotfile(path: str) -> bool:
    """Whether a part of the path has a name with a dot, by which some tool may load it."""
    *folders, name = path.split("/")
    if any(folder.startswith(".") for folder in folders):
        return folders[0] not in _INERT_DOTFOLDERS
    return name.startswith(".") and not _INERT_DOTFILE.fullmatch(name)


def settings_text(text: str) -> Any:
    """A JSON document, None where it is none."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _is_everyday(name: str) -> bool:
    """Whether a name is also that of ordinary sources and data: only its place makes it configuration."""
    return re.fullmatch(
        r"(?:global|project|turbo|composer|deno)\.json|setup\.py|(?:cucumber|nightwatch|protractor|wallaby|karma|stryker)\..*"
        r"|(?:jest|vitest)[.-].*|.*\.(?:props|targets|sln)|task.*",
        name.lower(),
    ) is not None and not re.search(r"config|conf\.|setup\.[jt]s|preset|transform", name.lower())


def _at_hand(evidence: str) -> frozenset[str]:
    runners = {tool for tool, sign in _SIGNS.items() if re.search(sign, evidence, re.IGNORECASE)}
    if not runners:
        return frozenset()
    further = {tool for tool, sign in _FURTHER_SIGNS.items() if re.search(sign, evidence)}
    return frozenset(runners | further | {brought for tool in runners for brought in _BRINGS.get(tool, ())})


def _own_settings(texts: Mapping[str, str]) -> Iterator[str]:
    """What the project's own configuration is called, which tells of its tools (`vitest.config.js`)."""
    for path in texts:
        name = path.rpartition("/")[2]
        if re.fullmatch(r"\.?[\w-]+(?:\.config\.\w+|\.conf\.\w+|rc(?:\.\w+)?|\.ini)", name):
            yield re.sub(r"\.(?:config|conf)\.\w+$|\.ini$|rc(?:\.\w+)?$", "", name.removeprefix("."))


def _commands(command: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The command, and the scripts and npm scripts that it calls, and those that they call."""
    found: dict[str, str] = {}
    fresh = {"": command}
    for _ in range(_DEPTH):
        found |= fresh
        called: dict[str, str] = {}
        for text in fresh.values():
            called |= {path: texts[path] for path in _scripts_in(text, texts)}
            called |= _npm_scripts(text, texts)
        fresh = {name: text for name, text in called.items() if name not in found}
    yield from (text[:_MOST_TEXT] for text in found.values())


def _scripts_in(text: str, texts: Mapping[str, str]) -> Iterator[str]:
    folders = ["", *_CD.findall(text)]
    words = [
        *_WORD.findall(text),
        *(each for tool, files in _FILES_OF.items() if tool in text for each in files),
    ]
    for word in dict.fromkeys(words):
        for folder in folders:
            path = posixpath.normpath(posixpath.join(folder, word))
            is_script = texts.get(path, "").startswith("#!") or path.endswith((".sh", ".bash", "akefile"))
            if path in texts and is_script:
                yield path


def _npm_scripts(text: str, texts: Mapping[str, str]) -> dict[str, str]:
    scripts: dict[str, str] = {}
    for folder in ("", *_CD.findall(text)):
        path = posixpath.normpath(posixpath.join(folder, "package.json"))
        known = _section(texts.get(path, ""), "scripts")
        for name in _NPM_CALL.findall(text):
            name = "test" if name == "t" else name  # noqa: PLW2901 - npm's own short form
            for each in (f"pre{name}", name, f"post{name}"):
                if each in known:
                    scripts[f"{path}:{each}"] = str(known[each])
    return scripts


def _section(text: str, name: str) -> dict[str, Any]:
    package = settings_text(text)
    section = package.get(name) if isinstance(package, dict) else None
    return section if isinstance(section, dict) else {}


def _development(manifests: Mapping[str, str]) -> Iterator[str]:
    for path, text in manifests.items():
        if path.endswith("package.json"):
            used = _section(text, "dependencies")
            for name in _section(text, "devDependencies"):
                if name not in used:
                    yield name.rpartition("/")[2]


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
    words = {path for path in _named_in(tools.commands, texts) if _runs_tests(path)}
    for path, text in texts.items():
        if path.rpartition("/")[2] == "package.json":
            for section in ("jest", "mocha", "nyc", "ava", "vitest", "babel", "jest-junit"):
                words |= _named_by_settings(path, json.dumps(_section(text, section)), texts)
        elif tools.reads(path, is_new=False) == _RUNNER or _ALSO_RUNNER.search(path):
            words |= _named_by_settings(path, text, texts)
    return frozenset(words)


def _named_in(commands: str, texts: Mapping[str, str]) -> Iterator[str]:
    for folder in ("", *_CD.findall(commands)):
        for word in _WORD.findall(commands.replace("=", " ")):
            path = posixpath.normpath(posixpath.join(folder, word))
            if path in texts:
                yield path


def _runs_tests(path: str) -> bool:
    return any((_SCRIPT.fullmatch(path), _HARNESS.search(path), _SETTINGS_FILE.search(path)))


def _named_by_settings(path: str, text: str, texts: Mapping[str, str]) -> set[str]:
    """Existing files named right after a setting that makes the runner load them."""
    named = set()
    folder = posixpath.dirname(path)
    for setting in _SETTING.finditer(text):
        region = re.split(r"[\]})]", text[setting.end() : setting.end() + _SETTING_LENGTH], maxsplit=1)[0]
        for found in _STRING.findall(region):
            for word in shlex_words(next(filter(None, found), "")):
                name = word.rpartition("=")[2].replace("<rootDir>/", "").removeprefix("./")
                targets = {posixpath.normpath(posixpath.join(base, name)) for base in (folder, "")}
                named |= {f"{target}{suffix}" for target in targets for suffix in _SUFFIXES} & texts.keys()
    return named


def shlex_words(text: str) -> list[str]:
    """The words of a shell line; the line itself where its quotes do not pair."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
