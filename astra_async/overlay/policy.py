"""Rules for the files that an answer may change in a project.

A refused change is dropped and recorded; the remaining changes are graded. A name alone is never a reason for
refusal. A file is refused if this problem's commands, runner or languages would really read it, or would load
it in place of a file that answers may not change. The rules in order:

| rule                                              | refused                                               |
|---------------------------------------------------|-------------------------------------------------------|
| invalid place                                     | absolute paths, `..`, control characters, .git,       |
| (`paths`)                                         | node_modules and similar, links, files as folders     |
| forbidden by the problem                          | hackerrank.yml, hidden and read-only paths, reports   |
| a test of the project, or in a test folder        | pristine tests by name, place and content, their      |
| (`pristine_tests`, `test_folders`)                | support files, and new files in test folders          |
| configuration that a tool of the problem reads    | jest.config.js in a folder that jest uses, but not    |
| (`configuration`)                                 | config/jest.js; pyproject.toml with pytest, not with  |
|                                                   | mocha; files named by commands and settings; dotfiles |
| a name that a command splits or reads as option   | a Java source named `A -proc:none @x.java`            |
| loaded in place of a protected file or of an      | `books/tests/__init__.py` next to books/tests.py,     |
| installed module (`lookups`)                      | pygments/ at the root, `x.ts` next to protected x.js  |
| the answer's own test                             | not counted, and could break the real tests; kept if  |
|                                                   | other files of the answer load it                     |

All other files may be changed or added. In package.json only dependencies are accepted, in .env files
everything except lines that steer a test process (`merged_files`). requirements.txt may change unless the
test command runs pip. The installed modules are those of the problem's image (`Installed`); without an image
the usual modules are assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES, language_of
from astra_async.languages.project_files import Pristine, above, split
from astra_async.overlay.configuration import Lookups, is_dotfile, reads, runner_files
from astra_async.overlay.merged_files import merge_of
from astra_async.overlay.paths import name_refusal
from astra_async.overlay.tools import detect_tools
from astra_async.problems.manifest import MANIFEST_NAMES
from astra_async.problems.patterns import PathPatterns
from astra_async.problems.sources import source_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from astra_async.languages.project_files import ProblemTools
    from astra_async.overlay.configuration import Installed
    from astra_async.types import Problem, Project, ProjectFile


_TOP_TEST_FOLDER = re.compile(r"^(?:tests?|specs?)/")
_TEST_FOLDERS = {"test", "tests", "spec", "specs", "fixtures", "testing"}.union(
    *(language.tests.folders for language in LANGUAGES)
)
_RULES = [language.tests for language in LANGUAGES]
_TEST_SUPPORT_NAME = re.compile(
    r"^(?:tests?|spec|mocks?)[-_.]?(?:utils?|helpers?|setup|support|data|server|fixtures?|render(?:er)?|env|db|app)\b"
    r"|^mocks?\.",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def pristine_tests(texts: Mapping[str, str], named: Collection[str | None]) -> frozenset[str]:
    """Return the project's tests and their support files.

    Tests are found by the problem's list, by name, place and content, and by use. A file that is named like a
    test, holds no test and is used by sources but not by tests counts as a source. Only source files count as
    users; a mention in prose, a manifest or a build file is ignored.
    """
    certain = {path for path, text in texts.items() if path in named or _is_test_file(path, text)}
    likely = {path for path in texts if path not in certain and is_test_by_name(path)}
    others = texts.keys() - certain - likely
    support = {path for path in others if _TEST_SUPPORT_NAME.search(path.rpartition("/")[2])}
    users = _users(likely | support, texts)
    sources = {path for path in likely if users[path] - likely - certain and not users[path] & certain}
    tests = certain | likely - sources
    return frozenset(tests | {path for path in support if users[path] and not users[path] - tests})


def test_folders(tests: Collection[str]) -> frozenset[str]:
    """Return folders that are named for tests and hold some; new files below them are refused."""
    named = (
        folder
        for path in tests
        for folder in above(path)
        if folder.rpartition("/")[2].lower() in _TEST_FOLDERS
    )
    whole = {
        path.partition("/")[0] for path in tests for each in _RULES if each.whole and each.whole.search(path)
    }
    return frozenset(named) | whole


def is_only_for_tests(path: str) -> bool:
    """Return True if only tests use files in this place, even if the project has no tests there."""
    return any(each.alone.search(path) for each in _RULES if each.alone)


def is_own_test(path: str, text: str) -> bool:
    """Return True if a new file is named like a test and holds test cases, if its language defines those."""
    language = language_of(path)
    if language is None or not language.tests.content:
        return language is not None and _is_named(path)
    likely = language.tests.likely
    is_called_so = is_test_by_name(path) or (likely and likely.search(path))
    return bool(is_called_so) and is_test_by_content(path, text)


def is_test_by_name(path: str) -> bool:
    """Return True if a runner treats a file of this name as a test, or its top folder is for tests."""
    return _TOP_TEST_FOLDER.search(path) is not None or _is_named(path)


def is_test_by_content(path: str, text: str) -> bool:
    """Return True if a pristine file holds test cases."""
    language = language_of(path)
    content = language.tests.content if language else ()
    return bool(content) and all(pattern.search(text) for pattern in content)


def _is_named(path: str) -> bool:
    return any(each.paths.search(path) for each in _RULES if each.paths)


def _is_test_file(path: str, text: str) -> bool:
    language = language_of(path)
    named = language.tests.certain if language else None
    return bool(named and named.search(path)) or is_test_by_content(path, text)


def _users(paths: Collection[str], texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return for each path the source files that mention every word of its name without suffixes."""
    words_of = {path: set(_WORD.findall(path.rpartition("/")[2].partition(".")[0])) for path in paths}
    users_of: dict[str, set[str]] = {word: set() for words in words_of.values() for word in words}
    for user, text in texts.items() if users_of else ():
        if language_of(user):
            for word in users_of.keys() & set(_WORD.findall(text)):
                users_of[word].add(user)
    return {
        path: set.intersection(*(users_of[word] for word in words)) - {path} if words else set()
        for path, words in words_of.items()
    }


