from __future__ import annotations

import json
import random
import re

import pytest

from astra_async.integrity.canary import Canary, emptied, framework_of, passed, plant, was_seen
from astra_async.integrity.canary import python as python_falsehoods
from astra_async.integrity.canary.words import Words
from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile, TestCase, TestReport


def problem(command: str) -> Problem:
    return Problem(id="p", statement="", project="p", test_command=command, result_files=("unit.xml",))


def project(files: dict[str, str]) -> Project:
    return Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(files.items())),
        sha256="any",
    )


def package(**scripts: str) -> dict[str, str]:
    return {"package.json": json.dumps({"name": "app", "scripts": scripts})}


@pytest.mark.parametrize(
    ("command", "files", "framework"),
    [
        ("npm test", package(test="mocha --reporter mocha-junit-reporter --exit"), "mocha"),
        ("npm test", package(test="jest --ci --reporters=jest-junit"), "jest"),
        ("npm run test:ci", package(**{"test:ci": "CI=true react-scripts test --watchAll=false"}), "jest"),
        ("npm test -- --silent", package(test="vitest run"), "vitest"),
        ("npm t", package(test="nyc mocha test"), "mocha"),
        ("yarn test", package(test="vue-cli-service test:unit"), "mocha"),
        ("npm start & sleep 2; npx mocha test", package(start="node ."), "mocha"),
        ("bash bin/test", {"bin/test": "#!/bin/bash\nset -e\npython3 -m pytest tests\n"}, "pytest"),
        (". $HOME/.nvm/nvm.sh && npm test", package(test="node_modules/.bin/_mocha"), "mocha"),
        ("python3 manage.py test --noinput", {}, "django"),
        ("python3 -m pytest --junitxml=unit.xml", {}, "pytest"),
        ("python -m xmlrunner discover", {}, "unittest"),
        ("RAILS_ENV=test bin/rails db:migrate && bundle exec rspec --out unit.xml", {}, "rspec"),
        ("bin/rails test", {}, "minitest"),
        ("mvn clean test", {}, "junit"),
        ("npm test", package(test="ng test --watch=false"), None),
        ("npm test", package(test="cat unit.xml"), None),
        ("npm test", {"package.json": "{broken"}, None),
        ("npm test", package(test="npm test"), None),
    ],
)
def test_the_framework_is_found_behind_scripts(
    command: str, files: dict[str, str], framework: str | None
) -> None:
    assert framework_of(problem(command), project(files)) == framework


MOCHA_TEST = (
    "const { expect } = require('chai');\nconst shop = require('../src/shop');\n"
    "describe('Shop', () => { it('opens', () => { expect(shop.open).to.equal(true); }); });\n"
)
JS_PROJECT = {
    **package(test="mocha"),
    "src/shop.js": "exports.open = false;\n",
    "test/helpers/server.js": "module.exports = {};\n",
    "test/shop.test.js": MOCHA_TEST,
}


def planted(command: str, files: dict[str, str], seed: int = 1) -> Canary:
    whole = project(files)
    one = problem(command)
    found = plant(one, whole, path_policy(one, whole), random.Random(seed))
    assert found is not None
    return found


def test_one_file_has_a_random_name_and_every_test_file_gets_more_cases() -> None:
    canary = planted("npm test", JS_PROJECT)
    assert set(canary.files) == {"test/shop.test.js", f"test/{canary.token}.test.js"}
    within = canary.files["test/shop.test.js"].decode()
    assert MOCHA_TEST in within
    assert canary.token in within.split(MOCHA_TEST)[1]


def test_the_file_of_its_own_loads_what_the_tests_load_and_guards_it() -> None:
    canary = planted("npm test", JS_PROJECT)
    text = canary.files[f"test/{canary.token}.test.js"].decode()
    assert "const { expect } = require('chai');\n" in text
    assert 'require("../src/shop")' in text.partition("try {")[0]
    assert "require('../src/shop')" not in text  # the test's own line, which may fail


def test_no_two_canaries_are_alike() -> None:
    first, second = planted("npm test", JS_PROJECT, 1), planted("npm test", JS_PROJECT, 2)
    assert first.token != second.token
    titles = [re.findall(r'it\("([^"]+)"', text.decode()) for text in first.files.values()]
    assert all(len(each) == len(set(each)) > 5 for each in titles)
    assert first.files["test/shop.test.js"] != second.files["test/shop.test.js"]
    assert planted("npm test", JS_PROJECT, 1) == first


@pytest.mark.parametrize(
    ("command", "path", "text", "beside"),
    [
        ("npx jest", "src/__tests__/App.test.jsx", "it('x', () => { expect(1).toBe(1); });", ".test.jsx"),
        ("npx jest", "src/app.spec.ts", "test('x', () => { expect(1).toBe(1); });", ".spec.ts"),
        ("npx mocha test", "test/index.js", "it('x', () => { assert(1); });", ".js"),
        ("npx mocha test", "test/taskTest.js", "it('x', () => { assert(1); });", "Test.js"),
        ("pytest", "tests/test_a.py", "def test_a():\n    pass\n", ".py"),
        ("pytest", "tests/a_test.py", "def test_a():\n    pass\n", "_test.py"),
        ("python manage.py test", "books/tests.py", "import unittest\n", ".py"),
        ("rspec", "spec/requests/jobs_spec.rb", "RSpec.describe('Jobs') { }", "_spec.rb"),
        ("rails test", "test/models/job_test.rb", "class A < Minitest::Test\nend\n", "_test.rb"),
    ],
)
def test_the_random_name_is_one_that_the_runner_looks_for(
    command: str, path: str, text: str, beside: str
) -> None:
    canary = planted(command, {path: text, "src/shop.js": "1"})
    (own,) = set(canary.files) - {path}
    assert own.rpartition("/")[0] == path.rpartition("/")[0]
    assert own.endswith(f"{canary.token}{beside}")


