"""What Go's, Rust's and PHP's test files are read as for trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.bundled import bundled_problems_csv
from astra_async.languages import LANGUAGES
from astra_async.languages.altering import SHAPES, rewritten

if TYPE_CHECKING:
    from astra_async.languages.altering import TestReader

READERS: dict[str, TestReader] = {
    each.name: each.trial for each in LANGUAGES if each.trial and each.name in ("go", "rust", "php")
}
SOURCES = {
    "go": b"""package shop

import "testing"

func TestPrice(t *testing.T) {
	// if got := Price(1); got != 7 { t.Error("a comment") }
	if got := Price(3); got != 12 {
		t.Errorf("got %d {", got)
	}
	if !Open("a {") || Name() != "shop" {
		t.Fatal("closed")
	}
	if _, err := Sell("x"); !errors.Is(err, shop.ErrName) || err == nil {
		t.Error("no name")
	}
	for i := range []int{1} {
		if i != 0 {
			t.Error(i)
		}
	}
	if Debug != 3 {
		println("no assertion")
	}
}

func TestGroup(t *testing.T) {
	t.Run("one is", func(t *testing.T) {
		if got := One(); got != 1 {
			t.Error(got)
		}
	})
}

func TestTable(t *testing.T) {
	cases := []struct {
		name string
		a, b int
		want int
	}{
		{"one is", 1, 2, 3},
		{name: "two", a: 2, want: 5},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Add(tc.a, tc.b); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestLoop(t *testing.T) {
	for _, c := range []struct{ in string; want int }{{"a", 1}, {"b", 2}, {"c", 4}} {
		if got, err := F(c.in); err != nil || got != c.want {
			t.Fatalf("%v", c.want)
		}
	}
	for _, c := range []pair{{in: "a", want: 1}, {in: "b", want: 2}} {
		if got := F(c.in, c.want); got != c.want {
			t.Fatal("what is expected is an input, too")
		}
	}
}

func TestAllowed(t *testing.T) {
	if a() != 1 {
		t.Error("one")
		return
	}
	if code := b(); code != 2 {
		if code != 64 {
			t.Error("neither")
		}
	} else if code != 3 {
		t.Error("never")
	}
	if c() != 'x' {
		t.Error("a character")
	}
	if d() != 4 {
		t.Error("four")
	}
	if e() == nil {
		return
	}
	if e().f != 5 {
		t.Error("where it is reached")
	}
}

func TestLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("later")
	}
	if One() != 1 {
		t.Error()
	}
}
""",
    "rust": b"""use shop::*;

#[test]
fn price() {
    // assert_eq!(price(1), 7);
    assert_eq!(price("a, b"), 12, "of {}", 3);
    assert_eq!(Err(Why::Closed), open('{'));
    assert!(is_open());
    assert_eq!(discount(2), shop::Price::new(180));
    assert_eq!(check(-1), Err(Why::Below { by: 7 }));
    assert_eq!(area(), Size::new(2, 3));
    assert_eq!(all(3), vec![1, 2]);
    assert_eq!(Shop::total(3), one());
    for i in 0..1 { assert_eq!(i, 0); }
}

#[test]
fn loops() {
    for (name, size) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(find(name, size), Some(17));
    }
    for name in ["a", "b"] { if name == "a" { continue; } assert_eq!(find(name), 3); }
}

#[test]
#[should_panic]
fn panics() { assert_eq!(1, 2); }

#[cfg(test)]
fn helper() { assert_eq!(1, 1); }
""",
    "php": b"""<?php
