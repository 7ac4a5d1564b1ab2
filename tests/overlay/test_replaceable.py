"""A problem whose tests nobody knows to be tests is no measure: an answer may write them anew."""

from __future__ import annotations

import pytest

from astra_async.overlay import integrate, path_policy, replaceable_tests
from astra_async.types import ExpectedTest, Integrated, Problem, Project, ProjectFile, Solution

PERL = {
    "lib/Shop.pm": "package Shop;\nsub total { 0 }\n1;\n",
    "t/shop.t": "use Test::More;\nis(total(1, 2), 3, 'adds two');\nis(total(), 0, 'empty is 0');\n",
}
LUA = {
    "shop.lua": "return { total = 0 }\n",
    "shop_spec.lua": "describe('Shop', function()\n  it('adds two prices', function() end)\nend)\n",
}
RUST = {
    "src/lib.rs": "fn total() {}\nmod inner {\n#[cfg(test)]\nmod tests {\n  #[test]\n  fn adds() {}\n}\n}\n",
    "tests/slow.rs": "#[test]\nfn survives_many() {}\n",
}
GUARDED = {**LUA, "check.sh": "busted -o junit\n"}
NODE = {
    "package.json": '{"scripts": {"test": "jest"}}',
    "src/shop.js": "// GET /tasks\nmodule.exports = { total: 0 };\n",
    "src/shop.test.js": "describe('Shop', () => { it('adds two', () => expect(1).toBe(1)) });\n",
}
NAMED = ExpectedTest(name="adds two", file="t/shop.t")


def said(files: dict[str, str], names: tuple[str, ...], **fields: object) -> str:
    entries = tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(files.items()))
    problem = Problem(id="p", statement="s", project="/p", **fields)  # type: ignore[arg-type]
    policy = path_policy(problem, Project(files=entries, sha256="0"))
    return " ".join(replaceable_tests(policy, [ExpectedTest(name=name) for name in names]))


@pytest.mark.parametrize(
    ("files", "command", "names"),
    [
        (PERL, "prove t", ()),
        (PERL, "prove t", ("adds two", "empty is 0")),
        (LUA, "busted -o junit", ("Shop adds two prices",)),
    ],
)
def test_where_no_file_is_protected_the_tests_are_open(
    files: dict[str, str], command: str, names: tuple[str, ...]
) -> None:
    found = said(files, names, test_command=command)
    assert found.startswith("no file is protected")
    assert "readonly_paths" in found


@pytest.mark.parametrize(
    ("files", "command", "names", "told"),
    [
        (GUARDED, "bash check.sh", ("Shop adds two prices",), "1 of 1 tests, in shop_spec.lua"),
        (RUST, "cargo nextest run", ("tests::adds", "survives_many"), "1 of 2 tests, in src/lib.rs"),
        ({**PERL, "check.sh": "prove t"}, "sh check.sh", ("adds two", "other"), "1 of 2 tests, in t/shop.t"),
        ({**PERL, **NODE}, "prove t; npm test", ("adds two", "empty is 0"), "1 of 2 tests, in t/shop.t"),
    ],
)
def test_what_is_protected_has_to_hold_the_tests(
    files: dict[str, str], command: str, names: tuple[str, ...], told: str
) -> None:
    found = said(files, names, test_command=command)
    assert told in found
    assert "readonly_paths" in found


@pytest.mark.parametrize(
    ("files", "names", "fields"),
    [
        (PERL, ("adds two",), {"test_command": "prove t", "readonly_paths": ("t/",)}),
        (
            PERL,
            ("adds two",),
            {"test_command": "prove t", "tests": (ExpectedTest(name="a", file="t/shop.t"),)},
        ),
        (
            GUARDED,
            ("Shop adds two prices",),
            {"test_command": "sh check.sh", "readonly_paths": ("*_spec.lua",)},
        ),
        ({"lib/Shop.pm": ""}, ("adds two",), {"test_command": "prove t", "readonly_paths": ("t/",)}),
        (NODE, ("Shop adds two",), {"test_command": "npm test"}),
        (NODE, ("Shop GET /tasks", "Shop adds two", "Shop total 3"), {"test_command": "npm test"}),
        (NODE, ("put together", "while [1] it ran"), {"test_command": "npm test"}),
    ],
)
def test_protected_tests_are_nothing_to_say(
    files: dict[str, str], names: tuple[str, ...], fields: dict[str, object]
) -> None:
    assert said(files, names, **fields) == ""


def test_read_only_paths_that_miss_the_tests_are_told() -> None:
    found = said(PERL, ("adds two", "empty is 0"), test_command="prove t", readonly_paths=("tests/", "lib/"))
    assert "2 of 2 tests, in t/shop.t" in found


@pytest.mark.parametrize("files", [PERL, LUA])
def test_what_it_warns_of_is_so(files: dict[str, str]) -> None:
    entries = tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(files.items()))
    project = Project(files=entries, sha256="0")
    problem = Problem(id="p", statement="s", project="/p", test_command="prove t || busted")
    laid_over = integrate(
        project, Solution(files=dict.fromkeys(files, "replaced")), path_policy(problem, project)
    )
    assert isinstance(laid_over, Integrated)
    assert laid_over.files.keys() == files.keys()
