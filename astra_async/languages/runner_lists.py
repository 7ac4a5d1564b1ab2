"""Test listings: options and output of runners, and comparison with the reported tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from astra_async.types import TestCase

_RSPEC_UNNAMED = "example at "  # an unnamed example gets its name from the matcher when it runs


@dataclass(frozen=True, slots=True)
class Listing:
    """A runner's way to list its tests.

    `command` converts the words after the program's name to those of a listing. `read` yields the titles of
    each listed test, outermost first.
    """

    command: Callable[[str], str]
    read: Callable[[str], Iterable[tuple[str, ...]]]


def adding(options: str, words: str, without: str = r"(?!)") -> str:
    """Return the words of a command with some options removed and the listing options added."""
    return f"{_removed(words, without)} {options}"


def _removed(words: str, options: str) -> str:
    return re.sub(rf"(?<!\S)(?:{options})(?!\S)", "", words)


def cargo_list(words: str) -> str:
    """Return Cargo's words for a listing; `--list` goes to the test programs, after `--`."""
    own, _, of_tests = words.replace("--no-fail-fast", "").partition(" -- ")
    return f"{own} --no-fail-fast -- {of_tests} --list"


def vitest_list(words: str) -> str:
    """Return Vitest's words for a listing: `list` instead of `run`, without reporters."""
    options = r"run|--run|--(?:reporter|outputFile)(?:[.\w]*=|\s)\S+|--coverage\S*"
    return f" list --json{_removed(words, options)}"


def pytest_ids(output: str) -> Iterator[tuple[str, ...]]:
    """Yield folder, file, class and name of each test in the output of `pytest --collect-only`."""
    for line in re.findall(r"^\S[^\n]*?\.py::[^\n]+$", output, re.MULTILINE):
        path, bracket, parameters = line.partition("[")
        *above, name = path.split("::")
        yield (*(each.removesuffix(".py") for each in above), name + bracket + parameters)


def matching_lines(output: str, pattern: str) -> Iterator[tuple[str, ...]]:
    """Yield the groups of each matching line."""
    for found in re.finditer(pattern, output, re.MULTILINE):
        yield tuple(found.groups())


def _json_in(output: str, begin: str) -> Any:
    """Return the JSON value that starts on a line with `begin`, or None."""
    for found in re.finditer(rf"^{re.escape(begin)}", output, re.MULTILINE):
        try:
            return json.JSONDecoder().raw_decode(output, found.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def json_names(output: str, begin: str, within: str, name: str) -> Iterator[tuple[str, ...]]:
    """Yield a field of each test in the JSON at a line start; in an object, tests are under `within`."""
    found = _json_in(output, begin)
    tests = found.get(within) if isinstance(found, dict) else found
    for test in tests if isinstance(tests, list) else ():
        if not isinstance(test, dict) or not isinstance(test.get(name), str):
            continue
        if not str(test.get("description", "")).startswith(_RSPEC_UNNAMED):
            yield (test[name],)


def not_reported(listed: Iterable[tuple[str, ...]], cases: Iterable[TestCase]) -> list[str]:
    """Return the listed tests without a reported case; each case accounts for one test of its name.

    Punctuation is ignored, because runners join the titles of suites and tests in different ways.
    """
    reported = Counter(form for case in cases for form in _forms_of(case))
    missing = list(dict.fromkeys(listed))
    for joined in ("".join, lambda titles: titles[-1]):  # first with the titles of the suites
        left = []
        for titles in missing:
            forms = {_plain("".join(titles)), _plain(titles[-1])}
            if reported[_plain(joined(titles))] > 0:
                reported.subtract(forms)
            elif "" not in forms:
                left.append(titles)
        missing = left
    return [" ".join(titles) for titles in missing]


def _forms_of(case: TestCase) -> set[str]:
    # A Go sub-test accounts for its test, a PHPUnit data set for its method.
    names = {case.name, case.classname + case.name, case.name.partition("/")[0]}
    method = case.name.partition(" with data set")[0]
    return {_plain(name) for name in (*names, method, case.classname + method)}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name)
