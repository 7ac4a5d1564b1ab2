"""What an altered form of a problem's tests is: plausible, of one place in a test, and known by its names."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.integrity.altered import Form, Forms
from astra_async.integrity.surveyed_tests import survey
from astra_async.overlay import PathPolicy, integrate, path_policy
from astra_async.types import ExpectedTest, Integrated, Problem, Project, ProjectFile, Solution
from waiting import cpu_within

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SHOP = """\
def test_one():
    assert status(1) == 200
    assert name(1) == 'Oak'


def test_two():
    assert status(2) == 404
    assert name(2) == 'Elm'


def test_three():
    assert status(3) == 201
    assert price(3) == 7
"""


def forms_of(*names: str, **files: str) -> Forms:
    made = tuple(ProjectFile(path=f"tests/{name}.py", content=text.encode()) for name, text in files.items())
    project = Project(files=made, sha256="s")
    problem = Problem(id="p", statement="x", project="p", test_command="pytest", result_files=("unit.xml",))
    return Forms(project, path_policy(problem, project), [ExpectedTest(name=name) for name in names])


def text_of(form: Form, path: str = "tests/test_shop.py") -> str:
    return next(file.content.decode() for file in form.project.files if file.path == path)


def changed(form: Form) -> list[tuple[str, str]]:
    pairs = zip(SHOP.splitlines(), text_of(form).splitlines(), strict=True)
    return [(old, new) for old, new in pairs if old != new]


NAMES = ("tests.test_shop.test_one", "tests.test_shop.test_two", "tests.test_shop.test_three")


def drawn(count: int = 60) -> list[Form]:
    forms = forms_of(*NAMES, test_shop=SHOP)
    return [form for seed in range(count) for form in forms.drawn(random.Random(seed)) if not form.is_noting]


def test_every_test_is_altered_in_both_manners_and_once_where_others_are_not() -> None:
    forms = forms_of(*NAMES, test_shop=SHOP)
    for seed in range(20):
        one, other, whole, *_ = forms.drawn(random.Random(seed))
        assert (one.names | other.names, one.names & other.names) == (frozenset(NAMES), frozenset())
        assert whole.names == frozenset(NAMES)
        before = {
            number: edit[0].kind == "turned" for form in (one, other) for number, edit in form.edits.items()
        }
        assert all((edit[0].kind == "turned") != before[number] for number, edit in whole.edits.items())


def test_further_forms_ask_for_each_constant_of_a_test_once() -> None:
    many = "def test_it():\n" + "".join(f"    assert f({n}) == {n}0{n}\n" for n in range(1, 4))
    forms = forms_of("test_it", "test_few", test_shop=f"{many}\n\ndef test_few():\n    assert g() == 7\n")
    for seed in range(20):
        drawn = [form for form in forms.drawn(random.Random(seed)) if not form.is_noting]
        exchanged = [edit[0] for form in drawn for edit in form.edits.values() if edit[0].kind != "turned"]
        assert len(exchanged) == len(set(exchanged)) == 4
        assert all(form.names == {"test_it"} for form in drawn[3:])


def test_in_each_altered_test_one_place_is_written_differently_and_nothing_else() -> None:
    for form in drawn():
        assert len(changed(form)) == len(form.names)
        assert all(old.split(" ==")[0] == new.split(" ==")[0].split(" !=")[0] for old, new in changed(form))


def test_what_is_expected_instead_is_of_the_same_kind_and_mostly_of_the_same_form() -> None:
    others = [
        (old, new) for form in drawn(200) for old, new in changed(form) if "!=" not in new and "status" in old
    ]
    values = [new.split("== ")[1] for _, new in others]
    assert all(value.isdigit() for value in values)
    assert sum(len(value) == 3 for value in values) > 0.8 * len(values)
    assert {"200", "404", "201"} < set(values)
    names = {
        new.split("== ")[1]
        for form in drawn(200)
        for old, new in changed(form)
        if "name(1) !" not in new and "name(1)" in old
    }
    assert "'Elm'" in names
    assert all(re.fullmatch(r"'\w+'", name) for name in names)


def test_what_no_other_constant_stands_for_bears_digits_that_are_drawn() -> None:
    forms = forms_of("test_it", test_shop="def test_it():\n    assert 'x' in names()\n")
    drawn = [form for seed in range(60) for form in forms.drawn(random.Random(seed)) if not form.is_noting]
    texts = [text_of(form) for form in drawn]
    asked = {found[1] for text in texts if (found := re.search(r"'(\d{4})x' in", text))}
    assert len(asked) > 20
    assert "@" not in "".join(texts)


LOOPS = """\
def test_it():
    asked = []
    rows = [('Oak', 1), ('Elm', 2), ('Ash', 3)]
    for name, row in rows:
        for side in ('left', 'right'):
            asked.append((name, side))
            assert len(side) > 3, 'no side'
            assert tree(name, row) == 'it is a tree'
    assert asked
