"""Which sources of an answer stand in front of Rust's own macros."""

from __future__ import annotations

import pytest

from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

MAKES = "macro_rules! make {\n    ($name:ident) => {\n        macro_rules! $name { () => { 7 } }\n    };\n}\n"
TESTS = """#[test]
fn it() {
    assert!(f());
    assert_ne!(f(), vec![1]);
    assert_eq!(f(), 2);
    panic!();
}
"""


def refusal(text: str, pristine: str = "pub fn f() {}\n", path: str = "src/lib.rs") -> str | None:
    texts = {"src/lib.rs": pristine, "tests/it.rs": TESTS}
    files = tuple(ProjectFile(path=name, content=text.encode()) for name, text in texts.items())
    project = Project(files=files, sha256="s")
    problem = Problem(
        id="p", statement="x", project="p", test_command="cargo test", result_files=("cargo-test.txt",)
    )
    return path_policy(problem, project).refusal(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "macro_rules! assert_eq { ($($any:tt)*) => {} }\n",
        "macro_rules! r#panic { ($($any:tt)*) => {} }\n",
        "macro_rules!\u200eassert_eq { ($($any:tt)*) => {} }\n",
        "use crate::quiet as assert_ne;\n",
        "use crate::{quiet as vec, loud};\n",
        "#![no_implicit_prelude]\n" + MAKES + "make!(assert_eq);\n",
        "#![cfg_attr(all(), no_implicit_prelude)]\n",
        "mod quiet {\n    renamed!(nothing assert_eq);\n}\nuse quiet::assert_eq;\n",
        "use quiet::{other, r#assert};\n",
        "skipped!{'x'br##\"a\"}\nmacro_rules! assert { ($($any:tt)*) => {} }\n",
        'skipped!{"x"r#"a"}\nmacro_rules! assert { ($($any:tt)*) => {} }\n',
        'skipped!{\'r"\\""}\nmacro_rules! assert { ($($any:tt)*) => {} }\n',
    ],
)
def test_what_takes_the_place_of_rust_s_assertions_is_refused(text: str) -> None:
    assert refusal(text) == "shadows_module"
    assert refusal(text, pristine=text + "// as it was\n") is None


@pytest.mark.parametrize(
    "text",
    [
        MAKES + "make!(days);\n",
        MAKES + "make!(assert_eq);\n",  # which the compiler refuses
        "use std::panic;\nuse std::fmt::{self, format};\nuse crate::{matches, vec};\n",
        "use crate::code_of as format;\nmacro_rules! unimplemented { () => {} }\n",  # which no test uses
        "use std::io;\nfn f() { assert_eq!(1, 1); assert!(true); }\n",
        "// use quiet::assert_eq;\n/* #![no_implicit_prelude] */\n",
        'const TEXT: &str = "use quiet::assert_eq;";\n',
        "#[cfg(test)]\nmod tests {\n    use pretty_assertions::assert_eq;\n}\n",
    ],
)
def test_other_macros_and_imports_are_an_answer_s_own(text: str) -> None:
    assert refusal(text) is None


OWN_TESTS = (
    "mod days {\n    #[cfg(test)]\n    mod tests {\n        use pretty_assertions::assert_eq;\n    }\n}\n"
)


def test_an_answer_s_tests_in_modules_within_a_file_are_asked_where_they_are_its_own_matter() -> None:
    """They are dropped, unless the project's file has such tests itself."""
    assert refusal(OWN_TESTS) is None
    assert refusal(OWN_TESTS, path="src/days.rs") is None
    assert (
        refusal(OWN_TESTS, pristine=OWN_TESTS.replace("pretty_assertions::assert_eq", "super::*")) is not None
    )
    assert refusal(OWN_TESTS, pristine=OWN_TESTS) is None


@pytest.mark.parametrize("path", ["src/days.in", "notes.md", "src/DAYS.RS"])
def test_a_module_may_have_any_name(path: str) -> None:
    assert (
        refusal("#[cfg(test)]\nmacro_rules! assert_eq { ($($any:tt)*) => {} }\n", path=path)
        == "shadows_module"
    )


def test_prose_and_other_languages_use_what_they_like() -> None:
    assert refusal("Please use assert, and don't panic.\n", path="notes.md") is None
    assert refusal("use crate::quiet::assert_eq;\n", path="notes.md") == "shadows_module"


def test_it_does_not_hide_behind_a_long_comment() -> None:
    assert (
        refusal(f"/*{'-' * 400_000}*/\nmacro_rules! assert {{ ($($any:tt)*) => {{}} }}\n") == "shadows_module"
    )


def test_a_hostile_text_costs_little() -> None:
    for text in ("use a " * 65_000, "use a::{as " * 36_000, "macro_rules " * 33_000):
        refusal(text)
