"""What is known of each language, by name: whoever adds one sees here what it lacks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from astra_async.languages import LANGUAGES, Language, lacks, language_of
from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile

ROOT = Path(__file__).parents[2] / "astra_async"
IMAGE = "no image can be built for it"
NAMES = "test files are recognized by name only"
READS = "configuration files of its tools are unknown"
LOOKUP = "new files that shadow modules are not detected"
MUTATE = "an audit cannot mutate its tests"
# A language that lacks nothing has no line here, and a new one should have none.
LACKING = {
    "elixir": {IMAGE, NAMES, LOOKUP, MUTATE},
    "dart": {IMAGE, NAMES, READS, LOOKUP, MUTATE},
    "coffeescript": {IMAGE, NAMES, READS, LOOKUP, MUTATE},
    "gherkin": {IMAGE, NAMES, READS, LOOKUP, MUTATE},
}
WHOLE = [each for each in LANGUAGES if each.suffixes]
by_name = pytest.mark.parametrize("language", WHOLE, ids=lambda each: each.name)


@by_name
def test_what_a_language_lacks_stands_here_by_name(language: Language) -> None:
    assert set(lacks(language)) == LACKING.get(language.name, set())


def test_names_suffixes_and_tools_are_of_one_language_each() -> None:
    names = [each.name for each in LANGUAGES]
    suffixes = [suffix for each in LANGUAGES for suffix in each.suffixes]
    tools = [tool.name for each in LANGUAGES for tool in each.tools.programs]
    for found in (names, suffixes, tools):
        assert sorted(found) == sorted(set(found))


@by_name
def test_every_pattern_of_a_language_can_be_read_and_every_tool_that_it_names_is_known(
    language: Language,
) -> None:
    tools = language.tools
    texts = (tools.manifests, tools.everyday, tools.settings, tools.settings_files, tools.inert)
    for text in (*texts, tools.variables, language.compiled, *(each.sign for each in tools.programs)):
        re.compile(text)
    known = {tool.name for each in LANGUAGES for tool in each.tools.programs} | {"node", "python"}
    for reads in tools.reads:
        assert set(reads.by.split()) <= known
        re.compile(reads.names)


@by_name
def test_a_test_file_of_each_language_is_protected(language: Language) -> None:
    suffix = min(language.suffixes)
    named = {
        "javascript": "src/cart.test.js",
        "python": "shop/test_cart.py",
        "ruby": "checks/cart_spec.rb",
        "java": "src/test/java/CartTest.java",
        "dotnet": "Shop.Tests/Cart.cs",
        "go": "cart_test.go",
        "rust": "tests/cart.rs",
        "php": "checks/CartTest.php",
        "elixir": "checks/cart_test.exs",
        "dart": "checks/cart_test.dart",
        "gherkin": "features/cart.feature",
    }
    path = named.get(language.name, f"tests/cart.{suffix}")
    files = (ProjectFile(path=path, content=b"x\n"),)
    problem = Problem(id="p", statement="s", project="/p", test_command="run")
    policy = path_policy(problem, Project(files=files, sha256="p"))
    assert policy.refusal(path) == "protected_test"
    assert language_of(path) is language


_NAMES = re.compile(
    r"package\.json|package-lock|requirements\.txt|Gemfile|pom\.xml|build\.gradle|conftest|\.csproj|Cargo\.toml"
    r"|go\.mod|composer\.json|pytest\.ini|\.mocharc|jest\.config|Rakefile"
)


def texts_in(path: Path) -> list[str]:
    """All strings of a module but its docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_the_packages_that_ask_name_no_file_of_any_language() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for room in ("overlay", "images", "problems", "testing")
        for path in (ROOT / room).rglob("*.py")
        if any(_NAMES.search(text) for text in texts_in(path))
    }
    assert naming == set()