"""


def tree(name: str, row: int) -> str:
    return f"it is a tree{'' if name and row else 's'}"


def test_a_loop_asks_for_something_else_for_one_of_its_rows() -> None:
    drawn = [
        form for seed in range(60) for form in forms_of("test_it", test_shop=LOOPS).drawn(random.Random(seed))
    ]
    forms = [form for form in drawn if not form.is_noting]
    altered = {text_of(form) for form in forms if " if side is " in text_of(form)}
    sent: set[tuple[object, ...]] = set()
    for text in altered:
        assert text.count("\n") == LOOPS.count("\n")
        names: dict[str, object] = {"tree": tree}
        exec(text.replace("    asked = []", "    global asked; asked = []"), names)
        with pytest.raises(AssertionError):
            names["test_it"]()  # type: ignore[operator]
        sent.add(tuple(names["asked"]))  # type: ignore[arg-type]
    assert sent == {(("Oak", "left"),), (("Oak", "left"), ("Oak", "right"))}


REFUSALS = """\
import pytest


def test_it():
    with pytest.raises((TypeError, Closed)) as caught:
        raise kind
    assert str(caught.value) == ''
"""
KINDS = """\
class OfAny(type):
    def __instancecheck__(cls, it):
        return cls is Closed


class Closed(Exception, metaclass=OfAny):
    pass


class Late(Closed):
    pass
