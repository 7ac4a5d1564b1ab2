"""Places that a mutation may change, for each language."""

from __future__ import annotations

import pytest

from astra_async.audit.mutants import mutable_tests
from astra_async.languages.mutations import NEGATION

PYTHON = {
    "test_a.py": """
EXPECTED = {"a": 1}
LIMIT = 7
CASES = [(1, 2), (3, 4)]
@pytest.mark.parametrize("a, expected", [(1, 20), (3, 40)])
def test_x(a, expected):
    assert f(a) == expected, "m"
    want = [5, "z"]
    assert g() == want
    shared = 6
    use(shared)
    assert h() == shared
class T:
    def test_y(self):
        self.assertEqual(f(x), {"k": -8})
        if x:
            assert y == 9
        for a, b in CASES:
            assert h(a) == b
        for each in found():
            assert each == 10
        self.assertContains(r, "x")
        with sale():
            assert each == 11
        with self.subTest("x"):
            self.assertEqual(12, g())
        self.assertAlmostEqual(p, 1.5)
        assert all_() == EXPECTED
        assert f"{z}" == g(LIMIT)
"""
}
JAVASCRIPT = {
    "a.test.ts": """
const want: number[] = [1, 2];
it.each([[1, 20], [3, 40]])("a %s", async (a, expected) => {
  expect(f(a)).toBe(expected);
  expect(x).not.toBe(7);
});
test("b", async () => {
  expect(g()).toEqual(want);
  await waitFor(() => expect(y).toBe(3));
  expect(list).toContain("in");
  for (const { a, w } of [{ a: 1, w: 9 }]) { expect(f(a)).toBe(w); }
});
test('c', () => {
  assert.strictEqual(f(), 5);
  if (q) { expect(1).toBe(11); }
  return request(app).get('/').expect(200).expect('A', 'b').then((r) => expect(r.body).toEqual({ a: 'z' }));
});
""",
    "browser.spec.ts": """
import { expect, test } from '@playwright/test';
test('waits', async () => { await expect(page).toHaveTitle('t'); expect(f()).toBe(1); });
""",
}
JAVA = {
    "T.java": """
import static org.junit.Assert.assertEquals;
class T {
  @Test void a() {
    String w = "q";
    assertEquals(3L, f("x"));
    assertThat(x).isEqualTo(w);
    assertThat(names).containsExactly("b", "c");
    assertThat(x, is(5));
    assertEquals(List.of("k"), y);
    assertAll(() -> assertEquals(1, f()));
    for (int n : found()) { assertEquals(9, n); }
  }
}
"""
}
GO = {
    "a_test.go": """package x
type row struct { in string; want, other int }
func TestX(t *testing.T) {
    for _, c := range cases {
        t.Run(c.in, func(t *testing.T) { if got := f(c.in); got != c.want { t.Errorf("x") } })
    }
    if !reflect.DeepEqual(got, []int{4}) { t.Fatal() }
    for in, want := range map[string]int{"a": 5} { if f(in) != want { t.Error() } }
    assert.Equal(t, 6, f())
}
""",
    "b_test.go": """package x
var cases = []row{{"a", 1, 10}, {in: "b", want: 2}}
""",
}
RUST = {
    "src/lib.rs": """
#[test]
fn adds() {
    let want = vec![1, 2];
    assert_eq!(f(9), want);
    assert!(x.is_ok(), "m");
    assert_eq!(g("a"), Some("b".to_string()));
}
mod tests { #[test] #[ignore] fn z() { assert_eq!(3u8, f()); if x { assert!(y) } } }
"""
}
RUBY = {
    "a_spec.rb": """
it "adds" do
  expect(f(9)).to eq(2)
  expect(page).to have_content("slow")
  expect(y).not_to be true
  [[1, 20]].each { |a, b| assert_equal b, f(a) }
  found.each { |one| assert_equal 8, one }
end
def test_words
  assert_equal %w[a b], x
  assert_nil y if z
end
"""
}
PHP = {
    "ATest.php": """<?php
class ATest extends TestCase {
  public function testA(): void { $this->assertSame([1, 'a' => "b"], $x);
    $want = 3; $this->assertEquals($want, f()); }
  #[Test] public function counts() { static::assertCount(2, $x); if ($y) { self::assertTrue($y); } }
}
"""
}
CSHARP = {
    "CardTests.cs": """
namespace A {
public class T {
  [Fact] public async Task A() {
    Assert.Equal(3m, f(1)); Assert.NotNull(x);
    Assert.Equal(new[] { "b", "c" }, await g("d"));
    x.Should().Be(5).And.NotBeNull(); x.ShouldBe('k');
    if (q) { Assert.True(z); }
    foreach (var each in found()) { Assert.Equal(9, each); }
    Assert.Equal($"a{1}", y);
  }
  [Theory, InlineData(1, 20), InlineData(3, 40)]
  public void B(int a, int expected) { Assert.Equal(expected, f(a)); }
  [Test] public void C() { Assert.That(f(), Is.EqualTo(-7)); Assert.That(x); Assert.AreEqual(true, y, "m"); }
}}
"""
}
CASES = {
    "csharp": (
        CSHARP,
        {"A": """3m "b" "c" 5 'k'""", "B": "20 40", "C": "7 true"},
        {"A": 7, "B": 1, "C": 3},
    ),
    "python": (PYTHON, {"test_x": '20 40 5 "z"', "test_y": '"k" 8 12 2 4 "a" 1'}, {"test_x": 3, "test_y": 7}),
    "javascript": (JAVASCRIPT, {"a ": "20 40", "b": "1 2 9", "c": "5 200 'z'"}, {"a ": 2, "b": 3, "c": 2}),
    "java": (JAVA, {"a": '3L "q" "b" "c" 5 "k" 1'}, {"a": 5}),
    "go": (GO, {"TestX": "1 2 4 5 6"}, {"TestX": 4}),
    "rust": (RUST, {"adds": '1 2 "b"', "z": "3u8"}, {"adds": 3, "z": 1}),
    "ruby": (RUBY, {"adds": "2 20", "test_words": "a b"}, {"adds": 3, "test_words": 1}),
    "php": (PHP, {"testA": "1 'a' \"b\" 3", "counts": "2"}, {"testA": 2, "counts": 1}),
}


