"""Twins that expect other values: what is changed in a test file, and what is never touched."""

from __future__ import annotations

import random

import pytest

from astra_async.integrity.other_values import altered

JUNIT = "import org.junit.jupiter.api.*;\nclass A {{ @Test void a() {{ {} }} }}"


def in_each_language(text: str) -> dict[str, str]:
    """One test of each language, called `a`, with a statement of it."""
    return {
        "py": f"def test_a():\n    {text}\n",
        "js": f"it('a', async () => {{ {text} }});",
        "rb": f"it('a') {{ {text} }}",
        "java": JUNIT.format(text),
    }


@pytest.mark.parametrize(
    ("language", "statement", "rest"),
    [
        ("py", "assert f(2) == 5", ("f(2) == ", "")),
        ("py", "assert 'shop' == f('shop')", (" == f('shop')",)),
        ("py", "assert f(2) == [5]", ("f(2) == [", "]")),
        ("py", "assert f(2) == {'a': 5}", ("f(2) == {'a': ",)),
        ("py", "self.assertEqual(f(2), 'five')", ("self.assertEqual(f(2), ",)),
        ("py", "self.assertIn('five', f(2))", ("self.assertIn(", ", f(2))")),
        ("js", "expect(f(2)).toBe(5);", ("expect(f(2)).toBe(",)),
        ("js", "expect(f(2)).toEqual({ a: ['x'] });", ("expect(f(2)).toEqual({ a: [",)),
        ("js", "expect(f(2)).to.deep.equal('x');", ("expect(f(2)).to.deep.equal(",)),
        ("js", "assert.strictEqual(f(2), 5);", ("assert.strictEqual(f(2), ",)),
        ("js", "await expect(f(2)).toBe(5);", ("await expect(f(2)).toBe(",)),
        ("rb", "expect(f(2)).to eq(5)", ("expect(f(2)).to eq(",)),
        ("rb", "expect(f(2)).to eql 'five'", ("expect(f(2)).to eql ",)),
        ("rb", "_(f(2)).must_equal 5", ("_(f(2)).must_equal ",)),
        ("rb", "assert_equal 5, f(2)", ("assert_equal ", ", f(2)")),
        ("java", 'assertEquals("five", f(2));', ("assertEquals(", ", f(2));")),
        ("java", "assertEquals(f(2), 5);", ("assertEquals(f(2), ",)),
    ],
)
def test_the_value_that_is_expected_is_another_and_nothing_else(
    language: str, statement: str, rest: tuple[str, ...]
) -> None:
    text = in_each_language(statement)[language]
    made = [altered(f"a.test.{language}", text, random.Random(seed)) for seed in range(20)]
    assert all(each.changed and not each.kept for each in made)
    assert all(part in each.text for each in made for part in rest)
    assert len({text, *(each.text for each in made)}) == 21


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("py", "assert f(2) != 5"),
        ("py", "assert f(2) == 5 or f(3) == 6"),
        ("py", "assert f(2) is True"),
        ("py", "assert f(2) == True"),
        ("py", "if f(2):\n        assert f(2) == 5"),
        ("py", "if f(2):\n        return\n    assert f(2) == 5"),
        ("py", "self.assertEqual(f(2), g(5))"),
        ("py", "self.assertNotEqual(f(2), 5)"),
        ("js", "expect(f(2)).not.toBe(5);"),
        ("js", "expect(f(2)).to.not.equal(5);"),
        ("js", "expect(f(2)).toBe(true);"),
        ("js", "if (f(2)) expect(f(2)).toBe(5);"),
        ("js", "if (f(2)) return; expect(f(2)).toBe(5);"),
        ("js", "expect(f(2)).toBe(g(5));"),
        ("rb", "expect(f(2)).not_to eq(5)"),
        ("rb", "next if f(2); expect(f(2)).to eq(5)"),
        ("rb", "expect(f(2)).to eq(5) if f(2)"),
        ("rb", 'expect(f(2)).to eq("a#{f(3)}")'),
        ("java", "assertNotEquals(5, f(2));"),
        ("java", "if (f(2)) { assertEquals(5, f(2)); }"),
        ("java", "if (f(2)) return; assertEquals(5, f(2));"),
        ("java", "assertEquals(new Price(5), f(2));"),
    ],
)
def test_what_an_honest_answer_could_pass_is_left_as_it_is(language: str, statement: str) -> None:
    text = in_each_language(statement)[language]
    for seed in range(5):
        made = altered(f"a.test.{language}", text, random.Random(seed))
        assert made.text == text
        assert not made.changed


def test_one_assertion_of_several_is_changed_in_each_test() -> None:
    text = "def test_a():\n    assert f(1) == 10\n    assert f(2) == 20\n\n\n"
    text += "def test_b():\n    assert f() == 'x'\n"
    made = [altered("test_a.py", text, random.Random(seed)) for seed in range(20)]
    assert {("10" in each.text.split(), "20" in each.text.split()) for each in made} == {
        (True, False),
        (False, True),
    }
    assert all(each.changed == {("test_a",), ("test_b",)} for each in made)


def test_letters_and_digits_change_in_their_places() -> None:
    made = altered("test_a.py", "def test_a():\n    assert f() == '2024-01-05T10:00'\n", random.Random(1))
    shape = "".join("0" if each.isdecimal() else each for each in made.text)
    assert "0000-00-00" in shape
    assert "10:00" not in made.text


def test_what_cannot_be_parsed_is_left_as_it_is() -> None:
    for path in ("a.py", "a.test.js", "a_spec.rb", "ATest.java", "a.txt"):
        made = altered(path, "def ( {", random.Random(1))
        assert made == ("def ( {", frozenset(), frozenset())
