"""Which sources of an answer declare what Go itself does."""

from __future__ import annotations

import pytest

from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

TESTS = """package shop

type limits struct{ max, cap int }

func TestA(t *testing.T) {
	if len (All()) != 2 || Err() != nil {
		t.Fatal("min")
	}
}
"""


def refusal(text: str, pristine: str = "package shop\n", path: str = "shop.go") -> str | None:
    texts = {"shop.go": pristine, "shop_test.go": TESTS, "go.mod": "module shop\n"}
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items())
    problem = Problem(
        id="p", statement="x", project="p", test_command="go test ./...", result_files=("go-test.json",)
    )
    return path_policy(problem, Project(files=files, sha256="s")).refusal(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "func len(any) int { return 2 }\n",
        "func len[T any](T) int { return 2 }\n",
        "func /* its */ len(any) int { return 2 }\n",
        "var nil = free\n",
        "\rvar nil = free\n",
        "var nil error\n",
        "const a, nil = 1, 2\n",
        "var a,\n\tnil = 1, 2\n",
        "type nil struct{}\n",
        "var (\n\ta = 1\n\tnil = 2\n)\n",
        "var (a = 1; nil = 2)\n",
        "var (\n\ta = f(1) +\n\t\t2 /* \n */\n\tnil = 2\n)\n",
        "var(nil = 2)\n",
        "var a = f(1); func len(any) int { return 2 }\n",
        "const open = '{'\n\nfunc len(any) int { return 2 }\n",
    ],
)
def test_what_the_tests_use_is_not_declared_anew(text: str) -> None:
    assert refusal("package shop\n\n" + text) == "shadows_module"
    assert refusal("package shop\n\n" + text, path="more.go") == "shadows_module"
    assert refusal("package shop\n\n" + text + "// more\n", pristine="package shop\n\n" + text) is None


@pytest.mark.parametrize(
    "text",
    [
        "func min(a, b int) int { return a }\nfunc close() {}\nvar copy = 1\n",  # which the tests do not use
        "func max(a, b int) int { return a }\nfunc cap() {}\n",  # names of their fields
        "type (\n\tstore interface {\n\t\tlen() int\n\t}\n\tlimits struct {\n\t\tnil int\n\t}\n)\n",
        "var (\n\tall = []int{}\n\tmost = 2 *\n\n\t\tlen(all)\n\tnone = 1 == // which\n\t\tnil\n)\n",
        "func (s Shop) len() int { return 2 }\n",
        "func All() []int {\n\tlen := 2\n\tvar nil = 3\n\treturn make([]int, len, nil)\n}\n",
        "var all = []int{\n\tlen(names),\n}\nvar names = f(\n\tnil,\n)\n",
        "// func len() int\n/* var nil = 2 */\nvar text = `\nfunc len() {}\n`\n",
    ],
)
def test_other_names_are_an_answer_s_own(text: str) -> None:
    assert refusal("package shop\n\n" + text) is None


def test_what_no_test_is_beside_is_an_answer_s_own() -> None:
    assert refusal("package other\n\nfunc len(any) int { return 2 }\n", path="other/other.go") is None


def test_it_does_not_hide_behind_a_long_comment() -> None:
    assert (
        refusal(f"package shop\n/*{'-' * 400_000}*/\nfunc len(any) int {{ return 2 }}\n") == "shadows_module"
    )


def test_a_hostile_text_costs_little() -> None:
    for text in ("type " * 70_000, "var (" * 70_000, "var a" + " ," * 150_000, "func " + " " * 300_000):
        refusal(text)