final class ShopTest extends TestCase {
    public function testPrice(): void {
        // $this->assertSame(7, price(1));
        $this->assertSame(12, price('a, b {'), 'a message');
        self::assertTrue(open("}"));
        if ($x) { $this->assertSame(1, 1); }
    }
    public function testLoop(): void {
        foreach (['a', 'b', 'c'] as $name) {
            $this->assertSame('x', name($name));
        }
        if ($found === null) { return; }
        $this->assertSame(9, $found);
    }
    public function testElse(): void {
        foreach ($names as $name) { $this->assertSame(1, name($name)); }
    }
    /** @dataProvider all */
    public function testAll(int $a): void { $this->assertSame('x', name($a)); }
    public function testLoosely(): void {
        $this->assertEquals(12, price());
        $this->assertEquals(0, price());
        $this->assertEquals('x', name());
        $this->assertStringContainsString('hello', name());
        $this->assertEquals(new Shop\\Price(180), price());
        $this->assertEquals(new Size(2, 3), size());
        $this->assertEqualsWithDelta(40.0, tax(), 0.1);
        $this->assertNull(owner());
        $this->assertGreaterThan(39, tax());
    }
    public function testRaises(): void { $this->expectException(InvalidArgumentException::class); open(); }
}
""",
}
RUST_LIST = ["1", "2", "vec![1, 2]", "vec![1, 2]", "vec![1, 2]"]  # its constants and its three shapes
RUST_MADE = ["180", "assert_eq", "assert_eq", "assert_eq", *RUST_LIST, "assert_eq", "assert_eq"]
FOUND = {
    "go": {
        ("TestPrice",): ["12", "!=", "shop", "shop.ErrName"],
        ("TestGroup/one_is",): ["1", "!="],
        ("TestTable/one_is",): ["3"],
        ("TestTable/two",): ["5"],
        ("TestLoop",): ["2", "4"],
        ("TestAllowed",): ["1", "!=", "!=", "4", "!="],
        ("TestLeft",): ["1", "!="],
    },
    "rust": {
        ("price",): ["12", "assert_eq", "Closed", "assert_eq", "is_open()", *RUST_MADE],
        ("loops",): ["17", "assert_eq"],
        ("panics",): [],
    },
    "php": {
        ("testPrice",): ["12", "assertSame", 'open("}")', "assertTrue"],
        ("testLoop",): ["x", "assertSame"],
        ("testElse",): [],
        (): ["x", "assertSame"],
        ("testLoosely",): [
            *("12", "assertEquals", "0", "assertEquals", "x", "assertEquals", "hello"),
            *(
                "assertStringContainsString",
                "180",
                "assertEquals",
                "assertEquals",
                "40.0",
                "owner()",
                "assertNull",
                "39",
            ),
        ],
        ("testRaises",): ["InvalidArgumentException::class"],
    },
}


@pytest.mark.parametrize(
    ("name", "text", "shapes"),
    [
        (
            "go",
            'func TestA(t *testing.T) {\n\tif !reflect.DeepEqual(F(), []string{"a", "b"}) {\n t.Fatal() }\n}',
            ['[]string{"b", "a"}', '[]string{"a"}', '[]string{"a", "b", "a"}'],
        ),
        (
            "go",
            "func TestA(t *testing.T) {\n\tif !slices.Equal(F(), []int{a, 2}) {\n\t\tt.Fatal()\n\t}\n}",
            [],
        ),
        (
            "rust",
            "#[test]\nfn a() { assert_eq!(f(), vec![1, 2]); }",
            ["vec![2, 1]", "vec![1]", "vec![1, 2, 1]"],
        ),
        (
            "rust",
            "#[test]\nfn a() { assert_eq!(f(), [1, 2]); }",
            ["[2, 1]"],
        ),  # an array of one is another type
        ("rust", "#[test]\nfn a() { assert_eq!(f(), vec![x, 2]); }", []),  # x would have moved
        (
            "php",
            "<?php function testA() { $this->assertSame([1, [2]], f()); }",
            ["[[2], 1]", "[1]", "[1, [2], 1]"],
        ),
        ("php", "<?php function testA() { $this->assertSame(['a' => 1, 'b' => 2], f()); }", ["['a' => 1]"]),
    ],
)
def test_a_list_that_is_expected_can_be_of_another_shape(name: str, text: str, shapes: list[str]) -> None:
    (test,) = READERS[name]("x", text.encode())
    assert [each.others[0].decode() for each in test.alterations if each.kind in SHAPES] == shapes


def test_the_slice_of_a_row_can_be_of_another_shape() -> None:
    rows = '{"x", []string{"a"}}, {"y", []string{"b", "c"}}'
    text = f"""func TestA(t *testing.T) {{
	for _, c := range []struct{{ in string; want []string }}{{{rows}}} {{
		if got := F(c.in); !reflect.DeepEqual(got, c.want) {{
			t.Error(got)
		}}
	}}
}}"""
    (test,) = READERS["go"]("x", text.encode())
    assert [text[each.begin : each.end] for each in test.alterations if not each.others] == ["b", "c"]
    assert [each.kind for each in test.alterations if each.others] == ["order", "fewer", "more"]


def test_a_number_that_is_compared_loosely_becomes_zero_which_true_is_not() -> None:
    tests = READERS["php"]("x", SOURCES["php"])
    asked = next(each.alterations for each in tests if each.titles == ("testLoosely",))
    assert [each.others for each in asked if each.kind == "number"] == [
        *[(b"0",), (), (b"0",)],
        (b"@drawn@40.0",),
    ]


@pytest.mark.parametrize(
    ("name", "title", "asked"),
    [
        ("rust", "loops", 'Some((if (name, size) == ("b", 2) { 18 } else { 17 }))'),
        ("php", "testLoop", "assertSame(($name === $wanted ? '18' : 'x'), "),
    ],
)
def test_a_loop_asks_for_something_else_where_it_has_come_to_one_of_its_rows(
    name: str, title: str, asked: str
) -> None:
    source = SOURCES[name]
    place, _ = next(each.alterations for each in READERS[name]("x", source) if each.titles == (title,))
    assert place.rows
    place = replace(place, rows=replace(place.rows, altered=1))
    assert asked in rewritten(source, place.edits(source, b"18")).decode()


@pytest.mark.parametrize("name", READERS)
def test_what_every_run_of_a_test_asks_is_found_and_nothing_else(name: str) -> None:
    source = SOURCES[name]
    read = READERS[name]("x", source)
    found = {
        each.titles: [source[place.begin : place.end].decode() for place in each.alterations] for each in read
    }
    assert found == FOUND[name]


@pytest.mark.parametrize(
    "path", ["bike-rental/project", "parcel-lockers/project/tests", "recipe-scaler/project/tests"]
)
def test_every_test_of_a_bundled_problem_can_be_altered(path: str) -> None:
    folder = bundled_problems_csv().parent / "problems" / path
    files = [each for each in Path(folder).rglob("*") if each.name.endswith(("_test.go", ".rs", "Test.php"))]
    for file in files:
        read = READERS[{"go": "go", "rs": "rust", "php": "php"}[file.suffix[1:]]](
            file.name, file.read_bytes()
        )
        assert read
        assert all(test.alterations and test.titles for test in read)


HEADS = {"go": "func TestA(t *testing.T) {", "rust": "#[test] fn a() {", "php": "function testA() {"}
ASKED = {
    "go": "if a != 1 { t.Error() }\n",
    "rust": "assert_eq!(a, 1);\n",
    "php": "$this->assertSame(1, $a);\n",
}


@pytest.mark.parametrize("name", READERS)
@given(st.text(alphabet="{}()[]\"'`/*\\\n!=,; $#<testifasrn_q", max_size=300))
def test_any_text_is_read(name: str, text: str) -> None:
    READERS[name]("x", (HEADS[name] + text).encode())


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_nobody_writes_is_read_in_time(name: str) -> None:
    head, asked = HEADS[name], ASKED[name]
    loops = [
        head + each
        for each in (
            "foreach ([1, 2] as $x) f();",
            "foreach ([1, 2] as $x",
            "foreach ([",
            "for x in [1, 2]",
            "for x in [",
            "for _, x := range []int{1, 2}",
            "for _, x := range []struct{",
            "for _, x := range []struct{a int}{{1}, {2}} { t.Run(x.a, y)",
            "for _, x := range []struct{a int}{{1}, {2}}",
            "rows := []p{{1}}\nfor _, x := range rows { t.Run(",
        )
    ]
    for text in (*loops, head * 300, head + "(" * 9_000, head + asked * 500 + "}", head + "if " * 2_000):
        READERS[name]("x", text.encode())


@pytest.mark.parametrize(
    ("imports", "is_asked"),
    [
        ("use super::*;", True),
        ("use shop::{Size, Why};", True),
        ("use shop::Sale::*;", False),
        ("use shop::Sale::None;", False),
    ],
)
def test_nothing_that_is_expected_has_to_hold_nothing(imports: str, *, is_asked: bool) -> None:
    source = f"{imports}\n#[test]\nfn none() {{ assert_eq!(fitting(9), None); }}\n"
    (test,) = READERS["rust"]("src/it.rs", source.encode())
    others = {text for place in test.alterations for text in place.others}
    assert (b"Some(None.unwrap())" in others) == is_asked


def test_an_error_of_many_is_asked_as_another_of_them() -> None:
    names = ("ErrA", "ErrB", "ErrC", "ErrD")
    tests = "".join(f"\tif !errors.Is(f(), {each}) {{\n\t\tt.Fatal()\n\t}}\n" for each in names)
    (test,) = READERS["go"]("x", f"func TestA(t *testing.T) {{\n{tests}}}\n".encode())
    others = next(each.others for each in test.alterations if each.kind == "raised")
    assert [each.decode().partition(" return ")[2] for each in others] == [
        f'errors.New("~") }}; return {each} }}()' for each in ("ErrB", "ErrC", "ErrD")
    ]
    assert b"errors.Is(ErrA, ErrB) || errors.Is(ErrB, ErrA)" in others[0]
    (test,) = READERS["go"]("x", f"func TestA(t *testing.T) {{\n{tests.replace('ErrD', 'ErrA')}}}\n".encode())
    assert not [each for each in test.alterations if each.kind == "raised"]  # it may be of two or three kinds


TESTIFY = """package shop

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPrice(t *testing.T) {
	require.NoError(t, Open())
	assert.Equal(t, 180, Price(3), "a message")
	assert.ErrorIs(t, Sell(), ErrName)
	if Debug {
		assert.Equal(t, 9, Price(1))
	}
}

