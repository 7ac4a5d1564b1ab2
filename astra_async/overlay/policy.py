"""What an answer may change in a project.

A change that is refused is dropped and recorded, the rest is graded. A name alone refuses nothing: what
decides is whether this problem's commands, runner and languages would really read the file, or load it in
place of something that is not the answer's. In the order in which the questions are asked:

| question                                          | refused                                               |
|---------------------------------------------------|-------------------------------------------------------|
| Can it lie there?                                 | absolute paths, `..`, control characters, .git,       |
| (`paths`)                                         | node_modules and relatives, links, files as folders   |
| Does the problem forbid it?                       | hackerrank.yml, hidden and read-only paths, reports   |
| Is it one of the project's tests, or theirs?      | pristine tests by name, place and content, their      |
| (`pristine_tests`, `test_folders`)                | support files, and whatever is new in their folders   |
| Does a tool at hand read it by its name?          | jest.config.js where jest works, but not config/      |
| (`configuration`)                                 | jest.js; pyproject.toml with pytest, not with mocha;  |
|                                                   | files that commands and settings name; dotfiles       |
| Would a command take its name for more than one   | a Java source named `A -proc:none @x.java`            |
| Would a lookup find it in place of a protected    | `books/tests/__init__.py` beside books/tests.py,      |
| file or of an installed module? (`lookups`)       | pygments/ at the root, `x.ts` beside a protected x.js |
| Is it a test of the answer's own?                 | it counts nothing and could take the others with it;  |
|                                                   | kept where the rest of the answer loads it            |

Everything else may change or be new, whatever its name and kind. Of package.json only dependencies are
taken, of .env files all but what steers a test process (`merged_files`). requirements.txt may change unless
the test command runs pip. Names that must win over a module which is installed are judged by what the
problem's image holds (`Installed`); without an image by what is usual.
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
from astra_async.overlay.tools import tools_at_hand
from astra_async.problems.manifest import MANIFEST_NAMES
from astra_async.problems.patterns import PathPatterns
from astra_async.problems.sources import source_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from astra_async.languages.project_files import ProjectTools
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
    """The project's tests and what serves them alone, by the problem's word, name, place, content or use.

    A file that is called like a test, holds none and is used by sources and by no test is a source. Only a
    source can use another: what a text, a manifest or a build file says of a test makes it none.
    """
    certain = {path for path, text in texts.items() if path in named or _is_certain(path, text)}
    likely = {path for path in texts if path not in certain and is_test_by_name(path)}
    others = texts.keys() - certain - likely
    support = {path for path in others if _TEST_SUPPORT_NAME.search(path.rpartition("/")[2])}
    users = _users(likely | support, texts)
    sources = {path for path in likely if users[path] - likely - certain and not users[path] & certain}
    tests = certain | likely - sources
    return frozenset(tests | {path for path in support if users[path] and not users[path] - tests})


def test_folders(tests: Collection[str]) -> frozenset[str]:
    """Folders named for tests that hold some: whatever is below them is theirs."""
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


def is_tests_alone(path: str) -> bool:
    """Whether a file in this place can serve nothing but tests, even where the project has none there."""
    return any(each.alone.search(path) for each in _RULES if each.alone)


def is_own_test(path: str, text: str) -> bool:
    """Whether a new file is called like a test and holds test cases, where its language's are known."""
    language = language_of(path)
    if language is None or not language.tests.content:
        return language is not None and _is_named(path)
    likely = language.tests.likely
    is_called_so = is_test_by_name(path) or (likely and likely.search(path))
    return bool(is_called_so) and is_test_by_content(path, text)


def is_test_by_name(path: str) -> bool:
    """Whether a runner takes a file of this name for a test, or it lies where projects keep tests."""
    return _TOP_TEST_FOLDER.search(path) is not None or _is_named(path)


def is_test_by_content(path: str, text: str) -> bool:
    """Whether a pristine file holds test cases."""
    language = language_of(path)
    content = language.tests.content if language else ()
    return bool(content) and all(pattern.search(text) for pattern in content)


def _is_named(path: str) -> bool:
    return any(each.paths.search(path) for each in _RULES if each.paths)


def _is_certain(path: str, text: str) -> bool:
    language = language_of(path)
    named = language.tests.certain if language else None
    return bool(named and named.search(path)) or is_test_by_content(path, text)