REFUSALS = {
    "absolute": "an absolute path",
    "outside": "a path that leaves the project",
    "bad_name": "an empty name, a folder, or control characters in it",
    "too_long": "a name, path or nesting that file systems refuse",
    "version_control": "inside .git or the folder of another version control system",
    "dependency_folder": "inside node_modules, a virtual environment or a similar folder",
    "manifest": "hackerrank.yml",
    "hidden": "one of the problem's hidden files",
    "read_only": "one of the problem's read-only paths",
    "protected_test": "a test, a support file of tests, or a file in a test folder",
    "own_test": "the answer's own test: it is not counted and could affect the real tests",
    "report_file": "a path of the test report",
    "runner_configuration": "read by the test runner or the interpreter",
    "build_configuration": "read by a build tool or package manager",
    "dotfile": "a dotfile that tools load by name",
    "through_link": "a symbolic link of the project, or a path through one",
    "conflicts_with_folder": "a folder of the project or of the answer has this name",
    "conflicts_with_file": "a parent folder has the name of a file of the project or of the answer",
    "tool_argument": "a name that a command of the tests would read as options or as several files",
    "plugin_registration": "package metadata or service files that load plugins",
    "compiled": "compiled or packed code",
    "shadows_module": "a module that would be loaded in place of an installed one",
    "shadows_protected": "a file that would be loaded in place of a protected one",
    "invalid_json": "a manifest that is invalid JSON",
    "not_a_version": "a dependency given by alias, path or address",
    "too_many_files": "more files than an answer may have",
    "too_large": "larger than a file of an answer may be",
    "not_deletable": "an agent deleted a file of which only parts may be changed",
    "no_text": "binary content for a text file of which only parts may be changed",
}

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", "cvs"})
_DEPENDENCY_FOLDERS = frozenset().union(*(each.tools.dependency_folders for each in LANGUAGES))
# Commands that turn file names into arguments: globs, listings, argument files.
_EXPANDS = re.compile(r"[*?]|\b(?:find|xargs|ls)\b|@\w")
_NOT_ONE_WORD = re.compile(r"[\s'\"\\;|&<>`*?]|(?:^|/)-")
_READ_BY_COMMANDS = frozenset({"", "c", "cc", "cpp", "sh"})  # suffixes, in addition to all languages' sources
_READABLE_BYTES = 400_000  # larger pristine files are not searched for test cases


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPolicy:
    """Rules for the paths of one problem's project; call `refusal` for each path.

    `tests` and `runner_files` are pristine files found by name, place, content or use. `tools` are the tools
    that read files by name. `lookups` are the module and class lookups.
    """

    files: Mapping[str, ProjectFile]
    folders: frozenset[str]
    read_only: PathPatterns
    hidden: PathPatterns
    reports: PathPatterns
    tests: frozenset[str]
    test_folders: frozenset[str]
    runner_files: frozenset[str]
    tools: ProblemTools
    lookups: Lookups

    def with_installed(self, installed: Installed) -> PathPolicy:
        """Return these rules with the modules that the problem's image really holds."""
        return replace(self, lookups=replace(self.lookups, installed=installed))

    def texts(self) -> dict[str, str]:
        """Return the text of each pristine file; "" for links, binary files and large files."""
        return {path: _text(file) for path, file in self.files.items()}

    def refusal(self, path: str, text: str = "") -> str | None:
        """Return the rule (a key of REFUSALS) that refuses this text for this path, or None.

        With an empty text only the path is checked.
        """
        return (
            name_refusal(path)
            or _place_refusal(path)
            or self._problem_refusal(path)
            or self._configuration_refusal(path)
            or self._structure_refusal(path)
            or self._text_refusal(path, text)
        )

    def _problem_refusal(self, path: str) -> str | None:
        if path.lower() in MANIFEST_NAMES:
            return "manifest"
        if self.hidden.matches(path):
            return "hidden"
        if self.read_only.matches(path):
            return "read_only"
        in_their_folder = any(folder in self.test_folders for folder in above(path))
        if path in self.tests or in_their_folder or is_only_for_tests(path):
            return "protected_test"
        return "report_file" if self.reports.matches(path) else None

    def _configuration_refusal(self, path: str) -> str | None:
        if path in self.runner_files:
            return "runner_configuration"
        file = self.files.get(path)
        merge = merge_of(path, None if file is None else _text(file))
        if merge is not None and merge.is_enough:
            return None
        return reads(self.tools, path, is_new=file is None) or ("dotfile" if is_dotfile(path) else None)

    def _structure_refusal(self, path: str) -> str | None:
        parents = [each for each in above(path) if each in self.files]
        if any(self.files[each].link is not None for each in (*parents, path) if each in self.files):
            return "through_link"
        if parents:
            return "conflicts_with_file"
        return "conflicts_with_folder" if path in self.folders else None

    def _text_refusal(self, path: str, text: str) -> str | None:
        if path in self.files:
            return self.lookups.changed(path, text) if text else None
        if self._is_unsafe_argument(path):
            return "tool_argument"
        found = self.lookups.new(path, text)
        return found or ("own_test" if is_own_test(path, text) else None)

    def _is_unsafe_argument(self, path: str) -> bool:
        language = language_of(path)
        if language and language.arguments:
            return language.arguments.fullmatch(path) is None
        is_read = language is not None or split(path)[2] in _READ_BY_COMMANDS
        expands = is_read and _EXPANDS.search(self.tools.commands)
        return bool(expands) and _NOT_ONE_WORD.search(path) is not None


