"""What test runners take for tests, by name, place or content; and what serves the tests.

Case counts where it tells a test from a word (`LoginTest` from `latest`). `policy` combines these rules with
the project at hand; the names are the languages'.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES, language_of
from astra_async.languages.project_files import above

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