@pytest.mark.parametrize("language", CASES)
def test_expected_constants_and_assertions_that_always_run_are_found(language: str) -> None:
    files, constants, negations = CASES[language]
    tests = mutable_tests({path: text.encode() for path, text in files.items()})
    found = {test.title: [each for each in test.places if each.kind != NEGATION] for test in tests}
    assert {title: sorted(each.text for each in places) for title, places in found.items()} == {
        title: sorted(text.split()) for title, text in constants.items()
    }
    counts = {test.title: sum(each.kind == NEGATION for each in test.places) for test in tests}
    assert counts == negations


@pytest.mark.parametrize("language", CASES)
def test_places_hold_what_they_say_and_do_not_overlap_for_constants(language: str) -> None:
    files = CASES[language][0]
    for test in mutable_tests({path: text.encode() for path, text in files.items()}):
        for place in test.places:
            text = files[place.path].encode()[place.begin : place.end].decode()
            assert place.kind == NEGATION or text == place.text


@pytest.mark.parametrize("suffix", ["py", "js", "tsx", "java", "go", "rs", "rb", "php", "cs", "txt"])
def test_any_bytes_are_read(suffix: str) -> None:
    texts = (b"\xff\x00 def test_x(", b"(" * 20_000, b"", "test('\u20ac', () => { expect(1).toBe(".encode())
    for text in texts:
        assert mutable_tests({f"test_a.{suffix}": text}) == []
