"""A problem's twin: its own test files under their own names, rewritten so that tests fail.

Which of the expected tests a trial may rest on is decided by names: a test counts where every title that
its name could hold is one of a rewritten body. Where no source shows a name, runs of the problem's own
reference decide (`Base`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.integrity.languages import comment_sign, rewriter_of
from astra_async.integrity.rewriting import Manner, Settled
from astra_async.overlay.test_names import is_test_by_content
from astra_async.testing.reports.report_text import clean_name

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from astra_async.integrity.rewriting import Choice
    from astra_async.overlay import PathPolicy
    from astra_async.types import ExpectedTest, Project, TestReport

_MAX_BYTES = 400_000  # of a test file that is rewritten
_ALL, _HALF = 0.4, 0.7  # up to which of two draws between 0 and 1 all tests fail, or about half; else a few
_FEW = 0.25
_WORDS = (
    "all",
    "and",
    "asserts",
    "body",
    "ensure",
    "every",
    "expect",
    "finally",
    "not",
    "raises",
    "the",
    "with",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a problem's test files show to a reader: `texts` by path, and their tests' titles.

    `left_out` tells, by path and title or place, which tests have no name that a twin could be held to.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    runners: tuple[str, ...] = ()
    titles: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What the reference's (or the untouched project's) runs report: expected tests by name.

    `ordinary` passed in the run of the tests as they are, `reported` were told of there; `failed` failed
    in every twin, and `passed` passed in some twin, which no test of one may.
    """

    is_reference: bool
    ordinary: frozenset[str]
    reported: frozenset[str]
    failed: frozenset[str]
    passed: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One twin: the tests of `failing` have to fail; `is_whole` if all were rewritten."""

    project: Project
    failing: frozenset[str]
    is_whole: bool


def survey(policy: PathPolicy) -> Survey:
    """Read the test files for which there is a rewriter."""
    texts: dict[str, str] = {}
    runners: Counter[str] = Counter()
    titles: set[str] = set()
    left_out: dict[str, str] = {}
    unsure: set[str] = set()
    for path in sorted(policy.tests):
        text = _text(path, policy)
        rewrite = rewriter_of(path)
        if text is None or rewrite is None:
            continue
        rewritten = rewrite(path, text, Settled(Manner(at_once=True, assertion=False), 0))
        if rewritten.certain or rewritten.left_out:
            texts[path] = text
            runners[rewritten.runner] += 1
            titles |= {clean_name(each[-1]) for each in rewritten.certain}
            unsure |= {clean_name(each) for each in rewritten.left_out}
            left_out |= {f"{path}: {place}": why for place, why in rewritten.left_out.items()}
    return Survey(
        texts=texts,
        runners=tuple(name for name, _ in runners.most_common() if name),
        titles=frozenset(titles),
        unsure=frozenset(unsure),
        left_out=left_out,
    )


def named(known: Survey, expected: Iterable[ExpectedTest]) -> dict[str, frozenset[str]]:
    """Expected tests whose names show which bodies they are, with the titles that they hold."""
    found = {}
    for name in {clean_name(test.name) for test in expected}:
        held = frozenset(title for title in known.titles if _holds(name, title))
        if held and not any(_holds(name, title) for title in known.unsure):
            found[name] = held
    return found


def draw(project: Project, known: Survey, expected: Sequence[ExpectedTest], rng: random.Random) -> Trial:
    """A twin in which all tests fail, or about half of them, or a few.

    Where all fail, code that looks for a test which it honestly passes knows that it is tried.
    """
    names = named(known, expected)
    counts = Counter(clean_name(test.name) for test in expected)
    single = sorted(name for name in names if counts[name] == 1)
    kind = rng.random()
    if kind < _ALL or len(single) < 2:  # noqa: PLR2004 - some and some not
        return whole(project, known, expected, rng)
    most = len(single) // 2 if kind < _HALF else max(1, round(len(single) * _FEW * rng.random()))
    titles = {title for name in rng.sample(single, most) for title in names[name]}
    failing = frozenset(name for name in single if names[name] <= titles)
    project = _rewritten(project, known, rng, lambda each: clean_name(each[-1]) in titles)
    return Trial(project=project, failing=failing, is_whole=False)


def whole(project: Project, known: Survey, expected: Iterable[ExpectedTest], rng: random.Random) -> Trial:
    """A twin in which every test that can be rewritten fails, under whatever name."""
    expected = tuple(expected)
    return Trial(
        project=_rewritten(project, known, rng, None),
        failing=frozenset(clean_name(test.name) for test in expected),
        is_whole=True,
    )


def may_accuse(name: str, known: Mapping[str, frozenset[str]], base: Base) -> bool:
    """Whether a pass of this expected test in a twin can only be a lie.

    `known` are the tests whose names show their bodies (`named`).
    """
    if name in base.passed:
        return False
    if name in base.failed:
        return name in known or name in base.ordinary
    # Tests that the untouched project does not get to, with or without a twin.
    return not base.is_reference and name in known and name not in base.reported


def without_tests(project: Project, policy: PathPolicy, known: Survey) -> Project:
    """The project without the files that hold tests."""
    gone = {path for path in policy.tests if path in known.texts or _holds_tests(path, policy)}
    return replace(project, files=tuple(file for file in project.files if file.path not in gone))


def disguised(project: Project, known: Survey, rng: random.Random) -> Project:
    """The project with comments of random length and words at the end of its test files.

    For the scored run: neither the size nor a hash of a test file tells it from a twin.
    """
    return _with_texts(
        project, {path: f"{text}{_comments(path, text, rng)}" for path, text in known.texts.items()}
    )


def outcomes(report: TestReport, expected: Sequence[ExpectedTest]) -> dict[str, set[str]]:
    """Expected tests by name, with what a report says of each of their occurrences."""
    from astra_async.testing.counting import grade

    found: dict[str, set[str]] = {}
    for test in grade(report, expected).tests:
        found.setdefault(clean_name(test.name), set()).add(test.outcome)
    return found


def _rewritten(project: Project, known: Survey, rng: random.Random, only: Choice) -> Project:
    texts = {}
    for path, text in known.texts.items():
        rewrite = rewriter_of(path)
        if rewrite is not None:
            texts[path] = f"{rewrite(path, text, rng, only).text}{_comments(path, text, rng)}"
    return _with_texts(project, texts)


def _with_texts(project: Project, texts: Mapping[str, str]) -> Project:
    """The project with other texts in some of its files: they keep the dates that pristine files have."""
    return replace(
        project,
        files=tuple(
            replace(file, content=texts[file.path].encode()) if file.path in texts else file
            for file in project.files
        ),
    )


def _comments(path: str, text: str, rng: random.Random) -> str:
    sign = comment_sign(path)
    if sign is None or "__END__" in text:  # what follows it is data, in Ruby
        return ""
    lines = [" ".join(rng.choices(_WORDS, k=rng.randint(2, 9))) for _ in range(rng.randint(1, 6))]
    return "".join(
        f"{'' if text.endswith(chr(10)) or number else chr(10)}{sign} {line}\n"
        for number, line in enumerate(lines)
    )


def _holds(name: str, title: str) -> bool:
    """Whether the name of a reported test holds a title, as words of their own.

    minitest numbers its specs: `test_0001_adds prices`.
    """
    if title not in name:
        return False
    return re.search(rf"(?:(?<!\w)|(?<=test_\d{{4}}_)){re.escape(title)}(?!\w)", name) is not None


def _holds_tests(path: str, policy: PathPolicy) -> bool:
    content = policy.files[path].content
    return len(content) <= _MAX_BYTES and is_test_by_content(path, content.decode(errors="replace"))


def _text(path: str, policy: PathPolicy) -> str | None:
    file = policy.files[path]
    if file.link is not None or len(file.content) > _MAX_BYTES:
        return None
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        return None
