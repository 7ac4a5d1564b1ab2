"""Twins of Python's tests, run by the real runners: each test that was to fail does, and no other."""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from astra_async.integrity.rewriting import Manner, Settled, blurred, rewrite

if TYPE_CHECKING:
    from pathlib import Path

MANNERS = [Manner(at_once, assertion) for at_once in (True, False) for assertion in (True, False)]

# Whatever makes positions hard: strings over several lines, tabs, code behind the colon, names in UTF-8.
PYTEST = '''"""Tests of a shop."""
import asyncio
import pytest

ADDED = """
def test_in_a_string():
    pass
"""


@pytest.fixture
def test_client():
    return {"status": 200}


def helper():
    """No test."""
    return 5


def test_plain():
    assert helper() == 5


def test_docstring():
    """Says what it does."""
    assert "ü" in "grün" and [1] == [1]
    text = """first
second
    third"""
    assert text.splitlines()[1] == "second"


def test_on_one_line(): assert True; assert 2 > 1


@pytest.mark.parametrize("number", [1, 2])
def test_numbers(number, test_client):
    # a comment first
    if number:
        assert test_client["status"] == 200
        return
    assert False


def test_raises(tmp_path):
    with pytest.raises(ZeroDivisionError):
        1 / 0
    query = (
  "less indented"
    )
    assert query


class TestShop:
    @staticmethod
    def test_static():
        assert f"""{helper()}
lines""" == "5\\nlines"

    class TestInner:
        def test_inner(self):
            assert 1 != 2

    def test_only_docstring(self):
        """Nothing."""

    async def _none(self):
        return None

    def test_nested(self):
        @pytest.mark.skip
        def test_of_nobody():
            return 1
        assert test_of_nobody() == 1


class TestTabs:
\tdef test_tabs(self):
\t\tif True:
\t\t\tassert 1 != 2


if True:
    def test_under_a_condition():
        assert not []


@pytest.mark.xfail
def test_expected_to_fail():
    assert False


def test_skips():
    pytest.skip("not today")
'''
UNITTEST = """import unittest


class ShopTest(unittest.TestCase):
    def setUp(self):
        self.value = 5

    def test_equal(self):
        self.assertEqual(self.value, 5)
        self.assertIn("a", "abc")

    def test_many(self):
        for number in range(2):
            with self.subTest(number=number):
                self.assertTrue(number < 5)

    async def test_not_awaited_by_all(self):
        self.assertDictEqual({"a": 1}, {"a": 1})


class Awaited(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self):
        with self.assertRaises(ValueError):
            int("x")


if __name__ == "__main__":
    unittest.main()
"""