def _users(paths: Collection[str], texts: Mapping[str, str]) -> dict[str, set[str]]:
    """The sources that mention each of these by its name without suffixes: all words of it stand in them."""
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
    "version_control": "inside .git or its relatives",
    "dependency_folder": "inside node_modules, a virtual environment or their relatives",
    "manifest": "hackerrank.yml",
    "hidden": "one of the problem's hidden files",
    "read_only": "one of the problem's read-only paths",
    "protected_test": "a test, its support files, or a place where tests are kept",
    "own_test": "a test of its own: it counts nothing and could change what the others do",
    "report_file": "where the test report is written",
    "runner_configuration": "read by the test runner or the interpreter",
    "build_configuration": "read by a build tool or package manager",
    "dotfile": "loaded by name by tools",
    "through_link": "a symbolic link of the project, or a path through one",
    "conflicts_with_folder": "a folder of the project or of the answer has this name",
    "conflicts_with_file": "a file of the project or of the answer stands where a folder is needed",
    "tool_argument": "a name that a command of the tests would read as options or as several files",
    "plugin_registration": "package metadata or service files that load plugins",
    "compiled": "compiled or packed code",
    "shadows_module": "a module that would be loaded in place of an installed one",
    "shadows_protected": "a file that would be loaded in place of a protected one",
    "invalid_json": "a manifest that cannot be read",
    "not_a_version": "a dependency given by alias, path or address",
    "too_many_files": "beyond the number of files that an answer may give",
    "too_large": "beyond the size that an answer's file may have",
    "not_deletable": "an agent has deleted a file of which only parts may be changed",
    "no_text": "bytes in place of a text of which only parts may be changed",
}

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", "cvs"})
_DEPENDENCY_FOLDERS = frozenset().union(*(each.tools.dependency_folders for each in LANGUAGES))
# Where file names become arguments: globs, listings, files of arguments.
_EXPANDS = re.compile(r"[*?]|\b(?:find|xargs|ls)\b|@\w")
_NOT_ONE_WORD = re.compile(r"[\s'\"\\;|&<>`*?]|(?:^|/)-")
_READ_BY_COMMANDS = frozenset({"", "c", "cc", "cpp", "sh"})  # beside the sources of all languages
_READABLE_BYTES = 400_000  # of a pristine file that is searched for test cases


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPolicy:
    """The rules for one problem's project; `refusal` answers for one path.

    `tests` and `runner_files` are pristine files found by name, place, content or use; `tools` read files by
    their names; `lookups` find modules and classes.
    """

    files: Mapping[str, ProjectFile]
    folders: frozenset[str]
    read_only: PathPatterns
    hidden: PathPatterns
    reports: PathPatterns
    tests: frozenset[str]
    test_folders: frozenset[str]
    runner_files: frozenset[str]
    tools: ProjectTools
    lookups: Lookups

    def knowing(self, installed: Installed) -> PathPolicy:
        """The same rules with what the problem's image really holds."""
        return replace(self, lookups=replace(self.lookups, installed=installed))

    def texts(self) -> dict[str, str]:
        """The text of each pristine file; empty where there is none to read."""
        return {path: _text(file) for path, file in self.files.items()}

    def refusal(self, path: str, text: str = "") -> str | None:
        """The rule (a key of REFUSALS) that refuses to give this path that text, or None.

        Without a text only the path is judged.
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
        if path in self.tests or in_their_folder or is_tests_alone(path):
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
        if self._is_no_argument(path):
            return "tool_argument"
        found = self.lookups.new(path, text)
        return found or ("own_test" if is_own_test(path, text) else None)

    def _is_no_argument(self, path: str) -> bool:
        language = language_of(path)
        if language and language.arguments:
            return language.arguments.fullmatch(path) is None
        is_read = language is not None or split(path)[2] in _READ_BY_COMMANDS
        expands = is_read and _EXPANDS.search(self.tools.commands)
        return bool(expands) and _NOT_ONE_WORD.search(path) is not None


def path_policy(problem: Problem, project: Project) -> PathPolicy:
    """The rules for a problem and its project; costs a few passes over the pristine files' text."""
    files = {file.path: file for file in project.files}
    texts = {file.path: _text(file) for file in project.files}
    empty = [folder.rstrip("/") for folder in project.empty_folders]
    tests = pristine_tests(texts, {test.file for test in problem.tests if test.file})
    tools = tools_at_hand(problem.test_command, texts, tests)
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
