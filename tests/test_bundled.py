"""Files of the bundled problems: complete, labeled, and within the rules for answers.

Other tests run the problems and check their scores.
"""

from __future__ import annotations

import csv
import json
import os
import py_compile
import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from astra_async import bundled
from astra_async.bundled import write_csv
from command_server import astra

HOME = Path(bundled.__file__).parent
IDS = bundled.problem_ids()
TEST_FILES = (
    "test/*",
    "tests/*",
    "*/tests/*",
    "*.test.js",
    "*.test.jsx",
    "*.spec.*",
    "*/tests.py",
    "test_*.py",
)
CONFIGURATION = (".*", "*/.*", "*.config.*", "hackerrank.yml", "package.json", "conftest.py", "pytest.ini")


def manifest(problem_id: str) -> dict[str, Any]:
    text = (HOME / "problems" / problem_id / "project" / "hackerrank.yml").read_text(encoding="utf-8")
    configuration: dict[str, Any] = yaml.safe_load(text)["configuration"]
    return configuration


def project_texts(problem_id: str) -> dict[str, str]:
    folder = HOME / "problems" / problem_id / "project"
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def answers(problem_id: str) -> bundled.BundledAnswers:
    known = bundled.load_answers(problem_id)
    assert known is not None
    return known


def rows() -> dict[str, dict[str, str]]:
    with bundled.bundled_problems_csv().open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_the_csv_matches_the_folders() -> None:
    assert bundled.bundled_problems_csv().read_text(encoding="utf-8") == write_csv.problems_table(), (
        "run `python -m astra_async.bundled.write_csv`"
    )


def test_every_folder_is_a_problem_and_an_unknown_id_has_no_answers() -> None:
    folders = {path.name for path in (HOME / "problems").iterdir()}
    assert folders == set(IDS) == set(rows())
    for unknown in ("", "..", "../images", "nothing"):
        assert bundled.load_answers(unknown) is None
        assert bundled.image_set_of(unknown) is None


@pytest.mark.parametrize("problem_id", IDS)
def test_the_folders_and_the_image_set_of_a_row_exist(problem_id: str) -> None:
    row = rows()[problem_id]
    assert (HOME / row["project"] / "hackerrank.yml").is_file()
    assert (HOME / row["reference"]).is_dir()
    name = row["image"].removeprefix(write_csv.IMAGE_SET_PREFIX)
    assert name == bundled.image_set_of(problem_id)
    assert (bundled.image_sets()[name] / "Dockerfile").is_file()


@pytest.mark.parametrize("problem_id", IDS)
def test_a_project_has_the_size_of_a_real_question(problem_id: str) -> None:
    row = rows()[problem_id]
    tests = json.loads(row["tests"])
    assert 8 <= len(project_texts(problem_id)) <= 20
    assert 400 <= len(row["problem_statement"]) <= 2500
    assert 5 <= len(tests) == answers(problem_id).total <= 11
    assert max(Counter(tests).values()) == 1
    assert row["main_skill"]
    assert len(json.loads(row["sub_skills"])) >= 2


@pytest.mark.parametrize("problem_id", IDS)
def test_the_manifest_scores_a_fresh_report_and_protects_the_tests(problem_id: str) -> None:
    configuration = manifest(problem_id)
    project = project_texts(problem_id)
    assert configuration["scoring"]["command"]
    assert not set(configuration["scoring"]["files"]) & set(project), "a report is committed"
    for pattern in configuration["readonly_paths"]:
        assert any(fnmatch(path, pattern) for path in project), pattern
    assert not [path for path in project if "node_modules" in path or path.endswith("-lock.json")]


@pytest.mark.parametrize("problem_id", IDS)
def test_no_answer_changes_a_protected_file(problem_id: str) -> None:
    known = answers(problem_id)
    patterns = (*manifest(problem_id)["readonly_paths"], *TEST_FILES, *CONFIGURATION)
    for files in (known.reference, *(faulty.files for faulty in known.faulty)):
        assert not [path for path in files if any(fnmatch(path, pattern) for pattern in patterns)]


