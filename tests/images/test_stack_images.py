"""From nothing but a zip to graded answers, on a real engine and real package registries."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from astra_async.testing.sandbox.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [pytest.mark.docker, pytest.mark.timeout(2400)]  # it makes images from public registries

NODE = {
    "hackerrank.yml": """version: 1.0
configuration:
  scoring:
    command: bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm install && npm test
    files:
      - unit.xml
  ide_config:
    project_menu:
      install: bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm install
""",
    "bin/env_setup": """#!/usr/bin/env bash
curl -o- https://raw.githubusercontent.com/nvm-sh/nvm/v0.35.3/install.sh | bash
export NVM_DIR="$HOME/.nvm"
[ -s "$NVM_DIR/nvm.sh" ] && \\. "$NVM_DIR/nvm.sh"
nvm install v18
nvm use v18
exit 0
""",
    "package.json": json.dumps(
        {
            "name": "sums",
            "scripts": {
                "pretest": "npm install",
                "test": "mocha --reporter mocha-junit-reporter --reporter-options mochaFile=unit.xml test",
            },
            "devDependencies": {"mocha": "10.8.2", "mocha-junit-reporter": "2.2.1"},
        }
    ),
    "src/sum.js": "module.exports = (a, b) => a - b;\n",
    "test/sum.js": """const assert = require('assert');
const sum = require('../src/sum');
describe('sum', () => {
  it('adds', () => assert.strictEqual(sum(1, 2), 3));
  it('keeps zero', () => assert.strictEqual(sum(0, 0), 0));
});
""",
}
PYTHON = {
    "hackerrank.yml": """version: 1.0
configuration:
  scoring:
    command: pip3 install -r requirements.txt && python3 -m xmlrunner discover -o reports
    files:
      - reports/*.xml
""",
    "requirements.txt": "unittest-xml-reporting==3.2.0\n",
    "sums.py": "def add(a, b):\n    return a - b\n",
    "test_sums.py": """import unittest
from sums import add

class SumTest(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
""",
}
BROKEN = {
    **NODE,
    "package.json": json.dumps({"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "999.0.0"}}),
}
REFERENCES = {
    "node": {
        "src/sum.js": "module.exports = (a, b) => a + b;\n",
        # A dependency that the image cannot have: the answer's tests run all the same.
        "package.json": NODE["package.json"].replace(
            '"devDependencies"', '"dependencies": {"left-pad": "1.3.0"}, "devDependencies"'
        ),
    },
    "python": {"sums.py": "def add(a, b):\n    return a + b\n"},
}


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A CSV of three zips that name no image; the images made for them are removed at the end."""
    folder = tmp_path_factory.mktemp("problems")
    rows = []
    for name, files in (("node", NODE), ("python", PYTHON), ("broken", BROKEN)):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        reference = folder / f"{name}.json"
        reference.write_text(json.dumps(REFERENCES.get(name, {"src/sum.js": "// nothing\n"})))
        rows.append(
            {"id": name, "problem_statement": "Add.", "project": f"{name}.zip", "reference": reference.name}
        )
    with (folder / "problems.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    yield folder / "problems.csv"
    made = (folder / "made").read_text().split() if (folder / "made").exists() else []
    asyncio.run(removed(made))


async def removed(images: list[str]) -> None:
    async with await Engine.open() as engine:
        for image in images:
            await engine.remove_image(image)
            await engine.remove_image(image.removesuffix("-ready"))


def astra(problems: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "astra_async", *arguments, "--problems", str(problems)],
        env={**os.environ, "ASTRA_CACHE": str(problems.parent / "cache")},
        cwd=problems.parent,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )


@pytest.fixture(scope="module")
def validated(problems: Path) -> Mapping[str, Any]:
    """What `astra validate` says of the three problems, by id."""
    done = astra(problems, "validate", "--json", "v.json")
    found = {each["problem_id"]: each for each in json.loads((problems.parent / "v.json").read_text())}
    images = [each["image"] for each in found.values() if each["image"]]
    (problems.parent / "made").write_text(" ".join(images))
    assert done.returncode == 1, done.stderr  # because of the broken one
    return found


def passed(found: Mapping[str, Any], problem_id: str) -> dict[str, list[int]]:
    return {trial["name"]: trial["passed"] for trial in found[problem_id]["tried"]}


def described(images: list[str]) -> str:
    """Which images these names stand for, and when they were made."""
    command = ["docker", "image", "inspect", "-f", "{{.Id}} {{.Created}}", *images]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.first(problem=lambda problem_id: problem_id)
@pytest.mark.parametrize("problem_id", ["node", "python"])
def test_a_zip_alone_is_enough_to_grade_its_reference(validated: Mapping[str, Any], problem_id: str) -> None:
    assert validated[problem_id]["reasons"] == []
    assert validated[problem_id]["total"] == 2
    assert passed(validated, problem_id) == {"untouched": [1], "reference": [2]}


def test_commands_that_install_do_not_hang_or_fail_without_a_network(validated: Mapping[str, Any]) -> None:
    # env_setup calls curl and nvm, command and hook call npm install, the answer adds a package.
    reference = next(trial for trial in validated["node"]["tried"] if trial["name"] == "reference")
    assert reference["passed"] == [2]
    assert max(reference["seconds"]) < 250


def test_dependencies_that_are_not_to_be_had_are_told_and_stop_nobody_else(
    validated: Mapping[str, Any],
) -> None:
    (reason,) = validated["broken"]["reasons"]
    assert "cannot be installed" in reason
    assert validated["broken"]["image"] == ""
    output = unquote(Path(reason.partition("Full output: ")[2].partition(". Remedy")[0]).name)
    assert output.startswith("astra/")


def test_an_image_that_failed_is_not_tried_again_until_it_is_asked_for(
    problems: Path, validated: Mapping[str, Any]
) -> None:
    assert validated["broken"]["reasons"]
    again = astra(problems, "images", "build", "--only", "broken")
    assert again.returncode == 1
    assert "Installing" not in again.stderr
    assert again.stderr.count("cannot be installed") == 1
    assert "--retry-images" in again.stderr
    retried = astra(problems, "images", "build", "--only", "broken", "--retry-images")
    assert retried.returncode == 1
    assert "Installing" in retried.stderr
    assert "mocha@999.0.0" in retried.stderr


def test_the_second_time_nothing_is_built(problems: Path, validated: Mapping[str, Any]) -> None:
    images = [validated[name]["image"] for name in ("node", "python")]
    before = described(images)
    done = astra(problems, "images", "build", "--only", "node", "--only", "python")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert all(image in done.stdout for image in images)
    assert described(images) == before


def test_an_image_holds_nothing_of_the_project_but_its_modules(validated: Mapping[str, Any]) -> None:
    image = validated["node"]["image"]
    command = ["docker", "run", "--rm", "--network", "none", image, "ls", "-A", "/projects/challenge"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["node_modules"]
