"""What an answer may change in a project.

A change that is refused is dropped and recorded, the rest is graded. The question is less "which names
are forbidden" (that list is never complete) than "where does this project keep its sources": pristine
files other than tests and configuration may change, and new files of the usual source kinds may stand
beside them. Decisions that are not obvious:

| file                                            | decision                                                |
|-------------------------------------------------|---------------------------------------------------------|
| settings.py, urls.py, config/routes.rb, app.js, | may change: sources, whatever their name says           |
| index.html, config/initializers, environments   | (not `config/environments/test.rb`: only tests read it) |
| package.json                                    | merged: dependencies and devDependencies only           |
| a second, new package.json                      | refused: `type`, `main`, `imports` change what is loaded |
| requirements.txt                                | may change, unless the test command runs pip            |
| Gemfile, pom.xml, *.gradle, *.csproj, go.mod,   | refused: evaluated or read by the runner, and nothing   |
| lock files                                      | that they add could be installed without a network      |
| tsconfig, angular.json, vite/webpack/babel      | refused: aliases and plugins put other code into tests  |
| existing tests and their support files          | refused: by pattern, name, place or content             |
| own new tests                                   | refused: they count nothing, and may change the others  |
| `src/utils/test-helpers.js`, new                | may be added; existing: refused, the tests rely on it   |
| models/test.js, routes/tests.js (a quiz)        | may change or be new, unless they hold test cases       |
| .env, .env.*                                    | merged: all but the variables that steer a test process |
| other dotfiles (.npmrc, .babelrc, .rspec ...)   | refused: loaded by name, by tools beyond any list       |
| json.py, pytest.py at an import root, new       | refused: would be imported in place of the real module  |
| *.pth, *.egg-info, META-INF/services            | refused: register plugins                               |
| files of a kind that the project does not have  | refused unless a common source or asset kind            |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.overlay import kinds, shadowing, test_names, tool_files
from astra_async.overlay.paths import name_refusal
from astra_async.overlay.runner_files import runner_files
from astra_async.problems.patterns import PathPatterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.types import Problem, Project, ProjectFile

REFUSALS = {
    "absolute": "an absolute path",
    "outside": "a path that leaves the project",
    "bad_name": "an empty name, a folder, or control characters in it",
    "too_long": "a name, path or nesting that file systems refuse",
    "version_control": "inside .git or its relatives",
    "dependency_folder": "inside node_modules, a virtual environment or their relatives",
    "manifest": "hackerrank.yml",
    "hidden": "one of the problem's hidden files",
    "read_only": "one of the problem's read-only paths",
    "protected_test": "a test, its support files, or a place where tests are kept",
    "report_file": "where the test report is written",
    "runner_configuration": "read by the test runner or the interpreter",
    "build_configuration": "read by a build tool or package manager",
    "dotfile": "loaded by name by tools",
    "through_link": "a symbolic link of the project, or a path through one",
    "conflicts_with_folder": "a folder of the project or of the answer has this name",
    "conflicts_with_file": "a file of the project or of the answer stands where a folder is needed",
    "plugin_registration": "package metadata or service files that load plugins",
    "compiled": "compiled or packed code",
    "shadows_module": "a module that would be loaded in place of an installed one",
    "unknown_kind": "a new file of a kind that the project does not have",
    "invalid_json": "a package.json that cannot be read",
    "not_a_version": "a dependency given by alias, path or address",
    "too_many_files": "beyond the number of files that an answer may give",
    "too_large": "beyond the size that an answer's file may have",
}

_PACKAGE_JSON = "package.json"
_ENVIRONMENT_FILE = re.compile(r"(?:.*/)?\.env(?:\.[\w.-]{1,40})?")
_REQUIREMENTS = re.compile(r"(?:.*/)?(?:requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt|constraints\.txt)")
_RUNS_PIP = re.compile(r"\bpip3?\b")
_READABLE_BYTES = 400_000  # of a pristine file that is searched for test cases


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPolicy:
    """The rules for one problem's project; `refusal` answers for one path.

    `tests` and `runner_files` are pristine files found by name, place, content or use; `import_roots` are
    folders from which Python imports by bare name; `suffixes` are those of the project's own sources.
    """

    files: Mapping[str, ProjectFile]
    folders: frozenset[str]
    read_only: PathPatterns
    hidden: PathPatterns
    reports: PathPatterns
    tests: frozenset[str]
    test_folders: frozenset[str]
    runner_files: frozenset[str]
    import_roots: frozenset[str]
    suffixes: frozenset[str]
    runs_pip: bool

    def refusal(self, path: str) -> str | None:
        """The rule (a key of REFUSALS) that refuses a change of this path, or None when it may change."""
        return (
            name_refusal(path)
            or _place_refusal(path)
            or self._problem_refusal(path)
            or self._configuration_refusal(path)
            or self._structure_refusal(path)
            or (None if path in self.files else self._new_file_refusal(path))
        )

    def is_merged(self, path: str) -> bool:
        """Whether the path is a pristine package.json, of which only dependencies may change."""
        return path in self.files and path.rpartition("/")[2] == _PACKAGE_JSON

    def is_environment(self, path: str) -> bool:
        """Whether the path is a .env file, whose variables decide."""
        return _ENVIRONMENT_FILE.fullmatch(path) is not None

    def _problem_refusal(self, path: str) -> str | None:
        if path.lower() in {"hackerrank.yml", "hackerrank.yaml"}:
            return "manifest"
        if self.hidden.matches(path):
            return "hidden"
        if self.read_only.matches(path):
            return "read_only"
        if self._is_test(path):
            return "protected_test"
        return "report_file" if self.reports.matches(path) else None

    def _is_test(self, path: str) -> bool:
        if path in self.tests or test_names.is_test_by_name(path):
            return True
        if any(folder in self.test_folders for folder in _above(path)):
            return True
        # A new file at the root with a test's likely name (`test.js`, `api-test.js`) is an own test.
        return path not in self.files and "/" not in path and test_names.is_test_by_likely_name(path)

    def _configuration_refusal(self, path: str) -> str | None:
        if path in self.runner_files:
            return "runner_configuration"
        if self.is_merged(path):
            return None
        is_package = path.rpartition("/")[2].lower() == _PACKAGE_JSON
        if is_package or (self.runs_pip and _REQUIREMENTS.fullmatch(path)):
            return "build_configuration"
        hidden = any(part.startswith(".") for part in path.split("/")) and not self.is_environment(path)
        hidden = hidden and path.rpartition("/")[2] not in kinds.INERT_DOTFILES
        return tool_files.configuration(path) or ("dotfile" if hidden else None)

    def _structure_refusal(self, path: str) -> str | None:
        above = list(_above(path))
        if any(
            (file := self.files.get(each)) is not None and file.link is not None for each in (path, *above)
        ):
            return "through_link"
        if any(each in self.files for each in above):
            return "conflicts_with_file"
        return "conflicts_with_folder" if path in self.folders else None

    def _new_file_refusal(self, path: str) -> str | None:
        if kinds.is_plugin_registration(path):
            return "plugin_registration"
        if kinds.is_compiled(path):
            return "compiled"
        if self._shadows(path):
            return "shadows_module"
        folder, _, name = path.rpartition("/")
        beside_package = not folder or f"{folder}/{_PACKAGE_JSON}" in self.files
        if beside_package and tool_files.is_unknown_tool_configuration(path):
            return "build_configuration"
        suffix = _suffix(name)
        bare = suffix == "" and name.lower() in kinds.BARE_NAMES | kinds.INERT_DOTFILES
        known = bare or suffix in kinds.SOURCE_SUFFIXES or suffix in self.suffixes
        return None if known or self.is_environment(path) else "unknown_kind"

    def _shadows(self, path: str) -> bool:
        *folders, name = path.split("/")
        module, suffix = name.partition(".")[0], _suffix(name)
        if suffix in {"py", "pyi"}:
            return self._shadows_python(path)
        if suffix in {"js", "jsx", "mjs", "cjs", "ts", "tsx", "json"}:
            return shadowing.shadows_javascript(folders, name)
        if suffix == "rb":
            return shadowing.shadows_ruby(folders, module)
        return suffix in {"java", "kt", "groovy", "scala"} and shadowing.shadows_jvm(path)

    def _shadows_python(self, path: str) -> bool:
        """Whether the new file is, or lies in, a new module or package right below an import root."""
        for root in self.import_roots:
            prefix = f"{root}/" if root else ""
            if not path.startswith(prefix):
                continue
            first = path.removeprefix(prefix).partition("/")[0]
            if f"{prefix}{first}" not in self.folders and shadowing.shadows_python(first.partition(".")[0]):
                return True
        return False


def path_policy(problem: Problem, project: Project) -> PathPolicy:
    """The rules for a problem and its project; costs one pass over the pristine files' text."""
    files = {file.path: file for file in project.files}
    texts = {file.path: _text(file) for file in project.files}
    folders = frozenset(folder for path in files for folder in _above(path)) | frozenset(
        folder
        for empty in project.empty_folders
        for folder in (empty.rstrip("/"), *_above(empty.rstrip("/")))
    )
    test_files = {test.file for test in problem.tests if test.file}
    tests = frozenset(path for path, text in texts.items() if _is_pristine_test(path, text, test_files))
    tests |= _used_by_tests_alone(tests, texts)
    return PathPolicy(
        files=files,
        folders=folders,
        read_only=PathPatterns.of(problem.readonly_paths),
        hidden=PathPatterns.of(problem.hidden_paths),
        reports=PathPatterns.of(problem.result_files, anchored=True),
        tests=tests,
        test_folders=_test_folders(tests),
        runner_files=runner_files(problem.test_command, texts),
        import_roots=_import_roots(files, tests),
        suffixes=frozenset(_suffix(path) for path in files if path not in tests and _is_plain_source(path))
        - {""},
        runs_pip=_RUNS_PIP.search(problem.test_command) is not None,
    )


