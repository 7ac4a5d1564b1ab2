"""What is told of a problem before anybody is asked: patterns without effect, files that nobody is shown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from astra_async.prepare import prepare
from astra_async.types import Problem, Project, ProjectFile, Solution
from fakes import MemorySource

if TYPE_CHECKING:
    from astra_async.prepare import Prepared

FILES = {
    "app/[slug]/page.js": b"x\n",
    "src/a.js": "// d\u00e9j\u00e0 vu, et bien plus encore\n".encode("latin-1"),
    "src/b.js": b"x\n",
    "src/Form.cs": "class Form { }\n".encode("utf-16"),
    "src/data.json": b"1" * 300_000,
    "src/greek.txt": "\u03b1\u03b2\u03b3\u03b4".encode("iso8859-7"),
    "test/a.test.js": b"x\n",
}


def prepared(**fields: object) -> Prepared:
    files = tuple(ProjectFile(path=path, content=content) for path, content in FILES.items())
    source = MemorySource(
        {"p": Project(files=files, sha256="0")},
        {"r": Solution(files={"src/b.js": "y"}, repairs=("binary_left_out",))},
    )
    settings = {"test_command": "npx jest", "result_files": ("unit.xml",)} | fields
    problem = Problem(id="p", statement="s", project="p", **settings)  # type: ignore[arg-type]
    return asyncio.run(prepare(problem, source, ["xml"]))


def test_files_that_models_do_not_see_as_they_are_are_told() -> None:
    binary, large, *others = prepared().warnings
    assert (
        binary == "not shown to models: 'src/greek.txt': binary; if these are text files, save them as UTF-8"
    )
    assert large == "not shown to models: 'src/data.json': larger than 262144 bytes"
    assert [each.partition(" and written")[0] for each in others] == [
        "'src/a.js': not UTF-8; shown to models as windows-1252",
        "'src/Form.cs': not UTF-8; shown to models as UTF-16",
    ]


@pytest.mark.parametrize("column", ["readonly_paths", "hidden_paths"])
def test_patterns_that_cover_nothing_are_told_and_others_are_not(column: str) -> None:
    covering = ("app/[slug]/", "src", "**/*.test.js", r".*\.cs$")
    idle = ("src/{a,b}.js", "src/a.js src/b.js", "srcs/**", "app/[slag]")
    told = [each for each in prepared(**{column: covering + idle}).warnings if "matches the" in each]
    what = "read-only" if column == "readonly_paths" else "hidden"
    names = "'src/{a,b}.js', 'src/a.js src/b.js', 'srcs/**', 'app/[slag]'"
    assert told == [f"no project file matches the {what} pattern {names}; wildcards are *, ** and ?"]
    many = prepared(**{column: tuple(f"x{number}" for number in range(9))}).warnings
    assert any(each.endswith("'x4' and 4 more; wildcards are *, ** and ?") for each in many)


def test_a_hidden_folder_of_a_router_is_shown_to_no_model() -> None:
    item = prepared(hidden_paths=("app/[slug]",))
    assert "app/[slug]/page.js" not in item.prompts["xml"].files
    assert item.policy.refusal("app/[slug]/page.js") == "hidden"


def test_a_reference_of_which_something_was_left_out_is_told() -> None:
    assert "binary files of the reference were omitted" in prepared(reference="r").warnings


async def test_what_is_not_known_of_the_language_of_the_tests_is_told() -> None:
    files = {"lib/cart.dart": "x\n", "test/cart_test.dart": "x\n", "shop_test.go": "package shop\n"}
    project = Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in files.items()), sha256="0"
    )
    problem = Problem(id="p", statement="s", project="p", test_command="dart test")
    [told] = (await prepare(problem, MemorySource({"p": project}, {}), ["xml"])).warnings
    assert told.startswith("tests in dart: no image can be built for it; test files are recognized by")
    assert told.endswith("an audit cannot mutate its tests")


async def test_git_lfs_pointers_and_scripts_with_crlf_are_told_with_the_remedy() -> None:
    files = {
        "data.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
        "bin/test": b"#!/usr/bin/env bash\r\npytest\r\n",
        "notes.txt": b"two\r\nlines\r\n",
        "fine.sh": b"pytest\n",
    }
    project = Project(
        files=tuple(ProjectFile(path=path, content=text) for path, text in files.items()), sha256="0"
    )
    problem = Problem(id="p", statement="s", project="p", test_command="bash bin/test")
    warnings = (await prepare(problem, MemorySource({"p": project}, {}), ["xml"])).warnings
    assert "'data.bin': Git LFS pointers, not the files; run: git lfs pull" in warnings
    assert [each for each in warnings if "CRLF" in each and "'bin/test'" in each]
    assert not [each for each in warnings if "notes.txt" in each or "fine.sh" in each]


@pytest.mark.parametrize(
    ("text", "image", "wanted"),
    [
        ('[project]\nrequires-python = ">=3.12"', "", ">=3.12"),
        ('[tool.poetry.dependencies]\npython = "^4.0"', "", "^4.0"),
        ('[project]\nrequires-python = ">=3.12"', "own:1", ""),
        ('[project]\nrequires-python = ">=3.9,<3.13"', "", ""),
        ('[tool.poetry.dependencies]\npython = "^3.8"', "", ""),
        ('[project]\nrequires-python = "three"', "", ""),
        ("[project", "", ""),
    ],
)
async def test_a_python_that_the_image_lacks_is_a_warning(text: str, image: str, wanted: str) -> None:
    files = (ProjectFile(path="pyproject.toml", content=text.encode()),)
    problem = Problem(id="p", statement="s", project="p", test_command="pytest", image=image)
    source = MemorySource({"p": Project(files=files, sha256="0")}, {})
    told = [line for line in (await prepare(problem, source, ["xml"])).warnings if "requires Python" in line]
    assert [f"requires Python {wanted}, but" in line for line in told] == [True] * bool(wanted)
