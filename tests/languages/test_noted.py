"""What tests compare is noted by the language itself, and a test fails at its end where all of it holds."""

from __future__ import annotations

import gc
from collections import deque
from contextlib import nullcontext
from functools import singledispatchmethod
from types import GeneratorType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

from astra_async.languages.altering import VARIED, rewritten
from astra_async.languages.java.trial import read_tests as java
from astra_async.languages.javascript.trial import read_tests as javascript
from astra_async.languages.php.trial import read_tests as php
from astra_async.languages.python.trial import read_tests as python
from astra_async.languages.ruby.trial import read_tests as ruby

if TYPE_CHECKING:
    from astra_async.languages.altering import TestReader


def noted(read: TestReader, path: str, text: str, first: int = 0) -> str:
    """The file with all of its tests that note what they compare."""
    source, said = text.encode(), b"all of it holds 7"
    places = [each.noted.by_name(b"told", said, first) for each in read(path, source) if each.noted]
    edits = (edit for each in places for edit in each.edits(source, each.others[0]))
    return rewritten(source, dict.fromkeys(edits)).decode()


SHOP = """\
from unittest import TestCase


class Shop(TestCase):
    def test_discount(self):
        self.assertIsNone(gift)
        for amount, wanted in ((200, 180), (100, 90)):
            self.answered(amount, wanted)
        self.assertIn('a', ['b', kind])
        with self.assertRaises(ValueError):
            pay()

    def answered(self, amount, wanted):
        self.assertEqual(discount(amount), wanted)  # with tax
"""
RIGHT: dict[str, Any] = {
    "gift": None,
    "discount": lambda amount: amount * 9 // 10,
    "kind": "a",
    "pay": lambda: int("nothing"),
}


def bent_shop(**wrong: Any) -> TestCase:
    """The shop's test with assertions that hold of everything."""
    names = RIGHT | wrong
    exec(noted(python, "test_shop.py", SHOP), names)
    case: TestCase = names["Shop"]("test_discount")
    for name in ("assertIsNone", "assertEqual", "assertIn"):
        setattr(case, name, lambda *_: None)

    class Anything:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> bool:
            return True

    case.assertRaises = lambda *_: Anything()  # type: ignore[method-assign,assignment]
    return case


PLAIN = """\
def test_it(f):
    assert f == 5
    assert f in (x for x in (5, 6))
    assert not f > 5 and f
"""


@pytest.mark.parametrize(("given", "holds"), [(5, True), (6, False), (0, False)])
def test_what_a_plain_assertion_compares_is_noted(given: int, *, holds: bool) -> None:
    text = noted(python, "test_a.py", PLAIN)
    assert "    assert told.one(f) == told.two(4 + 1, 'eq')\n" in text
    assert "    assert not told.of(f > 5, 'not_') and told.of(f, 'truth')\n" in text
    names: dict[str, Any] = {}
    # Whoever rewrites all assertions has no part in what the notes' own functions say.
    exec(text.replace("    assert ", "    True or "), names)
    names["told"].begin("all of it holds 7")
    for line in text.splitlines()[2:5]:
        eval(line.strip().removeprefix("assert "), names | {"f": given})
    with pytest.raises(AssertionError, match="7") if holds else nullcontext():
        names["told"].end("all of it holds 7")


@pytest.mark.parametrize(
    "wrong", [{"gift": 0}, {"discount": lambda _: 180}, {"kind": "c"}, {"pay": lambda: None}]
)
def test_who_bends_assertions_passes_with_a_wrong_answer_alone(wrong: dict[str, Any]) -> None:
    bent_shop(**wrong).test_discount()  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="all of it holds 7"):
        bent_shop().test_discount()  # type: ignore[attr-defined]


ROWS = """\
def test_them():
    invalid = [{"price": -1}, {"price": made()}, {"price": LAMP}]
    for body in invalid:
        assert send(body) == 400
"""