def _place_refusal(path: str) -> str | None:
    parts = {part.lower() for part in path.split("/")}
    if parts & kinds.VERSION_CONTROL:
        return "version_control"
    return "dependency_folder" if parts & kinds.DEPENDENCY_FOLDERS else None


def _above(path: str) -> Iterable[str]:
    """Every folder above a path, from the root down."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem else ""


def _text(file: ProjectFile) -> str:
    if file.link is not None or len(file.content) > _READABLE_BYTES or b"\0" in file.content:
        return ""
    return file.content.decode(errors="replace")


def _is_pristine_test(path: str, text: str, named: set[str]) -> bool:
    return path in named or test_names.is_test_by_name(path) or test_names.is_test_by_content(path, text)


def _used_by_tests_alone(tests: frozenset[str], texts: Mapping[str, str]) -> frozenset[str]:
    """Existing files with a support file's name that some test mentions and no source does."""
    support = set()
    for path in texts:
        if path in tests or not test_names.is_test_support(path):
            continue
        mention = re.compile(rf"(?<!\w){re.escape(path.rpartition('/')[2].partition('.')[0])}\b")
        users = {user for user, text in texts.items() if user != path and mention.search(text)}
        if users & tests and not users - tests:
            support.add(path)
    return frozenset(support)


def _test_folders(tests: frozenset[str]) -> frozenset[str]:
    """Folders named for tests that hold some: whatever is below them is theirs."""
    named = (
        folder
        for path in tests
        for folder in _above(path)
        if folder.rpartition("/")[2].lower() in test_names.TEST_FOLDERS
    )
    return frozenset(named) | {path.partition("/")[0] for path in tests if path.endswith(".feature")}


def _import_roots(files: Mapping[str, ProjectFile], tests: frozenset[str]) -> frozenset[str]:
    """Folders on Python's path: the root, src, where manage.py and tests outside of packages lie."""
    roots = {"", "src"}
    for path in files:
        folder, _, name = path.rpartition("/")
        is_entry = name in {"manage.py", "setup.py", "conftest.py", "pytest.ini"}
        is_loose_test = path in tests and name.endswith(".py") and f"{folder}/__init__.py" not in files
        if is_entry or is_loose_test:
            roots.add(folder)
    return frozenset(roots)


def _is_plain_source(path: str) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    return not hidden and tool_files.configuration(path) is None and not kinds.is_compiled(path)
