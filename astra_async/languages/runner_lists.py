"""How test runners list their tests: the options, the output, and the comparison with what was reported."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from astra_async.types import TestCase

_RSPEC_UNNAMED = "example at "  # RSpec takes the name from the matcher, when the example runs


@dataclass(frozen=True, slots=True)
class Listing:
    """How a runner lists its tests.

    `command` turns the words after the program's name into those of a listing. `read` gives the titles of
    each test in the listing's output, outermost first.
    """

    command: Callable[[str], str]
    read: Callable[[str], Iterable[tuple[str, ...]]]


def adding(options: str, words: str, without: str = r"(?!)") -> str:
    """The words of a call without some options, and with others for a list."""
    return f"{_removed(words, without)} {options}"


def _removed(words: str, options: str) -> str:
    return re.sub(rf"(?<!\S)(?:{options})(?!\S)", "", words)


def cargo_list(words: str) -> str:
    """Cargo's words for a list: `--list` belongs to the test programs, behind `--`."""
    own, _, of_tests = words.replace("--no-fail-fast", "").partition(" -- ")
    return f"{own} --no-fail-fast -- {of_tests} --list"


def vitest_list(words: str) -> str:
    """Vitest's words for a list: `list` in place of `run`, without reporters."""
    options = r"run|--run|--(?:reporter|outputFile)(?:[.\w]*=|\s)\S+|--coverage\S*"
    return f" list --json{_removed(words, options)}"


def pytest_ids(output: str) -> Iterator[tuple[str, ...]]:
    """Folder, file, class and name of each test in what `pytest --collect-only` prints."""
    for line in re.findall(r"^\S[^\n]*?\.py::[^\n]+$", output, re.MULTILINE):
        path, bracket, parameters = line.partition("[")
        *above, name = path.split("::")
        yield (*(each.removesuffix(".py") for each in above), name + bracket + parameters)


def matching_lines(output: str, pattern: str) -> Iterator[tuple[str, ...]]:
    """The groups of each line that matches."""
    for found in re.finditer(pattern, output, re.MULTILINE):
        yield tuple(found.groups())


def _json_in(output: str, begin: str) -> Any:
    """Return the JSON value that begins a line of the output with `begin`; None without one."""
    for found in re.finditer(rf"^{re.escape(begin)}", output, re.MULTILINE):
        try:
            return json.JSONDecoder().raw_decode(output, found.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def json_names(output: str, begin: str, within: str, name: str) -> Iterator[tuple[str, ...]]:
    """One field of each test in the JSON that begins a line; under `within` if it is an object."""
    found = _json_in(output, begin)
    tests = found.get(within) if isinstance(found, dict) else found
    for test in tests if isinstance(tests, list) else ():
        if not isinstance(test, dict) or not isinstance(test.get(name), str):
            continue
        if not str(test.get("description", "")).startswith(_RSPEC_UNNAMED):
            yield (test[name],)


def not_reported(listed: Iterable[tuple[str, ...]], cases: Iterable[TestCase]) -> list[str]:
    """Return the listed tests that no case stands for; each case stands for one test of its name.

    Punctuation is not compared: runners join the titles of suites and tests in different ways.
    """
    reported = Counter(form for case in cases for form in _forms_of(case))
    missing = list(dict.fromkeys(listed))
    for joined in ("".join, lambda titles: titles[-1]):  # with the titles above it first
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
    # Go's sub-tests stand for their test, PHPUnit's data sets for theirs.
    names = {case.name, case.classname + case.name, case.name.partition("/")[0]}
    method = case.name.partition(" with data set")[0]
    return {_plain(name) for name in (*names, method, case.classname + method)}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name)