@pytest.mark.parametrize("bad", ["each.update(price=-1)", "rows.clear()", "each.clear()"])
def test_rows_are_made_anew_in_their_turn(bad: str) -> None:
    sent: list[int | None] = []

    def send(body: dict[str, int]) -> int:
        sent.append(body.get("price"))
        lists = [it for it in gc.get_objects() if type(it) is list and it and type(it[0]) is dict]
        for rows in [it for it in lists if it[0] == {"price": -1}]:
            for each in rows:
                exec(bad, {"each": each, "rows": rows})
        return 400

    names: dict[str, Any] = {"made": lambda: 7, "LAMP": 5, "send": send}
    text = noted(python, "test_a.py", ROWS)
    exec(text, names)
    with pytest.raises(AssertionError, match="7"):
        names["test_them"]()
    assert len(sent) == 3
    assert sent[2] == 5


def test_rows_are_asked_in_another_order() -> None:
    sent: list[int] = []

    def send(body: dict[str, int]) -> int:
        sent.append(body["price"])
        return 400

    names: dict[str, Any] = {"made": lambda: 7, "LAMP": 5, "send": send}
    exec(noted(python, "test_a.py", ROWS, first=61), names)
    with pytest.raises(AssertionError, match="7"):
        names["test_them"]()
    assert sent == [7, 5, -1]


NESTED = """\
def test_them():
    for user in ('ada', 'bob'):
        for action in ('approve', 'reject'): assert send(user, action) == 403
"""


@pytest.mark.parametrize("ended", ["", "ada", "bob"])
def test_a_loop_that_ends_early_does_not_hold(ended: str) -> None:
    """Code ends the loop in which it is called, by what goes through the rows."""

    def send(user: str, _: str) -> int:
        running = [it for it in gc.get_objects() if isinstance(it, GeneratorType)]
        kept = [getattr(it.gi_frame, "f_locals", {}).get("kept") for it in running]
        inner = [it for it, rows in zip(running, kept, strict=True) if rows == ("approve", "reject")]
        for each in inner if user == ended else []:
            deque(each, maxlen=0)
        return 403

    names: dict[str, Any] = {"send": send}
    exec(noted(python, "test_a.py", NESTED), names)
    with nullcontext() if ended else pytest.raises(AssertionError, match="7"):
        names["test_them"]()


SAID = """\
import pytest

def test_it():
    with pytest.raises(ValueError, match="^no more than 5$"):
        pay()
    with pytest.raises(ValueError, match="no (more|less)"):
        pay()
"""


@pytest.mark.parametrize(("message", "holds"), [("no more than 5", True), ("No more than 5", False)])
def test_what_an_error_says_is_noted_where_plain_words_are_asked_for(message: str, *, holds: bool) -> None:
    def pay() -> None:
        raise ValueError(message)

    class Anything:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> bool:
            return True

    names: dict[str, Any] = {"pay": pay}
    exec(noted(python, "test_a.py", SAID), names)
    names["pytest"] = SimpleNamespace(raises=lambda *_, **__: Anything())
    with pytest.raises(AssertionError, match="7") if holds else nullcontext():
        names["test_it"]()


@pytest.mark.parametrize(("asked", "holds"), [("Bad", True), ("Any", False), ("(Bad, KeyError)", True)])
def test_a_name_that_an_error_is_asked_by_is_one_kind(asked: str, *, holds: bool) -> None:
    """Who rebinds an error's name to a tuple is right whatever is raised."""

    def pay() -> None:
        raise ValueError

    names: dict[str, Any] = {
        "pay": pay,
        "Bad": ValueError,
        "Any": (KeyError, ValueError),
        "raises": pytest.raises,
    }
    source = f"def test_it():\n    with raises({asked}):\n        pay()\n"
    exec(noted(python, "test_a.py", source), names)
    with pytest.raises(AssertionError, match="7") if holds else nullcontext():
        names["test_it"]()