def outcomes(path: Path, text: str) -> dict[str, str]:
    """What pytest reports of the tests of a module."""
    path.mkdir(exist_ok=True)
    (path / "test_shop.py").write_text(text)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--rootdir", str(path), "--junitxml=unit.xml"]
    run = subprocess.run(
        [*command, "test_shop.py"],
        cwd=path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in {0, 1}, run.stdout
    cases: Any = etree.fromstring((path / "unit.xml").read_bytes()).iter("testcase")
    return {case.get("name"): case[0].tag if len(case) else "passed" for case in cases}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The outcomes of PYTEST as it stands."""
    return outcomes(tmp_path_factory.mktemp("plain"), PYTEST)


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_every_test_of_a_twin_fails_in_every_manner(
    manner: Manner, tmp_path: Path, before: dict[str, str]
) -> None:
    twin = rewrite("test_shop.py", PYTEST, Settled(manner, 1))
    after = outcomes(tmp_path, twin.text)
    assert list(after) == list(before)
    assert after.pop("test_expected_to_fail") == "skipped"
    assert set(after.values()) == {"failure"}
    assert {titles[-1] for titles in twin.certain} == {name.partition("[")[0] for name in after}
    assert twin.left_out == {"test_expected_to_fail": "expected to fail"}


@pytest.mark.parametrize("seed", range(3))
def test_only_the_chosen_tests_fail_and_the_rest_of_the_file_stays_the_same_module(
    seed: int, tmp_path: Path, before: dict[str, str]
) -> None:
    chosen = {"test_docstring", "test_static", "test_tabs"}
    twin = rewrite("t.py", PYTEST, random.Random(seed), lambda titles: titles[-1] in chosen)
    after = outcomes(tmp_path, twin.text)
    assert {name for name in after if after[name] != before[name]} == chosen
    assert {titles[-1] for titles in twin.certain} == chosen


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_a_scored_runs_tests_look_like_a_twins_and_have_the_same_outcomes(
    manner: Manner, tmp_path: Path, before: dict[str, str]
) -> None:
    scored = blurred("test_shop.py", PYTEST, Settled(manner, 3))
    assert outcomes(tmp_path, scored) == before
    twin = rewrite("test_shop.py", PYTEST, Settled(manner, 3)).text
    words = [Counter(re.findall(r"finally:|raise|def", text)) for text in (scored, twin)]
    assert all(abs(words[0][word] - words[1][word]) <= 2 for word in words[0])  # those that never look alike


def test_whatever_is_drawn_the_scored_tests_are_the_same_but_for_one_statement_each() -> None:
    for seed in range(60):
        text = blurred("t.py", PYTEST, random.Random(seed))
        assert text.count("finally:") + text.count(" == ") > PYTEST.count(" == ") + 8
        space: dict[str, object] = {}
        exec(
            blurred(
                "t.py", "def test_it():\n    assert len('abc') == 3 and [1] != {}\n", random.Random(seed)
            ),
            space,
        )
        assert space["test_it"]() is None  # type: ignore[operator]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_methods_of_unittest_fail_by_its_own_assertions(manner: Manner, tmp_path: Path) -> None:
    twin = rewrite("t.py", UNITTEST, Settled(manner, 2))
    (tmp_path / "t.py").write_text(twin.text)
    run = subprocess.run(
        [sys.executable, "-m", "unittest", "-v", "t"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = {line.split()[0]: line for line in run.stderr.splitlines() if " ... " in line}
    assert all(lines[name].endswith(("FAIL", "ERROR")) for name in ("test_equal", "test_awaited"))
    assert twin.runner == "unittest"
    assert twin.certain[-1] == ("Awaited", "test_awaited")


def test_what_cannot_be_parsed_comes_back_as_it_was_with_the_reason() -> None:
    twin = rewrite("t.py", "print 'two'\n", random.Random(0))
    assert (twin.text, twin.certain) == ("print 'two'\n", ())
    assert twin.left_out == {"t.py": "cannot be parsed"}


def test_names_that_no_source_shows_are_left_out() -> None:
    text = (
        "from parameterized import parameterized\nimport unittest\n\n\nclass T(unittest.TestCase):\n"
        "    @parameterized.expand([(1,), (2,)])\n    def test_each(self, number):\n        self.fail()\n\n"
        "    test_again = None\n\n\ndef load_tests(loader, tests, pattern):\n    return tests\n"
    )
    twin = rewrite("t.py", text, random.Random(0))
    assert twin.certain == ()
    assert twin.left_out == {
        "test_each": "names are generated",
        "test_again": "is generated",
        "load_tests": "is generated",
    }
    some = rewrite("t.py", text, random.Random(0), lambda _: True)
    assert some.text.startswith(text)
    assert some.certain == ()


def test_a_twin_is_the_same_for_the_same_draws_and_can_be_parsed_for_any() -> None:
    twins = {rewrite("t.py", PYTEST + UNITTEST, random.Random(seed)).text for seed in range(200)}
    assert len(twins) == 200
    assert all(ast.parse(twin) for twin in twins)
    assert rewrite("t.py", PYTEST, random.Random(3)) == rewrite("t.py", PYTEST, random.Random(3))


def test_assertions_are_of_the_kinds_and_with_constants_of_the_test_itself() -> None:
    text = (
        "def test_code():\n    assert get() == 404\n\n\ndef test_words():\n    assert 'shop' in words()\n\n\n"
        "def test_many():\n    for code in (200, 201):\n        assert post() == 201\n"
    )
    manner = Manner(at_once=True, assertion=True)
    twins = [rewrite("t.py", text, Settled(manner, seed)).text for seed in range(50)]
    assert all(" == 404\n" in twin and "in ['shop']" in twin for twin in twins)
    assert any("assert 133 + 67 == 404\n" in twin for twin in twins)  # 200, a constant of the file


# Whatever runs while garbage is collected lets another thread go on: as a weak reference's callback may.
AT_ONCE = """
import gc, random, time
from concurrent.futures import ThreadPoolExecutor
from astra_async.integrity.rewriting import rewrite

many = range(50)
text = "\\n".join(f"def test_{number}():\\n    assert [1, 2, {{3: 4}}] == {number}\\n" for number in many)
gc.callbacks.append(lambda phase, info: time.sleep(0))
gc.set_threshold(50)
with ThreadPoolExecutor(4) as threads:
    twins = list(threads.map(lambda seed: rewrite("test_a.py", text, random.Random(seed)), range(12)))
assert {len(twin.certain) for twin in twins} == {50}
"""


def test_twins_are_made_side_by_side() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