func TestTable(t *testing.T) {
	for _, tc := range []struct{ name string; in, want int }{{"one", 1, 60}, {"two", 2, 120}} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, Price(tc.in))
		})
	}
}
"""


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (TESTIFY, [["NoError", "180", "Equal", "ErrName", "ErrorIs"], ["60"], ["120"]]),
        # an object of it is not given the test: its arguments have other places
        (TESTIFY.replace("require.NoError(t, Open())", "assert := assert.New(t)"), [[], [], []]),
        (TESTIFY.replace('\t"errors"\n', ""), [["NoError", "180", "Equal", "ErrorIs"], ["60"], ["120"]]),
    ],
)
def test_assertions_of_testify_can_be_asked_otherwise(text: str, asked: list[list[str]]) -> None:
    tests = READERS["go"]("shop_test.go", text.encode())
    places = [[each for each in test.alterations if each.kind not in SHAPES] for test in tests]
    assert [[text[each.begin : each.end] for each in found] for found in places] == asked


def test_methods_of_php_are_tests_by_their_name_attribute_or_comment() -> None:
    text = b"""<?php
class ShopTest extends TestCase {
    public function testOne(): void { $this->assertSame(1, f()); }
    #[Test]
    public function two(): void { $this->assertSame(2, f()); }
    /** @test */
    public function three(): void { $this->assertSame(3, f()); }
    #[DataProvider('rows'), PHPUnit\\Framework\\Attributes\\Test]
    public function four($row): void { $this->assertSame(4, f()); }
    /** no test */
    private function five(): void { $this->assertSame(5, f()); }
}
"""
    tests = READERS["php"]("ShopTest.php", text)
    assert [test.titles for test in tests] == [("testOne",), ("two",), ("three",), ()]