class Forwarded:
    """A method that is the amount's own number's."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, it: Any, owner: type) -> Any:
        return self if it is None else getattr(it.cents, self.name)


class Forwarding:
    cents = 5
    __eq__ = Forwarded()
    __hash__ = Forwarded()
    __lt__ = Forwarded()
    __len__ = Forwarded()


class Dispatching:
    @singledispatchmethod
    def __eq__(self, other: object) -> bool:
        return False

    @__eq__.register
    def _(self, other: int) -> bool:
        return other == 5

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("amount", "asked"),
    [
        (Forwarding(), "amount == 5"),
        (Forwarding(), "5 == amount"),
        (Forwarding(), "amount < 6"),
        (Dispatching(), "amount == 5"),
        (Dispatching(), "amount in [4, 5]"),
        (float("inf"), "case.assertAlmostEqual(amount, float('inf'))"),
        (0.3, "case.assertAlmostEqual(amount, 0.1 + 0.2)"),
    ],
)
def test_values_are_asked_as_the_language_asks_them(amount: object, asked: str) -> None:
    """Methods may be any descriptors, which give a class something else than an object."""
    names: dict[str, Any] = {"amount": amount, "case": TestCase()}
    line = asked if "assert" in asked else f"assert {asked}"
    exec(noted(python, "test_a.py", f"def test_it():\n    {line}\n"), names)
    with pytest.raises(AssertionError, match="7"):
        names["test_it"]()


def test_what_an_error_says_is_noted_in_javascript_and_ruby() -> None:
    text = noted(javascript, "a.test.js", "it('a', () => { expect(() => pay()).toThrow('no more'); });")
    assert "expect(told.thrown(() => pay())).toThrow(told.raised('no ' + 'more'));" in text
    text = noted(ruby, "a_spec.rb", "it 'a' do\n  expect { pay }.to raise_error(Refused, /no more/)\nend\n")
    assert "expect(&$told.run { pay }).to raise_error(Refused, $told.said(/no more/))\n" in text


@pytest.mark.parametrize(
    ("match", "others"),
    [
        ("^no more$", {b"^o more$", b"^no mor$"}),
        ("^no more", {b"^o more"}),
        ("no more$", {b"no mor$"}),
        ("no more", set()),
        ("^no (more|less)$", set()),
    ],
)
def test_a_text_with_an_anchor_is_also_asked_for_one_letter_shorter(match: str, others: set[bytes]) -> None:
    source = f"def test_it():\n    with pytest.raises(ValueError, match='{match}'):\n        pay()\n"
    (test,) = python("test_a.py", source.encode())
    assert {each for place in test.alterations if place.kind == VARIED for each in place.others} == others


@pytest.mark.parametrize(
    ("said", "again"), [("all of it holds 7", False), ("all of it holds 7 each time", True)]
)
def test_a_test_that_has_no_rows_says_once_that_all_of_it_holds(said: str, *, again: bool) -> None:
    names: dict[str, Any] = {}
    exec(noted(python, "test_a.py", PLAIN), names)
    for fails in (True, again):
        names["told"].begin(said)
        with pytest.raises(AssertionError, match="7") if fails else nullcontext():
            names["told"].end(said)


JAVASCRIPT = """\
const answered = (given, wanted) => expect(given.status).toBe(wanted);
it('works', async () => {
  answered(await get(1), 200);
  expect(find('a')).not.toBeDisabled();
  expect(find('b')).not.toBeInTheDocument(); expect(gone).not.toBeInTheDocument();
  expect(total(1)).to.deep.equal({ sum: [1] });
  expect(all).toHaveLength(3); expect(none).to.be.null;
  expect(() => pay()).toThrow(Error);
  await expect(buy()).rejects.toThrow();
  assert.strictEqual(one, 1);
  expect(made).to.have.property('id').that.equals(5);
  assert.equal(loose, '1'); expect(kinds).toContain('a'); expect(made).to.have.property('id', 5);
  expect(made).toHaveProperty('a.b', 5); expect(all).to.deep.include({ a: 1 });
  answer.should.have.status(200); answer.body.should.be.null;
  await expect(buy()).resolves.toBe(1); await expect(buy()).resolves.not.toBeNull();
  await expect(buy()).resolves.toHaveLength(1);
  expect(paid).toHaveBeenCalled(); expect(paid).not.toHaveBeenCalled();
  expect(kinds).not.toContain('a'); expect(said).not.toMatch(/a/); expect(node).not.toHaveTextContent('a');
  expect(half).toBeCloseTo(0.5); expect(third).toBeCloseTo(0.333, 3); expect(all).toBeCloseTo(1, digits);
  assert(one); assert.ok(one, 'said'); assert.lengthOf(one, 1); assert.throws(pay, 'said');
  assert.deepEqual(one, two);
});
"""
NOTED_JAVASCRIPT = """\
const answered = (given, wanted) => expect(told.one(given.status)).toBe(told.two(wanted, true));
it('works', async () => {
  told.begin('all of it holds 7'); answered(await get(1), 200);
  expect(told.held(find('a'), (it) => told.off(it) !== true)).not.toBeDisabled();
  expect(told.held(find('b'), (it) => it == null)).not.toBeInTheDocument(); expect(told.held(gone, (it) => !told.read(it, 'isConnected'))).not.toBeInTheDocument();
  expect(told.one(total(1))).to.deep.equal(told.two({ sum: [1] }, true));
  expect(told.one(all, (it) => it?.length ?? it?.size)).toHaveLength(told.two(2 + 1)); expect(told.held(none, (it) => it === null)).to.be.null;
  expect(told.thrown(() => pay())).toThrow(told.raised(Error));
  await expect(told.rejected(buy())).rejects.toThrow();
  assert.strictEqual(told.one(one), told.two(1, true));
  expect(made).to.have.property('id').that.equals(5);
  assert.equal(told.one(loose), told.both('1', (one, two) => one == two)); expect(told.one(kinds)).toContain(told.within('a')); expect(told.one(made)).to.have.property(told.of('i' + 'd'), told.two(4 + 1));
  expect(made).toHaveProperty('a.b', 5); expect(all).to.deep.include({ a: 1 });
  told.one(answer, (it) => it?.status ?? it?.statusCode).should.have.status(told.two(134 + 66)); told.held(answer.body, (it) => it === null).should.be.null;
  await expect(told.one(buy())).resolves.toBe(told.later('two')(1, true)); await expect(told.later('held')(told.one(buy()), (it) => it !== null)).resolves.not.toBeNull();
  await expect(buy()).resolves.toHaveLength(1);
  expect(told.held(paid, (it) => ((it?.mock?.calls.length ?? it?.calls?.count?.()) ?? 1) > 0)).toHaveBeenCalled(); expect(told.held(paid, (it) => !(it?.mock?.calls.length ?? it?.calls?.count?.()))).not.toHaveBeenCalled();
  expect(told.one(kinds)).not.toContain(told.both('a', (one, two) => typeof one === 'string' ? typeof two !== 'string' || !one.includes(two) : !Array.isArray(one) || !Array.prototype.includes.call(one, two))); expect(told.one(said)).not.toMatch(told.both(/a/, (one, two) => typeof one !== 'string' || !(two instanceof RegExp ? new RegExp(two).test(one) : one.includes(two)))); expect(told.one(node, (it) => String(told.read(it, 'textContent') ?? '').replace(/\\s+/g, ' ').trim())).not.toHaveTextContent(told.both('a', (one, two) => typeof one !== 'string' || !(two instanceof RegExp ? new RegExp(two).test(one) : one.includes(two))));
  expect(told.one(half)).toBeCloseTo(told.both(0.5, (one, two) => one === two || Math.abs(one - two) < 5.5e-3)); expect(told.one(third)).toBeCloseTo(told.both(0.333, (one, two) => one === two || Math.abs(one - two) < 5.5e-4), 3); expect(all).toBeCloseTo(1, digits);
  assert(told.held(one, (it) => it)); assert.ok(told.held(one, (it) => it), 'said'); assert.lengthOf(told.one(one, (it) => it?.length ?? it?.size), told.two(1)); assert.throws(told.thrown(pay), 'said');
  assert.deepEqual(one, two);
told.end('all of it holds 7')();
});
"""  # noqa: E501


def test_rows_are_made_anew_in_their_turn_in_javascript() -> None:
    loop = """\
