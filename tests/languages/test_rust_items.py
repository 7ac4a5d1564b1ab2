"""Tests inside of Rust's sources: found as the compiler finds them, and put back whatever an answer does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.languages.rust.items import TESTS_INSIDE, parted

TESTS = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() { assert_eq!(super::add(1, 1), 2); }\n}\n"
PRISTINE = "pub fn add(a: u32, b: u32) -> u32 {\n    todo!()\n}\n\n" + TESTS
SOLVED = "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n"


def merged(answer: str, pristine: str = PRISTINE) -> tuple[str, list[tuple[str, str]]]:
    text, dropped = TESTS_INSIDE.merged("src/lib.rs", pristine, answer)
    return text or "", [(each.path, each.reason) for each in dropped]


def test_an_answer_that_leaves_the_tests_is_taken_as_it_is() -> None:
    answer = SOLVED + "\n" + TESTS
    assert merged(answer) == (answer, [])


@pytest.mark.parametrize(
    "own",
    [
        TESTS.replace("adds()", "adds_nothing()"),
        "#[cfg(test)] mod tests {}\n",
        "#[cfg( test )]\n#[allow(dead_code)]\nmod tests { /* } */ fn f() { let _ = '}'; } }\n",
        "#[test]\nfn adds() {}\n",
        '/// Says "}".\n#[cfg(all(test, unix))]\nmod tests { const A: &str = r#"}"#; }\n',
        "#[cfg(test)]\nuse std::fmt::{self, Display};\n",
        "#[cfg(test)]\nconst A: [u8; 2] = [1, 2];\n",
        "#\u200e[test]\nfn adds() {}\n",
        "",
    ],
)
def test_tests_of_an_answers_own_are_dropped_and_the_pristine_ones_put_back(own: str) -> None:
    text, dropped = merged(SOLVED + own)
    assert text == SOLVED + "\n" * (not own) + TESTS
    assert [reason for _, reason in dropped] == ["protected_test"] * bool(own)


def test_a_new_file_keeps_none_of_its_own_tests() -> None:
    assert merged("mod a;\n" + TESTS, pristine="") == ("mod a;\n", [("src/lib.rs#tests", "own_test")])


@pytest.mark.parametrize(
    "rest",
    [
        "const A: [char; 2] = ['\\u{22__________________}', '\"'];\n",
        f'const A: &str = r{"#" * 30}"it"s"{"#" * 30};\n',
        'const A: &CStr = cr"\\";\n',
    ],
)
def test_tests_do_not_hide_behind_texts(rest: str) -> None:
    for text in (rest + SOLVED, '#!"\n' + SOLVED + rest):
        assert merged(text + TESTS.replace("adds()", "adds_nothing()")) == (
            text + TESTS,
            [("src/lib.rs#tests", "protected_test")],
        )


@pytest.mark.parametrize(
    "rest",
    [
        'fn f() -> &\'static str { "#[cfg(test)] mod x {}" }\n',
        "// #[cfg(test)]\nfn f<'a>(x: &'a str) -> char { '{' }\n",
        "/* /* #[test] */ fn g() {} */\nfn f() {}\n",
        "#[cfg(not(test))]\nfn f() {}\n",
        "#[derive(Debug)]\nstruct Test { latest: u8 }\n",
        "#![allow(dead_code)]\n//! #[cfg(test)]\nmod a { #[cfg(test)] mod inner {} }\n",
    ],
)
def test_what_only_looks_like_a_test_stays(rest: str) -> None:
    assert parted(rest) == (rest, "")


HALVES = (
    "#[cfg(not(test))]\nfn now() -> u64 { 1 }\n"
    "/// Stands still.\n#[cfg(test)]\n#[inline]\npub(crate) fn now() -> u64 { 2 }\n"
    "#[cfg(test)]\npub(crate) const DAYS: u32 = 1;\n#[cfg(not(test))]\npub(crate) const DAYS: u32 = 7;\n"
)


def test_what_tests_have_in_place_of_other_code_is_the_answers_own() -> None:
    assert merged(f"{SOLVED}{HALVES}")[0] == f"{SOLVED}{HALVES}\n{TESTS}"
    assert merged(f"{SOLVED}{HALVES}\n{TESTS}") == (f"{SOLVED}{HALVES}\n{TESTS}", [])
    assert merged(f"{SOLVED}{HALVES}", pristine="") == (f"{SOLVED}{HALVES}", [])


@pytest.mark.parametrize("kind", ["mod tests {}", "#[test]\nfn adds() {}", "use a::b;", "fn later() {}"])
def test_no_test_is_such_a_half(kind: str) -> None:
    """Nor does it help to write another half beside the project's own test code."""
    own = f"{SOLVED}#[cfg(not(test))]\n{kind}\n#[cfg(test)]\n{kind}\n#[cfg(not(test))]\nfn now() {{}}\n"
    if not kind.startswith("fn"):
        assert f"#[cfg(test)]\n{kind}" not in merged(own)[0]
    assert merged(own, pristine=f"{PRISTINE}#[cfg(test)]\nfn now() {{ panic!() }}\n") == (
        "", [("src/lib.rs", "protected_test")]
    )  # fmt: skip