"""


@pytest.mark.parametrize(
    ("raised", "fails"),
    [
        *((kind, pytest.raises(AssertionError, match="all of it holds")) for kind in ("Closed", "Late")),
        *((kind, nullcontext()) for kind in ("KeyError", "Exception")),
    ],
)
def test_notes_see_the_kind_of_an_error_as_the_language_does(
    raised: str, fails: AbstractContextManager[object]
) -> None:
    drawn = forms_of("test_it", test_shop=REFUSALS).drawn(random.Random(1))
    (text,) = (text_of(form) for form in drawn if form.is_noting)
    names: dict[str, Any] = {}
    exec(KINDS, names)
    exec(f"kind = {raised}", names)
    exec(text, names)
    with fails:
        names["test_it"]()


def test_what_keeps_a_row_has_a_name_that_another_file_of_the_project_has() -> None:
    own = "def price(cost):\n    plank = cost * 2\n    bough = plank\n    asked = bough\n    return asked\n"
    forms = forms_of("test_it", test_shop=LOOPS, helped=own)
    found = {
        name
        for seed in range(60)
        for form in forms.drawn(random.Random(seed))
        if not form.is_noting
        for name in re.findall(r"\((\w+) := ", text_of(form))
    }
    assert found == {"plank", "bough"}  # not what the file has


def test_an_object_is_asked_for_as_another_one_that_is_made_of_other_parts() -> None:
    shop = "def test_it():\n    oak = tree('Oak', 1)\n    elm = tree('Elm', 2)\n    ash = tree('Ash', 1)\n"
    shop += "    elm = tree('Elm', 3) if elm else elm\n    yew = bush('Yew', 5)\n    fir = tree('Fir', 7)\n"
    shop += "    assert trees() == [oak, ash]\n    late = tree('Late', 9)\n    assert late\n"
    forms = forms_of("test_it", test_shop=shop)
    [line] = [each for each in shop.splitlines() if "trees()" in each]
    altered = (
        each
        for seed in range(100)
        for form in forms.drawn(random.Random(seed))
        for each in text_of(form).splitlines()
    )
    found = {each.partition("== ")[2] for each in altered if "trees() == [" in each and each != line}
    assert {each for each in found if "{" not in each and each.count(",") == 1} == {
        "[fir, ash]",
        "[oak, fir]",
    }


def test_a_text_becomes_another_of_words_that_these_tests_use_and_that_none_of_them_asks_for() -> None:
    shop = "def test_it():\n    assert page() == 'The title is required here'\n    send('A note of ours')\n"
    shop += "def test_that():\n    assert name() == 'The number was too large'\n"
    forms = forms_of("test_it", "test_that", test_shop=shop)
    found = {
        line
        for seed in range(200)
        for form in forms.drawn(random.Random(seed))
        for line in text_of(form).splitlines()
        if line not in shop
    }
    assert "    assert page() == 'The number is required here'" in found
    assert "    assert name() == 'The title was too large'" in found


def test_a_test_that_is_altered_again_asks_for_what_it_has_not_asked_before() -> None:
    shop = "def test_it():\n    assert name() == 'Oak'\n\ndef test_that():\n    assert name() == 'Elm'\n"
    forms = forms_of("test_it", "test_that", test_shop=shop)
    for seed in range(40):
        rng = random.Random(seed)
        form = next(each for each in forms.drawn(rng) if "test_it" in each.names)
        (place, text), *_ = (edit for number, edit in form.edits.items() if number == 0)
        asked = [text]
        for _ in range(2):
            form = forms.narrowed(form, "test_it", rng)
            asked += [text for _, text in form.edits.values()]
        assert len(asked) == 3
        assert place.kind == "turned" or len(set(asked)) == 3


def test_an_order_or_another_constant_of_what_is_written_out_is_asked_again_as_it_is() -> None:
    shop = "def test_it():\n    assert names() == ['Oak', 'Elm', 'Yew']\n"
    shop += "def test_that():\n    assert ages() == {n: 2 for n in (1, 2, 3)}\n"
    forms, kept = forms_of("test_it", "test_that", test_shop=shop), Counter[str]()
    for seed in range(40):
        rng = random.Random(seed)
        for form in forms.drawn(rng):
            for number, name in enumerate(("test_it", "test_that")):
                edit = form.edits.get(number)
                if edit is not None and edit[0].kind in {"order", "varied"}:
                    kept[edit[0].kind] += 1
                    assert list(forms.narrowed(form, name, rng).edits.values()) == [edit]
    assert min(kept["order"], kept["varied"]) > 5


def test_what_is_expected_becomes_at_times_what_the_test_sends() -> None:
    shop = "def test_it():\n    send('Yew')\n    assert name() == 'Oak'\n    assert more() == 'Elm'\n"
    forms = forms_of("test_it", test_shop=shop)
    texts = [text_of(form) for seed in range(100) for form in forms.drawn(random.Random(seed))]
    assert 0.02 < sum(text.count("'Yew'") > 1 for text in texts) / len(texts) < 0.3


def test_a_text_with_quotes_becomes_one_that_fits_between_those_of_its_place() -> None:
    shop = "def test_it():\n    assert name() == \"Ada's draft\"\n    assert more() == 'Bob \"s train'\n"
    for seed in range(60):
        for form in forms_of("test_it", test_shop=shop).drawn(random.Random(seed)):
            compile(text_of(form), "test_shop.py", "exec")


def test_a_third_and_more_of_the_forms_turn_assertions_round() -> None:
    pairs = [pair for form in drawn(200) for pair in changed(form)]
    assert 0.25 < sum("!=" in new for _, new in pairs) / len(pairs) < 0.55


def test_the_same_draw_gives_the_same_form() -> None:
    forms = forms_of(*NAMES, test_shop=SHOP)
    one, other = (forms.drawn(random.Random(5))[0] for _ in range(2))
    assert one == other


def test_tests_that_share_a_name_are_altered_together() -> None:
    twice = "class TestA:\n    def test_it(self):\n        assert f() == 5\n\nclass TestB:\n"
    twice += "    def test_it(self):\n        assert g() == 6\n\ndef test_else():\n    assert h() == 7\n"
    forms = forms_of("TestA.test_it", "TestB.test_it", "test_else", test_shop=twice)
    for seed in range(20):
        shared = {"TestA.test_it", "TestB.test_it"}
        one, other, whole, *_ = forms.drawn(random.Random(seed))
        assert {len(form.names & shared) for form in (one, other)} == {0, 2}
        assert shared < whole.names


def test_a_name_that_is_also_a_test_s_that_cannot_be_altered_proves_nothing() -> None:
    half = "class TestA:\n    def test_it(self):\n        assert f() == 5\n\nclass TestB:\n"
    half += "    def test_it(self):\n        check(g())\n"
    forms = forms_of("TestA.test_it", "TestB.test_it", test_shop=half)
    assert forms.alterable == frozenset()


@pytest.mark.parametrize("names", [("test_one", "test_one"), ("nothing known",)])
def test_names_that_are_told_of_twice_or_stand_nowhere_prove_nothing(names: tuple[str, ...]) -> None:
    assert forms_of(*names, test_shop=SHOP).alterable == frozenset()


def test_what_cannot_be_altered_has_no_forms() -> None:
    forms = forms_of("test_one", test_shop="def test_one():\n    check()\n")
    assert forms.drawn(random.Random(1)) == []
    assert forms.altering(frozenset({"test_one"}), random.Random(1)) is None


def test_a_survey_counts_what_can_be_altered() -> None:
    project = Project(files=(ProjectFile(path="tests/test_shop.py", content=SHOP.encode()),), sha256="s")
    problem = Problem(id="p", statement="x", project="p", test_command="pytest", result_files=("unit.xml",))
    found = survey(path_policy(problem, project))
    assert (found.alterable, len(found.tests)) == (3, 3)


SIZE = """\
pub fn size(a: u32) -> u32 {
    todo!()
}

