"""What test runners take for tests, by name, place or content; and what serves the tests.

Names are matched on the base name. Case counts where it tells a test from a word (`LoginTest` from
`latest`). `policy` combines these rules with the project at hand.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from astra_async.overlay.paths import above

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_ALWAYS_TEST_FOLDERS = frozenset(
    {"__tests__", "__mocks__", "__snapshots__", "__fixtures__", "step_definitions"}
)
_TOP_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "e2e", "cypress", "playwright"})
_TEST_FOLDERS = _TOP_TEST_FOLDERS | _ALWAYS_TEST_FOLDERS | {"fixtures", "testing"}

_JS = r"\.(?:[cm]?[jt]sx?|vue|coffee)"
_CERTAIN_TEST_NAME = re.compile(
    rf"[.](?:tests?|specs?|cy|e2e|e2e-spec){_JS}$"
    r"|^test_.*\.py$|_tests?\.py$|^tests?\.py$|^conftest\.py$"
    r"|_(?:test|spec)\.(?:rb|go|exs|ex|dart)$|^test_.*\.rb$|^(?:spec|rails|test)_helper\.rb$"
    r"|\.feature$|\.snap$|[a-z0-9]Tests?\.(?:php|cs)$|[a-z0-9]Cest\.php$"
)
_ANGULAR_ENTRY = re.compile(r"(?:^|/)src/test\.[jt]s$")  # loads every spec file for karma
_JAVA_TEST_NAME = re.compile(
    r"(?:Tests?|TestCase|IT|Spec)\.(?:java|kt|groovy|scala)$|^Test[A-Z]\w*\.(?:java|kt)$"
)
_LIKELY_TEST_NAME = re.compile(rf"(?:^|[-_.])(?:[Tt]ests?|[Ss]pecs?)(?:[-_.].*)?{_JS}$|[a-z]Tests?{_JS}$")
_TEST_SUPPORT_NAME = re.compile(
    r"^(?:tests?|spec|mocks?)[-_.]?(?:utils?|helpers?|setup|support|data|server|fixtures?|render(?:er)?|env|db|app)\b"
    r"|^mocks?\.",
    re.IGNORECASE,
)
_JVM_FOLDERS = frozenset({"java", "kotlin", "groovy", "scala", "resources"})
_DOTNET_TEST_PROJECT = re.compile(r"[.](?:Unit|Integration|Api)?Tests?$")

_WORD = re.compile(r"\w+")

# Content that only a test has; searched in pristine files alone.
_TEST_CONTENT = {
    "js": re.compile(r"(?<![.\w$])(?:it|test|specify)(?:\.(?:only|skip|each|concurrent))?\(\s{0,50}[\"'`]"),
    "js_assertion": re.compile(r"\bexpect\s?\(|\bassert\b|\bshould\b|\.expect\(|\bt\.(?:is|equal|ok|same)\("),
    "py": re.compile(
        r"^\s{0,40}(?:async )?def test_\w+\(|^import pytest|^from pytest|^import unittest", re.MULTILINE
    ),
    "java": re.compile(
        r"@(?:Test|ParameterizedTest|RepeatedTest)\b|import (?:static )?org\.(?:junit|testng)"
    ),
    "rb": re.compile(
        r"\bRSpec\.describe\b|\bMinitest::|\bActiveSupport::TestCase\b|\bIntegrationTest\b|\bTest::Unit\b"
    ),
    "cs": re.compile(r"\[(?:Fact|Theory|Test|TestMethod|TestFixture)\b"),
    "php": re.compile(r"extends\s+(?:\w+\\)*TestCase\b"),
}
_UNREAD_LANGUAGES = frozenset({"go", "ex", "exs", "dart", "coffee", "feature"})
_LANGUAGES = {
    **dict.fromkeys(("mjs", "cjs", "jsx", "ts", "tsx", "mts"), "js"),
    **dict.fromkeys(("kt", "groovy"), "java"),
}


def pristine_tests(texts: Mapping[str, str], named: Collection[str | None]) -> frozenset[str]:
    """The project's tests and what serves them alone, by the problem's word, name, place, content or use.

    A file that is called like a test, holds none and is used by sources and by no test is a source.
    """
    certain = {path for path, text in texts.items() if path in named or is_test_by_content(path, text)}
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
    return frozenset(named) | {path.partition("/")[0] for path in tests if path.endswith(".feature")}


def is_tests_alone(path: str) -> bool:
    """Whether a file in this place can serve nothing but tests, even where the project has none there."""
    folders = path.split("/")[:-1]
    is_dotnet = any(_DOTNET_TEST_PROJECT.search(folder) for folder in folders)
    return is_dotnet or _is_jvm_test_folder(folders) or path.endswith(".snap") or "__snapshots__" in folders


def is_own_test(path: str, text: str) -> bool:
    """Whether a new file is called like a test and holds test cases, where its language's are known."""
    name = path.rpartition("/")[2]
    if name.rpartition(".")[2].lower() in _UNREAD_LANGUAGES:
        return _CERTAIN_TEST_NAME.search(name) is not None
    is_called_so = is_test_by_name(path) or _LIKELY_TEST_NAME.search(name)
    return bool(is_called_so) and is_test_by_content(path, text)


def is_test_by_name(path: str) -> bool:
    """Whether a runner takes a file of this name for a test, or it lies where projects keep tests."""
    *folders, name = path.split("/")
    if _ALWAYS_TEST_FOLDERS.intersection(folders) or any(
        _DOTNET_TEST_PROJECT.search(folder) for folder in folders
    ):
        return True
    if folders and (folders[0] in _TOP_TEST_FOLDERS or _is_jvm_test_folder(folders)):
        return True
    if _CERTAIN_TEST_NAME.search(name) or _ANGULAR_ENTRY.search(path):
        return True
    in_java_sources = "main" in folders and "src" in folders
    return not in_java_sources and _JAVA_TEST_NAME.search(name) is not None


def is_test_by_content(path: str, text: str) -> bool:
    """Whether a pristine file holds test cases."""
    suffix = path.rpartition(".")[2].lower()
    language = _LANGUAGES.get(suffix, suffix)
    pattern = _TEST_CONTENT.get(language)
    if pattern is None or not pattern.search(text):
        return False
    return language != "js" or _TEST_CONTENT["js_assertion"].search(text) is not None


def _users(paths: Collection[str], texts: Mapping[str, str]) -> dict[str, set[str]]:
    """The files that mention each of these by its name without suffixes: all words of it stand in them."""
    words_of = {path: set(_WORD.findall(path.rpartition("/")[2].partition(".")[0])) for path in paths}
    users_of: dict[str, set[str]] = {word: set() for words in words_of.values() for word in words}
    for user, text in texts.items() if users_of else ():
        for word in users_of.keys() & set(_WORD.findall(text)):
            users_of[word].add(user)
    return {
        path: set.intersection(*(users_of[word] for word in words)) - {path} if words else set()
        for path, words in words_of.items()
    }


def _is_jvm_test_folder(folders: list[str]) -> bool:
    """`src/test/java` and its relatives, in any module of the project."""
    return any(pair == ("src", "test") for pair in pairwise(folders)) and bool(
        _JVM_FOLDERS.intersection(folders)
    )