@pytest.mark.parametrize(
    "module", ["mod size {{\n{}}}\n", "#[allow(dead_code)]\npub mod a {{ mod b\n{{\n{}}} }}\n"]
)
def test_tests_in_a_module_within_the_file_are_the_answers_own(module: str) -> None:
    """Such a module may have the name of a file of the project, and its tests the names of that file's."""
    answer, left = module.format(SOLVED + TESTS), module.format(SOLVED + "\n")
    assert merged(answer, pristine="") == (left, [("src/lib.rs#tests", "own_test")])
    text, _ = merged(answer)
    assert text == left + "\n" + TESTS


def test_where_the_project_has_tests_in_such_a_module_it_is_taken_as_it_is() -> None:
    pristine = f"mod size {{\n{PRISTINE}}}\n"
    answer = f"mod size {{\n{SOLVED}{TESTS}}}\n"
    assert merged(answer, pristine) == (answer, [])


def test_tests_stand_where_the_answer_has_as_many_of_its_own() -> None:
    answer = TESTS.replace("adds()", "own()") + "\n" + SOLVED
    assert merged(answer) == (TESTS + "\n" + SOLVED, [("src/lib.rs#tests", "protected_test")])


@pytest.mark.parametrize("pristine", [PRISTINE, ""])
def test_a_test_that_is_put_together_where_another_was_dropped_is_none_of_the_answers(pristine: str) -> None:
    answer = SOLVED + "# #[cfg(test)]\nuse std::fmt;\n[cfg(test)]\nmod evil {}\n\n" + TESTS
    assert merged(answer, pristine) == (
        "",
        [("src/lib.rs", "protected_test" if pristine else "own_test")],
    )


@pytest.mark.parametrize("rest", ["/// Of whom?\n\n", "fn f() {}\n// Tests:\n\n", ""])
@pytest.mark.parametrize(
    "own", ["", "#[cfg(test)]\nmod own {}\n", TESTS + TESTS.replace("mod", "mod other_")]
)
def test_an_answer_s_comments_fall_on_no_test(rest: str, own: str) -> None:
    text, _ = merged(rest + own)
    assert text.startswith(rest.rstrip("\n"))
    assert parted(text)[1] == TESTS.rstrip("\n")


ANY_SOURCE = st.lists(
    st.sampled_from(
        [
            TESTS,
            SOLVED,
            "#[cfg(test)]\nuse std::fmt;\n",
            "#",
            "[cfg(test)]",
            "///\n",
            "/*",
            "*/",
            '"',
            "{",
            "}",
            "\n",
        ]
    ),
    max_size=12,
).map("".join)


@given(ANY_SOURCE)
def test_other_tests_stand_where_the_project_s_do_and_nothing_else_changes(answer: str) -> None:
    """An audit relies on this: an answer's file is the same, except for the tests."""
    text, _ = merged(answer)
    if text:
        tried, _ = merged(text, PRISTINE.replace("2);", "3);"))
        assert parted(tried)[1].strip("\n") == TESTS.replace("2);", "3);").strip("\n")
        assert tried.replace("3);", "2);") == text


def test_attributes_at_the_end_do_not_fall_on_the_tests() -> None:
    text, _ = merged(SOLVED + "#[cfg(any())]\n")
    assert text.rstrip() == (SOLVED + TESTS).rstrip()


@given(st.text(alphabet="#[]{}()\"'/*\\\nr! cfgtest;mod", max_size=200))
def test_any_text_is_parted_without_loss(text: str) -> None:
    rest, tests = parted(text)
    assert sorted((rest + tests).replace("\n", "")) == sorted(text.replace("\n", ""))


def test_a_hostile_text_costs_little() -> None:
    for text in (
        "#[test]" * 50_000,
        "///\n" * 90_000 + "#[test]",
        "/*" * 150_000,
        "{" * 300_000,
        "r#" * 99_000,
    ):
        parted(text)
