"""Twins of Java's tests: what is rewritten; that the real runners see it fail is in `test_runners.py`."""

from __future__ import annotations

import pytest

from astra_async.integrity.rewriting import Manner, Settled, rewrite

AT_ONCE = Settled(Manner(at_once=True, assertion=True), 1)
JUPITER = "import org.junit.jupiter.api.*;\n"
JUNIT_4 = "import org.junit.Test;\n"
TESTNG = "import org.testng.annotations.*;\n"


@pytest.mark.parametrize(
    ("text", "runner", "names"),
    [
        (f"{JUPITER}class A {{ @Test void a() {{ }} }}", "JUnit 5", [("A", "a"), ("A", "a()")]),
        ("class A { @org.junit.jupiter.api.Test void a() { } }", "JUnit 5", [("A", "a"), ("A", "a()")]),
        (f"{JUNIT_4}class A {{ @Test public void a() {{ }} }}", "JUnit 4", [("A", "a"), ("A", "a()")]),
        (f"{TESTNG}class A {{ @Test public void a() {{ }} }}", "TestNG", [("A", "a"), ("A", "a()")]),
        (
            f"{TESTNG}@Test class A {{ public void a() {{ }} int b() {{ return 1; }} }}",
            "TestNG",
            [("A", "a")],
        ),
        ("class A extends junit.framework.TestCase { public void testA() { } }", "JUnit 3", [("A", "testA")]),
        (
            f'{JUPITER}class A {{ @Test @DisplayName("shown") void a() {{ }} }}',
            "JUnit 5",
            [("A", "a"), ("A", "a()"), ("A", "shown")],
        ),
        (
            f"{JUPITER}class A {{ @Nested class B {{ @Test void a() {{ }} }} }}",
            "JUnit 5",
            [("A", "B", "a"), ("A", "B", "a()")],
        ),
    ],
)
def test_a_test_is_known_by_what_its_annotation_means(
    text: str, runner: str, names: list[tuple[str, ...]]
) -> None:
    twin = rewrite("A.java", text, AT_ONCE)
    assert twin.runner == runner
    assert set(names) <= set(twin.certain)
    assert twin.text != text


@pytest.mark.parametrize(
    "text",
    [
        f"{JUPITER}class A {{ @Test @Disabled void a() {{ }} void helper() {{ }} }}",
        f"{JUPITER}@Disabled class A {{ @Nested class B {{ @Test void a() {{ }} }} }}",
        f"{TESTNG}class A {{ @Test(enabled = false) public void a() {{ }} @DataProvider void b() {{ }} }}",
        "import own.Test;\nclass A { @Test void a() { } }",
        "class A { @Test void a() { } }",
        f"{JUPITER}abstract class A {{ @Test abstract void a(); }}",
    ],
)
def test_what_is_no_test_or_does_not_run_stays_as_it_is(text: str) -> None:
    twin = rewrite("A.java", text, AT_ONCE)
    assert (twin.text, twin.certain) == (text, ())


@pytest.mark.parametrize(
    ("expected", "error", "state"),
    [
        ("IllegalArgumentException.class", True, False),
        ("own.BookingException.class", True, False),
        ("AssertionError.class", False, True),
        ("{AssertionError.class, java.io.IOException.class}", False, True),
        ("Throwable.class", False, False),
        ("{AssertionError.class, RuntimeException.class}", False, False),
    ],
)
def test_what_a_test_expects_is_not_what_its_twin_throws(expected: str, *, error: bool, state: bool) -> None:
    for head, key in ((JUNIT_4, "expected"), (TESTNG, "expectedExceptions")):
        text = f"{head}class A {{ @Test({key} = {expected}) public void a() {{ }} }}"
        for seed in range(12):
            twin = rewrite("A.java", text, Settled(Manner(at_once=False, assertion=False), seed))
            assert ("new java.lang.AssertionError(" in twin.text) is error
            assert ("new java.lang.IllegalStateException(" in twin.text) is state
            assert (") return;" in twin.text) is not (error or state)
            assert ("A", "a") in twin.certain


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        (
            "class A { @RepeatedTest(2) void a() { } }",
            "a",
            "it runs several times under names of their own",
        ),
        ("abstract class A { @Test void a() { } }", "a", "other classes inherit it"),
        ("interface A { @Test default void a() { } }", "a", "other classes inherit it"),
        ("class A { @TestFactory Object a() { return null; } }", "a", "its tests are generated"),
    ],
)
def test_a_test_that_cannot_be_promised_to_fail_under_a_name_is_named_with_the_reason(
    text: str, key: str, reason: str
) -> None:
    twin = rewrite("A.java", JUPITER + text, AT_ONCE)
    assert (twin.left_out, twin.certain) == ({key: reason}, ())
    assert twin.text != JUPITER + text
    assert rewrite("A.java", JUPITER + text, AT_ONCE, lambda titles: False).text == JUPITER + text


def test_a_text_that_cannot_be_parsed_stays_as_it_is() -> None:
    twin = rewrite("A.java", f"{JUPITER}class A {{ @Test void a() {{", AT_ONCE)
    assert twin.left_out == {"A.java": "this file's syntax is not understood"}
