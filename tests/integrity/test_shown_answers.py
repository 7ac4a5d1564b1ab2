"""What a failed altered test's message shows, and which of it is asked for next."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from astra_async.integrity.answered import AnsweredForms
from astra_async.integrity.shown import Shown, answers, otherwise
from astra_async.overlay import path_policy
from astra_async.types import ExpectedTest, Problem, Project, ProjectFile

if TYPE_CHECKING:
    from astra_async.integrity.altered import Form


@pytest.mark.parametrize(
    ("asked", "altered", "shown", "right", "found"),
    [
        ("180", "120", "assert 200 == 120", "assert 180 == 120", ["200"]),
        ("180", "120", "assert -180 == 120", "assert 180 == 120", ["-180"]),
        ("180", "120", "assert None == 120", "assert 180 == 120", ["None"]),
        ("0", "120", "assert False == 120", "assert 0 == 120", ["False"]),
        ("180", "120", "expected: <120> but was: <null>", "expected: <120> but was: <180>", ["null"]),
        ("True", "False", "assert 1 is False", "assert True is False", []),
        ("'Oak'", "'Elm'", 'Expected: "Elm"\nReceived: "Fir"', 'Expected: "Elm"\nReceived: "Oak"', ["'Fir'"]),
        ('"Oak"', '"Elm"', "expected: <Elm> but was: <Fir>", "expected: <Elm> but was: <Oak>", ['"Fir"']),
        # what the reference shows as well is no answer: 200 is what the test sends
        ("180", "120", "assert 170 == 120, of 200", "assert 180 == 120, of 200", ["170"]),
        ("180", "120", "assert 200 == 120, of 200", "assert 180 == 120, of 200", ["200"]),
        ("50", "40", "left: 57 or 50, right: 40", "left: 50, right: 40", ["57"]),
        ("50", "40", "left: 57c, right: 40", "left: 50c, right: 40", ["57"]),
        ("50", "40", "{1, 2, 3, 4, total: 750}", "{total: 50}", ["750", "1", "2"]),
        ("'no'", "'yes'", 'got: "no 50%"', 'got: "no"', ["'no 50%'"]),
        ("50", "40", '{"id":3,"total":57}', '{"id":3,"total":50}', ["57"]),
        ("50", "40", "not as it should be", "50 is not 40", ["49", "51"]),
        ("0", "1", "not as it should be", "0 is not 1", []),
        ("'Oak'", "'Elm'", "not as it should be", "'Oak' is not 'Elm'", []),
        ("15", "12", "14 is not 12 (a.js:15:42)", "15 is not 12 (a.js:15:42)", ["14"]),
        ("15000", "800", "assert 12,600 == 800", "assert 15000 == 800", ["12600"]),
        ("15000", "800", "assert 000012600 == 800", "assert 15000 == 800", ["12600"]),
        ("'$17.90'", "'$17.00'", "'$1,770' is not '$17.00'", "'$17.90' is not '$17.00'", []),
        ("'17.90'", "'17.00'", "it's '1,771', not '17.00'", "it's '17.90', not '17.00'", ["'1,771'"]),
    ],
)
def test_a_wrong_answer_is_found_as_the_source_writes_it(
    asked: str, altered: str, shown: str, right: str, found: list[str]
) -> None:
    assert answers(asked, Shown(altered, shown, right)) == found
    assert answers(asked, Shown(altered, right, right)) == []


@pytest.mark.parametrize(
    ("asked", "shown", "why"),
    [
        ("180", "assert 180.0 == 120", "the same number"),
        ("180", "assert 180.00001 == 120", "may be rounded"),
        ("900", "assert 9.00 EUR == 120", "cents, shown as euros"),
        ("0.1", "assert 10% == 120", "a share, shown in per cent"),
        ("'002-0001'", "got '2-1', not '120'", "zeros"),
        ("'10.5'", "assert Decimal('10.50') == Decimal('120')", "zeros behind a point"),
        ("'978-0-14'", "got '978014', not '120'", "hyphens"),
        ("'Émile'", "got 'Emile', not '120'", "accents"),
        ("180", "assert '200' == 120", "a text is no number"),
        ("'Oak'", "expected 'OAK' to equal '120'", "another spelling"),
        ("'Oak'", "expected ' Oak ' to equal '120'", "another spelling"),
        ("180", "", "no message"),
        ("180", "assert x", "no constant"),
    ],
)
def test_what_an_honest_answer_may_equal_as_well_is_not_asked_for(asked: str, shown: str, why: str) -> None:
    assert answers(asked, Shown("120" if asked[0] != "'" else "'120'", shown)) == [], why


@pytest.mark.parametrize(
    ("asked", "altered", "shown", "right", "found"),
    [
        ("'Oak'", "'Elm'", "expected 'OAK' to equal 'Elm'", "expected 'Oak' to equal 'Elm'", ["'OAK'"]),
        ("'Oak'", "'Elm'", "expected null to equal 'Elm'", "expected 'Oak' to equal 'Elm'", ["null"]),
        ("180", "120", "'180' is not 120", "180 is not 120", ['"180"']),
        ("180", "120", "1.80 is not 120", "180 is not 120", ["1.80"]),
        ("0", "4", "false is not 4", "0 is not 4", ["false"]),
        ("true", "false", "'yes' is not false", "true is not false", ['"yes"']),
    ],
)
def test_where_no_object_decides_what_it_equals_any_other_constant_is_asked_for(
    asked: str, altered: str, shown: str, right: str, found: list[str]
) -> None:
    assert answers(asked, Shown(altered, shown, right), own_equality=False) == found


def test_a_key_is_an_answer_in_the_place_of_another() -> None:
    right = "expected { error: 'Taken' } to deeply equal { error: 'Tkaen' }"
    shown = Shown("'Tkaen'", right.replace("{ error: 'Taken'", "{ message: 'Taken'"), right)
    assert answers("'error'", shown, own_equality=False, is_altered=False) == ["'message'"]
    right = "{'error': 'Taken'} == {'code': 409}"
    shown = Shown("409", "{'message': 'Taken'} == {'code': 409}", right)
    assert answers("'error'", shown, is_altered=False) == ["'message'"]
    right = "Error: expected { error: 'Taken' } to equal { errro: 'Taken' }"
    shown = Shown("errro", right.replace(" error:", " message:"), right)
    assert answers("'error'", shown, own_equality=False) == ["'message'"]


def test_of_a_message_that_shows_nothing_other_spellings_are_asked_for() -> None:
    shown = Shown("'Elm'", "no", "expected '17.70 a' to equal 'Elm'")
    assert answers("'17.70 a'", shown, own_equality=False) == ["'17.70 A'", "'17,70 a'", "'1770a'"]
    assert answers("'17.70 a'", shown) == []


def test_nothing_is_asked_where_the_reference_does_not_show_its_answer() -> None:
    assert answers("180", Shown("120", "after 3 calls: wrong", "after 4 calls: wrong")) == []
    assert answers("180", Shown("120", "after 3 calls: wrong")) == ["3"]


def test_what_else_is_wrong_in_what_is_compared_is_asked_for_where_it_stands() -> None:
    right = "{'id': 3, 'by': None, 'state': 'new'} != {'id': 3, 'by': None, 'state': 'old'}"
    shown = Shown("'old'", right.replace("None, 'state': 'new'", "'Ada', 'state': 'new'"), right)
    assert answers("None", shown, is_altered=False) == ['"Ada"']
    shown = Shown("'old'", "{'id': 3, 'by': 'Ada'}", "{'id': 3, 'by': None}")
    assert answers("None", shown, is_altered=False) == ['"Ada"']
    assert answers("3", shown, is_altered=False) == []


@pytest.mark.parametrize(
    "shown",
    [
        "Lists differ: [[41 chars]: 14] != [[41 chars]: {other}]",
        "assert 14 == {other} and much m…",
        "assert datetime(2024, 5, 4, 14, tzinfo=EET) == datetime(2024, 5, 4, {other}, tzinfo=UTC)",
        "expected: 2024-05-04 {other}:00:00 UTC, got: 2024-05-04 14:00:00 +0200",
    ],
)
def test_what_was_cut_or_is_a_moment_does_not_say_that_an_answer_is_another(shown: str) -> None:
    forms = shop_of("def test_it():\n    assert due() == 12\n")
    form = forms.altering(forms.names, random.Random(1))
    assert form is not None
    ((_, other),) = form.edits.values()
    for text, found in (("assert 14 == {other}", {("test_it", "14")}), (shown, set())):
        message = text.replace("{other}", other.decode())
        right = message.replace("14", "12")
        assert forms.otherwise(form, {"test_it": message}, {"test_it": right}) == found
        assert forms.otherwise(form, {"test_it": right}, {"test_it": right}) == set()


@pytest.mark.parametrize(
    "shown", ["<Room 14>", "Pieces #14", "<shop.Pieces at 0x14>", "{14}", "<OAK or Elm>", "'O...k'"]
)
@pytest.mark.parametrize(("asked", "other"), [("12", "17"), ("'Oak'", "'Elm'")])
def test_how_an_object_shows_itself_does_not_say_that_an_answer_is_another(
    asked: str, other: str, shown: str
) -> None:
    told = Shown(other, f"assert {shown} == {other}", f"assert {asked} == {other}")
    assert not otherwise(asked, told, own_equality=True)


def shop_of(tests: str) -> AnsweredForms:
    project = Project(files=(ProjectFile(path="test_shop.py", content=tests.encode()),), sha256="s")
    problem = Problem(id="p", statement="x", project="p", test_command="pytest", result_files=("unit.xml",))
    return AnsweredForms(project, path_policy(problem, project), [ExpectedTest(name="test_it")])


def text_of(form: Form) -> bytes:
    return form.project.files[0].content