@pytest.mark.parametrize("problem_id", IDS)
def test_every_answer_differs_from_the_project_and_from_other_answers(problem_id: str) -> None:
    known = answers(problem_id)
    project = project_texts(problem_id)
    all_files = [known.reference, *(faulty.files for faulty in known.faulty)]
    assert all(files for files in all_files)
    for files in all_files:
        assert not [path for path, text in files.items() if project.get(path) == text]
    outcomes = {json.dumps({**project, **files}, sort_keys=True) for files in all_files}
    assert len(outcomes) == len(all_files)


@pytest.mark.parametrize("problem_id", IDS)
def test_faulty_solutions_are_labeled_and_cover_the_range_of_scores(problem_id: str) -> None:
    known = answers(problem_id)
    assert len(known.faulty) >= 5
    for one in known.faulty:
        assert 0 <= one.expected_passed < known.total, one.name
        assert one.error_class in get_args(bundled.ErrorClass), one.name
        assert len(one.summary) > 20, one.name
    assert len({one.expected_passed for one in known.faulty}) >= 4
    assert len({one.error_class for one in known.faulty}) >= 3
    assert min(one.expected_passed for one in known.faulty) == 0


@pytest.mark.parametrize("name", sorted(bundled.image_sets()))
def test_an_image_set_pins_its_packages(name: str) -> None:
    folder = bundled.image_sets()[name]
    dockerfile = (folder / "Dockerfile").read_text(encoding="utf-8")
    assert "ARG BASE=debian:bookworm-slim\nFROM ${BASE}\n" in dockerfile
    if (folder / "package.json").exists():
        wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
        locked = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        assert {key: locked[f"node_modules/{key}"]["version"] for key in wanted} == wanted
    if (folder / "requirements.txt").exists():
        lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
        assert all(re.match(r"^(#.*|[A-Za-z0-9_.-]+==[0-9][^ ]*( --hash=.*)?)?$", line) for line in lines)


def test_all_files_of_the_answers_are_text() -> None:
    for path in HOME.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            path.read_bytes().decode("utf-8")


def test_bytecode_of_an_installed_package_is_not_part_of_an_answer(tmp_path: Path) -> None:
    source = tmp_path / "books" / "views.py"
    source.parent.mkdir()
    source.write_text("AGE = 1\r\n", encoding="utf-8", newline="")
    py_compile.compile(str(source))
    assert [path for path in tmp_path.rglob("*.pyc") if path.is_file()]
    assert dict(bundled._texts(tmp_path)) == {"books/views.py": "AGE = 1\r\n"}


@pytest.mark.parametrize("problem_id", IDS)
def test_an_edit_of_a_faulty_solution_matches_the_reference_once(problem_id: str) -> None:
    text = (HOME / "problems" / problem_id / "faulty.toml").read_text(encoding="utf-8")
    for name, entry in tomllib.loads(text).items():
        files = dict(answers(problem_id).reference)
        assert set(entry.get("left_out", ())) <= files.keys(), name
        for edit in entry.get("edits", ()):
            assert ("old" in edit) == (edit["path"] in files), name
            assert "old" not in edit or files[edit["path"]].count(edit["old"]) == 1, (name, edit["old"])
            files[edit["path"]] = files.get(edit["path"], "").replace(edit.get("old", ""), edit["new"])


def test_the_problems_have_about_the_size_of_the_papers_problems() -> None:
    """Table 1: 12 files, 6.7 tests, 718 characters of statement, 2.3 modified files, 84 lines on average."""
    said = astra("problems", env={**os.environ, "COLUMNS": "200"}).stdout

    def average(what: str) -> float:
        found = re.search(rf"Average {what}\s+([\d.,]+)", said)
        assert found, what
        return float(found[1].replace(",", ""))

    assert 10 <= average("input files") <= 14
    assert 5.5 <= average("number of test cases") <= 8
    assert 718 <= average("problem statement characters") <= 2500
    assert 1.5 <= average("modified files") <= 3
    assert 60 <= average("lines of solution code") <= 100