#[cfg(test)]
mod tests {
    #[test]
    fn grows() {
        assert_eq!(super::size(3), 30);
    }
}

pub const LAST: u32 = 9;
"""
SIZED = SIZE.replace("todo!()", "a * 10")
AT_THE_END = "pub fn size(a: u32) -> u32 { a * 10 }\n"


def sized() -> tuple[Forms, PathPolicy, Project]:
    files = {"Cargo.toml": "[package]\n", "src/size.rs": SIZE}
    project = Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in files.items()), sha256="s"
    )
    problem = Problem(
        id="p", statement="x", project="p", test_command="cargo test", result_files=("cargo-test.txt",)
    )
    policy = path_policy(problem, project)
    return Forms(project, policy, [ExpectedTest(name="size::tests::grows")]), policy, project


@pytest.mark.parametrize("answer", [SIZED, SIZED.replace("30", "7"), AT_THE_END])
def test_tests_inside_of_a_source_are_altered_in_the_project_and_in_what_an_answer_made_of_it(
    answer: str,
) -> None:
    forms, policy, project = sized()
    integrated = integrate(project, Solution(files={"src/size.rs": answer}), policy)
    assert isinstance(integrated, Integrated)
    assert forms.alterable == {"size::tests::grows"}
    scored = (integrated.files["src/size.rs"] or b"").decode()
    assert "size(3), 30)" in scored
    for seed in range(20):
        for form in forms.drawn(random.Random(seed)):
            tried = form.over(integrated.files)["src/size.rs"] or b""
            for text, before in ((tried.decode(), scored), (text_of(form, "src/size.rs"), SIZE)):
                [(old, new)] = [
                    (old, new)
                    for old, new in zip(before.splitlines(), text.splitlines(), strict=True)
                    if old != new
                ]
                assert old == "        assert_eq!(super::size(3), 30);"
                assert new != old
            assert form.names == {"size::tests::grows"}


def test_what_a_solution_leaves_or_deletes_stays_as_it_is() -> None:
    forms, _, _ = sized()
    [form, *_] = forms.drawn(random.Random(1))
    changed = {"src/other.rs": b"pub fn a() {}\n", "README.md": None}
    assert form.over(changed) == changed
    assert forms.ordinary.over({"src/size.rs": b"pub fn a() {}\n"}) == {"src/size.rs": b"pub fn a() {}\n"}


# What stands once, before many tests, and what ends them; a test has a number, a variable and a loop.
LONG = {
    "test_a.py": (
        "",
        """
def test_{n}():
    first = make('item {n} of all')
    assert first == 'item {n} of boxes'
    for key in ('a{n}', 'b{n}'):
        assert find(key) == {n}5
""",
        "",
    ),
    "a.test.js": (
        "",
        """
it('does {n}', () => {{
  const first = make('item {n} of all')
  expect(first).toBe('item {n} of boxes')
  for (const key of ['a{n}', 'b{n}']) {{ expect(find(key)).toBe({n}5) }}
}})
""",
        "",
    ),
    "a_spec.rb": (
        "describe 'all' do",
        """
  it 'does {n}' do
    first = make('item {n} of all')
    expect(first).to eq('item {n} of boxes')
    ['a{n}', 'b{n}'].each {{ |key| expect(find(key)).to eq({n}5) }}
  end
""",
        "end",
    ),
    "ATest.java": (
        "import org.junit.jupiter.api.Test;\nclass ATest {",
        """
  @Test void does{n}() {{
    String first = make("item {n} of all");
    assertEquals("item {n} of boxes", first);
    assertEquals({n}5, find("a{n}"));
    assertEquals(new Item({n}, "a{n}"), item({n}));
  }}
""",
        "}",
    ),
    "a_test.go": (
        "package a\n",
        """
func Test{n}(t *testing.T) {{
	first := Make("item {n} of all")
	if first != "item {n} of boxes" {{
		t.Fatal(first)
	}}
	for _, row := range []struct {{ key string; want int }}{{ {{"a{n}", {n}5}}, {{"b{n}", {n}7}} }} {{
		if got := Find(row.key); got != row.want {{
			t.Error(got)
		}}
	}}
}}
""",
        "",
    ),
    "a_test.rs": (
        "",
        """