def path_policy(problem: Problem, project: Project) -> PathPolicy:
    """Return the rules for a problem and its project; costs a few passes over the pristine files' text."""
    files = {file.path: file for file in project.files}
    texts = {file.path: _text(file) for file in project.files}
    empty = [folder.rstrip("/") for folder in project.empty_folders]
    tests = pristine_tests(texts, {test.file for test in problem.tests if test.file})
    tools = detect_tools(problem.test_command, texts, tests)
    policy = PathPolicy(
        files=files,
        folders=frozenset(
            folder for path in (*files, *(f"{each}/_" for each in empty)) for folder in above(path)
        ),
        read_only=PathPatterns.of(problem.readonly_paths),
        hidden=PathPatterns.of(problem.hidden_paths),
        reports=PathPatterns.of(problem.result_files, anchored=True),
        tests=tests,
        test_folders=test_folders(tests),
        runner_files=runner_files(tools, texts),
        tools=tools,
        lookups=Lookups(),
    )
    protected = frozenset(path for path in files if policy.refusal(path) is not None)
    words = frozenset(re.findall(r"\w+", problem.statement))
    pristine = Pristine(texts=texts, protected=protected, tools=tools, statement=words)
    lookups = {each.name: each.lookup(pristine) for each in LANGUAGES if each.lookup}
    return replace(policy, lookups=Lookups(of=lookups))


def _place_refusal(path: str) -> str | None:
    parts = {part.lower() for part in path.split("/")}
    if parts & _VERSION_CONTROL:
        return "version_control"
    return "dependency_folder" if parts & _DEPENDENCY_FOLDERS else None


def _text(file: ProjectFile) -> str:
    if file.link is not None or len(file.content) > _READABLE_BYTES:
        return ""
    if found := source_text(file.content):
        return found.text
    return "" if b"\0" in file.content else file.content.decode(errors="replace")