def test_nothing_of_the_tests_is_left_in_emptied_files() -> None:
    whole, one = project(JS_PROJECT), problem("npm test")
    canary = emptied(one, whole, path_policy(one, whole), random.Random(1))
    assert canary is not None
    assert set(canary.files) == {"test/shop.test.js"}
    text = canary.files["test/shop.test.js"].decode()
    assert "'opens'" not in text
    assert canary.token in text


@pytest.mark.parametrize(
    ("command", "path", "text", "left", "gone"),
    [
        (
            "npx jest",
            "a.test.js",
            (
                "describe(`A`, () => { it.each([1])('sums %i', (n) => { expect(f('n', n)).toBe(1); }); });\n"
                "it('is', () => { expect(2); });\n"
            ),
            "expect(f('n', n)).toBe(1);",
            ("`A`", "sums", "'is'"),
        ),
        (
            "npx mocha test",
            "test/a.js",
            "for (const title of titles) it(title, () => { expect(1); });\nit('is', () => { expect(2); });\n",
            "it(title, () => { expect(1); });",
            ("'is'",),
        ),
        (
            "pytest",
            "tests/test_a.py",
            "@pytest.fixture()\ndef test_shop():\n    return 1\n\n@slow\ndef test_sum(shop):\n    pass\n",
            "def test_shop():\n    return 1\n",
            ("test_sum",),
        ),
        (
            "rspec",
            "spec/a_spec.rb",
            "RSpec.describe('A', type: :request) do\n  it \"sums\" do\n    get '/it'\n  end\nend\n",
            "get '/it'",
            ("'A'", "sums"),
        ),
        (
            "rails test",
            "test/a_test.rb",
            "class A < Minitest::Test\n  test 'sums' do\n  end\n\n  def test_more = assert(1)\nend\n",
            "= assert(1)",
            ("sums", "test_more"),
        ),
    ],
)
def test_emptied_tests_keep_their_bodies_and_lose_their_names(
    command: str, path: str, text: str, left: str, gone: tuple[str, ...]
) -> None:
    whole, one = project({path: text}), problem(command)
    canary = emptied(one, whole, path_policy(one, whole), random.Random(1))
    assert canary is not None
    found = canary.files[path].decode()
    assert left in found
    assert not [name for name in gone if name in found]
    assert canary.token in found


def test_no_canary_is_written_where_no_test_is_known() -> None:
    for command, files in (("npm test", package(test="mocha")), ("mvn test", JS_PROJECT)):
        whole, one = project(files), problem(command)
        assert plant(one, whole, path_policy(one, whole), random.Random(1)) is None
        assert emptied(one, whole, path_policy(one, whole), random.Random(1)) is None


@pytest.mark.parametrize("seed", range(20))
def test_every_falsehood_in_python_is_false(seed: int) -> None:
    model = "import unittest\nfrom shop import prices\n\nclass A(unittest.TestCase):\n    pass\n"
    names: dict[str, object] = {"__name__": "canary", "__package__": ""}
    exec(python_falsehoods.standalone(model, "pytest", Words(random.Random(seed))), names)
    functions = [value for name, value in names.items() if name.startswith("test_")]
    assert len(functions) > 5
    for function in functions:
        assert callable(function)
        with pytest.raises(AssertionError):
            function()


@pytest.mark.parametrize("seed", range(5))
def test_every_falsehood_of_unittest_fails(seed: int) -> None:
    import unittest

    model = "import unittest\n\nclass A(unittest.TestCase):\n    pass\n"
    names: dict[str, object] = {"__name__": "canary", "__package__": ""}
    exec(python_falsehoods.standalone(model, "django", Words(random.Random(seed))), names)
    (case,) = [
        value for value in names.values() if isinstance(value, type) and issubclass(value, unittest.TestCase)
    ]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == len(result.failures) > 10


def report(*cases: tuple[str, str, str]) -> TestReport:
    return TestReport(
        cases=tuple(
            TestCase(name=name, classname=classname, outcome=outcome)  # type: ignore[arg-type]
            for classname, name, outcome in cases
        )
    )


def test_only_its_own_cases_speak_for_a_canary() -> None:
    canary = Canary(files={}, token="qwertzuiopa")
    others = ("Shop", "opens", "passed")
    assert not was_seen(canary, report(others))
    seen = report(others, ("Shop", "reads page qwertzuiopa3", "failed"))
    assert was_seen(canary, seen)
    assert passed(canary, seen) == ()
    bent = report(
        others, ("spec.Qwertzuiopa_spec", "reads page", "passed"), ("", "x qwertzuiopa1", "skipped")
    )
    assert passed(canary, bent) == ("reads page",)


def test_a_hostile_test_file_costs_no_time() -> None:
    files = {**JS_PROJECT, "test/shop.test.js": MOCHA_TEST + "import " + "a," * 100_000 + "\n" * 1000}
    canary = planted("npm test", files)
    assert len(canary.files) == 2