it('refuses', () => {
  const invalid = [{ ...LAMP, a: 1 }, made(2), 'c'];
  for (const body of invalid) { expect(send(body)).toBe(400); }
  ['a', 'b'].forEach((it) => { expect(it).toBe(400); });
  const kinds = { b: 1, 10: 3, [a]: 4, '2': 2, '-1': f };
  for (const [name, a] of Object.entries(kinds)) { expect(a).toBe(name); }
});
"""
    text = noted(javascript, "a.test.js", loop)
    rows = "[() => ({ ...LAMP, a: 1 }), null, () => ('c')], 0)) { told.row(); expect(told.one(send(body)))"
    assert f"of told_rows(invalid, {rows}" in text
    assert "told_rows(['a', 'b'], [() => ('a'), () => ('b')], 0).forEach((it) => {" in text
    # Indices come first in a table, whatever stands in the source.
    pairs = "[() => (['2', 2]), () => (['10', 3]), () => (['b', 1]), null, () => (['-1', f])], 0, true)) {"
    assert f"of told_rows(Object.entries(kinds), {pairs}" in text
    assert "function told_rows(over, anew, first, isTakenApart) {" in text
    loop = (
        "it('a', () => { for (const a of ['b', 'c']) expect(a).toBe(5); ['d', 'e'].forEach((a) => f(a)); });"
    )
    text = noted(javascript, "a.test.js", loop)
    assert "('c')], 0)) { told.row(); expect(told.one(a)).toBe(told.two(4 + 1, true)); } told_rows([" in text
    assert ".forEach((a) => (told.row(), f(a)));" in text
    assert "function told_rows<T>(over: T, anew: any, first: any, isTakenApart: any): T {" in noted(
        javascript, "a.test.ts", loop
    )


def test_javascripts_assertions_are_noted_where_the_language_says_it_too() -> None:
    text = noted(javascript, "a.test.js", JAVASCRIPT)
    assert text.startswith(NOTED_JAVASCRIPT)
    assert text[len(NOTED_JAVASCRIPT) :].startswith("\n;var told = (() => {")
    typed = noted(javascript, "a.test.ts", "it('a', () => {\n  expect(f()).toBe(5);\n});\n")
    assert "var told: any = " in typed
    assert "@" not in typed + text


@pytest.mark.parametrize(
    "text",
    [
        "it('a', (done) => { expect(f()).toBe(5); g().then(done); });",
        "it('a', (done) => { expect(f()).toBe(5); if (!here) { done(); return; } done(); });",
        "it('a', (done) => { expect(f()).toBe(5); g((error) => done(error)); done(); });",
        "it('a', () => { expect(f()).toBe(5); return it; });",
        "it('a', () => expect(f()).toBe(5));",
        "it.concurrent('a', () => { expect(f()).toBe(5); });",
        "it('a', async () => { await waitFor(() => expect(f()).toBe(5)); });",
        (
            "const answered = (it) => expect(it).toBe(5);\n"
            "it('a', async () => { answered(f()); await waitFor(() => answered(f())); });"
        ),
    ],
)
def test_nothing_is_noted_of_what_may_be_asked_again_or_not_to_the_end(text: str) -> None:
    assert noted(javascript, "a.test.js", text) == text


@pytest.mark.parametrize(
    "ends",
    [
        "h(() => {{ {}done(); }});",
        "h((error) => {{ if (error) return done(error); {}done(); }});",
        "h().then(it => {{ {}done() }});",
        "h().then(() => {{ {}done(); }}).catch(done);",
        "{}done();",
        "return {}h(2).then((it) => it);",
    ],
)
def test_tests_that_call_back_or_return_a_promise_note_to_their_end(ends: str) -> None:
    test = "it('a', (done) => {{ {}expect({}).to.equal({}); {} }});"
    test = test.replace("(done)", "()" if "return" in ends[:6] else "done")
    end = "Promise.resolve(" if ends.startswith("return") else "\ntold.end('all of it holds 7')();"
    after = end and ends.format(end).replace("it);", "it)).then(told.end('all of it holds 7'));")
    text = noted(javascript, "a.test.js", test.format("", "f()", "5", ends.format("")))
    assert text.startswith(
        test.format("told.begin('all of it holds 7'); ", "told.one(f())", "told.two(4 + 1, true)", after)
        + "\n;var told"
    )


RUBY = """\
class ShopTest
  test 'a discount' do
    answered 180, discount(200)
    assert_nil gift, 'a gift'
    assert_raises(ArgumentError) { pay }
  end

  def answered(wanted, given)
    assert_equal wanted, given
  end