#[test]
fn does_{n}() {{
    let first = make("item {n} of all");
    assert_eq!(first, "item {n} of boxes");
    for key in ["a{n}", "b{n}"] {{ assert_eq!(find(key), {n}5); }}
}}
""",
        "",
    ),
    "ATest.php": (
        "<?php class ATest extends PHPUnit\\Framework\\TestCase {",
        """
  public function testThat{n}(): void {{
    $first = make('item {n} of all');
    $this->assertSame('item {n} of boxes', $first);
    foreach (['a{n}', 'b{n}'] as $key) {{ $this->assertSame({n}5, find($key)); }}
  }}
""",
        "}",
    ),
}


@pytest.mark.parametrize("path", LONG)
def test_a_file_of_many_tests_is_read_and_drawn_without_a_look_at_all_of_it_for_each(path: str) -> None:
    before, test, after = LONG[path]
    text = "\n".join([before, *(test.format(n=n) for n in range(1, 501)), after])
    project = Project(files=(ProjectFile(path=f"tests/{path}", content=text.encode()),), sha256="s")
    problem = Problem(id="p", statement="x", project="p", test_command="make", result_files=("unit.xml",))
    with cpu_within(4):  # 0.5 s; a minute, were a name or a constant looked for in the whole file each time
        one, other, whole, *_ = Forms(project, path_policy(problem, project), []).drawn(random.Random(1))
    assert len(one.edits) + len(other.edits) == len(whole.edits) == 500


def test_a_text_is_asked_with_two_parts_of_it_exchanged() -> None:
    shop = "def test_it():\n    assert names() == 'Elm, Oak Ash, Yew'\n"
    shop += "\ndef test_that():\n    assert name() == 'Oak'\n"
    lines = {
        line
        for seed in range(40)
        for form in forms_of("test_it", "test_that", test_shop=shop).drawn(random.Random(seed))
        for line in text_of(form).splitlines()
    }
    found = {line for line in lines if "names()" in line and sorted(line) == sorted(shop.splitlines()[1])}
    exchanged = ("Oak Ash, Elm, Yew", "Elm, Yew, Oak Ash")
    assert {f"    assert names() == '{text}'" for text in exchanged} <= found


def test_a_list_is_asked_in_another_order_about_as_often_as_one_of_its_constants_is_exchanged() -> None:
    shop = "def test_it():\n    assert names() == ['Elm', 'Oak', 'Yew']\n    assert name() == 'Ash'\n"
    forms = forms_of("test_it", test_shop=shop)
    drawn = [forms.drawn(random.Random(seed))[0] for seed in range(300)]
    kinds = Counter(edit[0].kind for form in drawn for edit in form.edits.values())
    exchanged = sum(kinds[kind] for kind in ("text", "order", "fewer", "more"))
    assert 0.2 < sum(kinds[kind] for kind in ("order", "fewer", "more")) / exchanged < 0.5
    assert kinds["order"] > kinds["fewer"] > 0


NOTED = """\
from unittest import TestCase


class Shop(TestCase):
    def check(self, given, wanted):
        self.assertEqual(len(given), len(wanted))

    def test_one(self):
        self.check(one(), wanted())

    def test_two(self):
        self.assertEqual(two(), 22)
"""


def test_a_test_of_which_no_place_can_be_altered_is_tried_by_what_it_compares() -> None:
    forms = forms_of("test_one", "test_two", test_shop=NOTED)
    assert forms.alterable == {"test_one", "test_two"}
    for seed in range(20):
        *others, noting = forms.drawn(random.Random(seed))[:3]
        assert noting.is_noting
        assert noting.names == {"test_one", "test_two"}
        assert {name for form in others for name in form.names} == {"test_two"}
    assert forms.altering(frozenset({"test_one"}), random.Random(1)) is None


def test_no_variable_of_notes_has_a_name_of_their_own_text_or_of_a_test() -> None:
    app = "def test_helper():\n    held = operator = 1\n    test_it = 2\n    leaf = held\n    given = 1\n"
    for seed in range(20):
        forms = forms_of("test_one", "test_two", test_shop=NOTED, app=app).drawn(random.Random(seed))
        (noting,) = (form for form in forms if form.is_noting)
        names: dict[str, Any] = {"one": lambda: 1, "wanted": list, "two": lambda: 22}
        exec(text_of(noting), names)
        with pytest.raises(AssertionError, match="all of it holds"):
            names["Shop"]("test_two").test_two()
        assert re.search(r"^def leaf\(\)", text_of(noting), re.MULTILINE)