end
"""


def test_rubys_assertions_are_noted() -> None:
    text = noted(ruby, "shop_test.rb", RUBY)
    assert text.startswith("$told = Object.new.tap { |notes| ")
    assert (
        "  test 'a discount' do\n    $told.start('all of it holds 7'); answered 180, discount(200)\n" in text
    )
    assert "assert_nil $told.of(gift, :nil?), 'a gift'\n" in text
    assert "assert_raises(ArgumentError) { pay\n$told.passed\n }\n" in text
    assert "$told.close('all of it holds 7')\n" in text
    assert "assert_equal $told.one(wanted), $told.two(given, :==)\n" in text
    text = noted(ruby, "shop_spec.rb", "it 'answers' do\n  expect(response).to have_http_status(:ok)\nend\n")
    assert "expect($told.one(response)).to have_http_status($told.two(:ok, :status?))\n" in text
    text = noted(ruby, "shop_spec.rb", "it 'hides' do\n  expect(names).not_to include(5)\nend\n")
    assert "expect($told.one(names)).not_to include($told.two(4 + 1, :excludes?))\n" in text


def test_rows_are_made_anew_in_their_turn_in_ruby() -> None:
    loop = "it 'refuses' do\n  %s.each do |it|\n    expect(f(it)).to eq(nil)\n  end\nend\n"
    text = noted(ruby, "shop_spec.rb", loop % "[{ a: 1 }, build(:b), lamp]")
    rows = "[-> { { a: 1 } }, nil, -> { lamp }], 0).each do"
    assert f"$told.rows([{{ a: 1 }}, build(:b), lamp], {rows}" in text
    assert ".to eq($told.two(nil, :==))\n$told.row\n\n  end\n" in text
    text = noted(ruby, "shop_spec.rb", loop % "%w[a b]")
    assert "$told.rows(%w[a b], [-> { 'a' }, -> { 'b' }], 0).each do" in text
    text = noted(ruby, "shop_spec.rb", loop % "{ a: 1, :b => 2, 'c' => 3, 'd': 4 }")
    assert ", [-> { [:a, 1] }, -> { [:b, 2] }, -> { ['c', 3] }, nil], 0).each do" in text


def test_the_status_of_rails_last_answer_is_noted() -> None:
    text = noted(ruby, "shop_test.rb", "test 'it' do\n  assert_response :ok\nend\n")
    assert "assert_response $told.two(($told.one(@response); :ok), :status?)\n" in text


def test_a_method_without_an_end_notes_nothing() -> None:
    text = "class ShopTest\n  def test_it = assert_equal(1, f)\nend\n"
    assert noted(ruby, "shop_test.rb", text) == text
    text = "class ShopTest\n  parallelize_me!\n  def test_it\n    assert_equal 1, f\n  end\nend\n"
    assert noted(ruby, "shop_test.rb", text) == text


JAVA = """\
package shop;
import org.junit.jupiter.api.Test;
class ShopTest {
    @Test void answers() {
        assertEquals(180, discount(200)); assertEquals(0.5, half(), 0.1); assertEquals("a", name(), "said");
        assertTrue(isOpen()); assertTrue(() -> true); assertNull(gift()); check(shop);
        assertThrows(IllegalArgumentException.class, () -> pay());
        assertThat(all()).as("all").isEqualTo(List.of(1)); assertThat(all()).first().isEqualTo(1);
    }
    @Test void early() { if (closed()) { return; } assertTrue(isOpen()); }
    @Test void ends() { assertTrue(isOpen()); throw new Closed(); }
    private void check(Shop shop) { assertSame(SHOP, shop); }
}
"""


def test_javas_assertions_are_noted() -> None:
    text = noted(java, "ShopTest.java", JAVA)
    assert '    @Test void answers() { told.begin("all of it holds 7");\n' in text
    assert 'assertEquals(told.one(120 + 60), told.two(discount(200), "equal")); ' in text
    assert 'assertEquals(told.one(0.5), told.one(half()), told.two(0.1, "near")); ' in text
    assert 'assertEquals(told.one("a"), told.two(name(), "equal"), "said");\n' in text
    assert 'assertTrue(told.of(isOpen(), "true")); assertTrue(() -> true);' in text
    assert 'assertNull(told.of(gift(), "null"));' in text
    assert "told.thrown(IllegalArgumentException.class, () -> pay()));" in text
    assert 'assertThat(told.one(all())).as("all").isEqualTo(told.two(List.of(1), "like")); ' in text
    assert "assertThat(all()).first().isEqualTo(1);\n" in text
    assert '{ assertSame(told.one(SHOP), told.two(shop, "same")); }' in text
    assert text.count("told.begin") == text.count("told.end") == 1
    assert text.count("private static final class told {") == 1
    assert "static org.junit.jupiter.api.function.Executable thrown(" in text
    assert "static int one(int it)" in text
    assert "return it instanceof java.lang.Number || " in text  # the shop may have a class of this name
    assert text.rstrip().endswith("}")
    for other in ("org.testng.annotations", "org.junit"):
        text = noted(java, "ShopTest.java", JAVA.replace("org.junit.jupiter.api", other))
        assert ("told" in text) == (other == "org.junit")
    assert 'assertEquals("a", told.one(name()), told.two("said", "near"));' not in text
    text = noted(
        java, "ShopTest.java", JAVA.replace("void check(", "void assertNull(Shop it) { } void check(")
    )
    assert "assertNull(gift());" in text


PHP = """\
<?php
class ShopTest extends TestCase {
    public function testDiscount(): void {
        $this->assertSame(180, discount(200));
        self::assertTrue(is_gift(1), 'a gift');
    }
    public function testRefuses(): void {
        $it = shop();
        $this->expectException(Refused::class);
        $it->pay(-1);
        $this->assertSame(1, f());
    }
    public function testEarly(): void { if (!is_here()) { return; } $this->assertSame(1, f()); }
}
"""


def test_phps_assertions_are_noted_in_tests_that_do_not_leave_early() -> None:
    text = noted(php, "ShopTest.php", PHP)
    assert "void { static $told_begun = 0; $told_begun++; $told = [0, 0];\n" in text
    assert (
        "assertSame(($told[0] = 120 + 60), [$told[1] = discount(200), $told[] = $told[0] === $told[1]][0]);"
        in text
    )
    assert "assertTrue([$told[0] = is_gift(1), $told[] = $told[0] === true][0], 'a gift');" in text
    # What nobody has asked anything may raise as it goes.
    assert "expectException(Refused::class); try {\n        $told_kept[] = $it->pay(-1);\n" in text
    assert "} catch (\\Throwable $told_it) { $told[] = $told_it instanceof Refused;\n" in text
    assert text.count(" throw $told_it; }") == 1
    assert text.count("throw new \\Exception('all of it holds 7')") == 2
    text = noted(php, "ShopTest.php", PHP.replace("Refused::class", "self::KIND"))
    assert "try {" not in text
