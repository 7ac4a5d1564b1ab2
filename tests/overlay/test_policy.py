"""What an answer may change: every known attack file beside honest files that must not be lost."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.overlay import REFUSALS, path_policy
from astra_async.types import ExpectedTest, Problem, Project, ProjectFile

if TYPE_CHECKING:
    from astra_async.overlay import PathPolicy

JS_TEST = "require('./test-server');\ndescribe('a', () => { it('works', () => expect(1).to.equal(1)); });\n"
PY_TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"

NODE = {
    "hackerrank.yml": "version: 1.0\n",
    "package.json": '{"scripts": {"test": "bash bin/run.sh && mocha -r ./config/register.js"}}\n',
    "bin/run.sh": "echo\n",
    "bin/www": "#!/usr/bin/env node\n",
    "config/register.js": "x\n",
    ".mocharc.json": '{"require": ["./src/prepare.js"]}\n',
    "src/prepare.js": "global.x = 1;\n",
    "src/app.js": "module.exports = require('./test-data');\n",
    "src/models/product.js": "x\n",
    "src/utils/regex.js": "module.exports = s => /x/.test(s);\n",
    "routes/test.js": "router.get('/tests');\n",
    "checks/api.js": JS_TEST,
    "checks/test-server.js": "boot\n",
    "src/test-data.js": "module.exports = [];\n",
    "src/latest.js": "module.exports = 1;\n",
    "src/features/cart/cart.js": "x\n",
    "src/features/cart/cart.test.js": "const a = require('../../latest');\n",
    "test/api.spec.js": JS_TEST,
    "test/data.json": "{}\n",
    "public/index.html": "<html></html>\n",
    "tasks/solution.py": "x\n",
}
DJANGO = {
    "manage.py": "x\n",
    "library/settings.py": "x\n",
    "library/urls.py": "x\n",
    "library/__init__.py": "",
    "books/__init__.py": "",
    "books/models.py": "x\n",
    "books/tests.py": PY_TEST,
    "books/migrations/__init__.py": "",
    "requirements.txt": "django\n",
}
ANGULAR = {
    "angular.json": "{}",
    "package.json": "{}",
    "karma.conf.js": "x",
    "tsconfig.json": "{}",
    "src/test.ts": "import 'zone.js/testing';\n",
    "src/main.ts": "x",
    "src/polyfills.ts": "x",
    "src/app/app.module.ts": "x",
    "src/app/quiz/quiz.component.ts": "x",
    "src/app/quiz/quiz.component.spec.ts": JS_TEST,
}
JAVA = {
    "pom.xml": "<project/>",
    "src/main/java/com/hr/App.java": "class App {}\n",
    "src/main/resources/application.properties": "x=1\n",
    "src/test/java/com/hr/AppTest.java": "import org.junit.Test;\n",
}
PYTEST = {
    "requirements.txt": "pytest\nflask\n",
    "shop/__init__.py": "",
    "shop/prices.py": "x\n",
    "tests/test_prices.py": PY_TEST,
}
JEST = {
    "package.json": '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "^29.0.0"}}',
    "src/App.jsx": "x",
    "src/api.js": "x",
    "src/__tests__/App.test.jsx": "jest.mock('../api');\n" + JS_TEST,
}
VITEST = {
    "package.json": '{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "3", "svgo": "3"}}',
    "src/App.jsx": "x",
    "tests/App.test.jsx": JS_TEST,
}
RAILS = {
    "Gemfile": "gem 'rails'\n",
    "Rakefile": "x\n",
    "config/routes.rb": "x\n",
    "config/environments/test.rb": "x\n",
    "config/environments/production.rb": "x\n",
    "app/models/user.rb": "x\n",
    "spec/models/user_spec.rb": "RSpec.describe User do\nend\n",
}


def project_of(files: dict[str, str], links: dict[str, str] | None = None) -> Project:
    entries = [ProjectFile(path=path, content=text.encode()) for path, text in files.items()]
    entries += [ProjectFile(path=path, link=target) for path, target in (links or {}).items()]
    entries.sort(key=lambda file: file.path)
    return Project(files=tuple(entries), sha256=hashlib.sha256(repr(entries).encode()).hexdigest())


def policy_of(files: dict[str, str], links: dict[str, str] | None = None, **fields: object) -> PathPolicy:
    settings = {"test_command": "npm test", "result_files": ("unit.xml",)} | fields
    problem = Problem(id="p", statement="s", project="/p", **settings)  # type: ignore[arg-type]
    return path_policy(problem, project_of(files, links))


NODE_ATTACKS = {
    "/etc/passwd": "absolute",
    "C:/x.js": "absolute",
    "../outside.js": "outside",
    "~/.npmrc": "outside",
    "src/\x00.js": "bad_name",
    "src/a\u202e.js": "bad_name",
    "src//a.js": "bad_name",
    "a/" * 40 + "x.js": "too_long",
    "src/" + "a" * 300 + ".js": "too_long",
    ".git/hooks/pre-commit": "version_control",
    "node_modules/chai/index.js": "dependency_folder",
    "src/node_modules/chai/index.js": "dependency_folder",
    "hackerrank.yml": "manifest",
    ".mocharc.json": "dotfile",
    ".mocharc.yml": "dotfile",
    ".npmrc": "dotfile",
    ".babelrc": "dotfile",
    "test/api.spec.js": "protected_test",
    "test/new.js": "protected_test",
    "test/data.json": "protected_test",
    "checks/api.js": "protected_test",
    "checks/test-server.js": "protected_test",
    "bin/run.sh": "runner_configuration",
    "config/register.js": "runner_configuration",
    "src/prepare.js": "runner_configuration",
    "unit.xml": "report_file",
    "package-lock.json": "build_configuration",
    ".foorc": "dotfile",
    "src": "conflicts_with_folder",
    "src/app.js/x.js": "conflicts_with_file",
    "checks/package.json": "build_configuration",
    "src/prepare.ts": "shadows_protected",
    "config/register": "shadows_protected",
    "src/app.test.js.snap": "protected_test",
    "addon.node": "compiled",
}


@pytest.mark.parametrize("path", NODE_ATTACKS)
def test_an_attack_on_a_node_project_is_refused_by_its_rule(path: str) -> None:
    reason = policy_of(NODE).refusal(path)
    assert reason == NODE_ATTACKS[path]
    assert reason in REFUSALS


@pytest.mark.parametrize(
    "path",
    [
        "src/app.js",
        "src/models/product.js",
        "src/models/order.js",
        "src/services/latest.js",
        "src/utils/test-helpers.js",
        "src/utils/regex.js",
        "src/components/contest/Contest.jsx",
        "src/config/db.config.js",
        "db.config.js",
        "routes/test.js",
        "models/test.js",
        "bin/www",
        "public/index.html",
        "package.json",
        "server.js",
        "swagger.json",
        "openapi.spec.json",
        "middleware/validate.js",
        ".env",
        ".env.example",
        "README.md",
        "Dockerfile",
        "src/assets/logo.svg",
        "views/list.ejs",
        "db/schema.sql",
        "src/inspect.js",
        "src/latest.js",
        "latest.js",
        "src/test-data.js",
        "src/features/cart/cart.js",
        "src/features/cart/total.js",
        "src/models/parcel.js",
        "server/express.js",
        "src/data/project.json",
        "uploads/.gitkeep",
        "src/test/Quiz.jsx",
        "client/package.json",
        "config/jest.js",
        "jest.config.js",
        "foo.config.js",
        "ecosystem.config.js",
        "validation.config.js",
        "foorc.json",
        "chai.js",
        "src/chai/index.js",
        "src/__mocks__/companies.js",
        "react/index.js",
        "x.weird",
        "src/noext",
        "lib/expect.js",
        "src/data/global.json",
        "public/My Logo.svg",
        "assets/logo.png",
        ".github/workflows/ci.yml",
        ".prettierrc",
    ],
)
def test_an_honest_change_of_a_node_project_is_allowed(path: str) -> None:
    assert policy_of(NODE).refusal(path) is None


DJANGO_ATTACKS = {
    "pytest.py": "shadows_module",
    "_pytest/__init__.py": "shadows_module",
    "json.py": "shadows_module",
    "json/__init__.py": "shadows_module",
    "unittest/case.py": "shadows_module",
    "django/__init__.py": "shadows_module",
    "django/test.py": "shadows_module",
    "books/tests/__init__.py": "shadows_protected",
    "sitecustomize.py": "runner_configuration",
    "usercustomize.py": "runner_configuration",
    "evil.pth": "plugin_registration",
    "evil.egg-info/entry_points.txt": "plugin_registration",
    "evil-1.0.dist-info/entry_points.txt": "plugin_registration",
    "__pycache__/app.cpython-311.pyc": "compiled",
    "books/__pycache__/models.cpython-311.pyc": "compiled",
    "books/tests.py": "protected_test",
    "manage.py": "runner_configuration",
    "books/management/commands/test.py": "runner_configuration",
    "venv/lib/x.py": "dependency_folder",
    ".coveragerc": "dotfile",
}


@pytest.mark.parametrize("path", DJANGO_ATTACKS)
def test_an_attack_on_a_django_project_is_refused_by_its_rule(path: str) -> None:
    policy = policy_of(DJANGO, test_command="python3 manage.py test")
    assert policy.refusal(path) == DJANGO_ATTACKS[path]


@pytest.mark.parametrize(
    "path",
    [
        "library/settings.py",
        "library/urls.py",
        "books/models.py",
        "books/serializers.py",
        "books/types.py",
        "books/migrations/0002_more.py",
        "books/management/commands/load.py",
        "books/templates/books/list.html",
        "requirements.txt",
        "authors/views.py",
        "profile/models.py",
        "utils.py",
        "tasks/test_data.py",
        "src/xmlrunner.py",
        "pyproject.toml",
        "statistics_app/views.py",
        "books/json.py",
        "books/tests/notes.md",
    ],
)
def test_an_honest_change_of_a_django_project_is_allowed(path: str) -> None:
    assert policy_of(DJANGO, test_command="python3 manage.py test").refusal(path) is None


def test_requirements_are_protected_where_the_test_command_installs_them() -> None:
    policy = policy_of(DJANGO, test_command="pip install -r requirements.txt && python manage.py test")
    assert policy.refusal("requirements.txt") == "build_configuration"


@pytest.mark.parametrize(
    ("files", "path", "reason"),
    [
        (ANGULAR, "angular.json", "build_configuration"),
        (ANGULAR, "tsconfig.spec.json", "build_configuration"),
        (ANGULAR, "src/test.ts", "protected_test"),
        (ANGULAR, "karma.conf.js", "runner_configuration"),
        (ANGULAR, "src/app/quiz/quiz.component.spec.ts", "protected_test"),
        (PYTEST, "conftest.py", "runner_configuration"),
        (PYTEST, "shop/conftest.py", "runner_configuration"),
        (PYTEST, "pytest.ini", "runner_configuration"),
        (PYTEST, "pytest.toml", "runner_configuration"),
        (PYTEST, "tox.ini", "runner_configuration"),
        (PYTEST, "setup.cfg", "runner_configuration"),
        (PYTEST, "pyproject.toml", "runner_configuration"),
        (PYTEST, "setup.py", "build_configuration"),
        (JEST, "jest.config.js", "runner_configuration"),
        (JEST, "JEST.config.json", "runner_configuration"),
        (JEST, "junitProperties.js", "runner_configuration"),
        (JEST, "babel.config.js", "build_configuration"),
        (JEST, "src/babel.config.json", "build_configuration"),
        (JEST, "tsconfig.json", "build_configuration"),
        (JEST, "__mocks__/lodash.js", "shadows_module"),
        (JEST, "src/__mocks__/@testing-library/react.js", "shadows_module"),
        (JEST, "src/__mocks__/api.js", "shadows_protected"),
        (JEST, "src/__tests__/more.js", "protected_test"),
        (VITEST, "vitest.config.ts", "runner_configuration"),
        (VITEST, "vitest.workspace.js", "runner_configuration"),
        (VITEST, "vite.config.ts", "build_configuration"),
        (VITEST, "postcss.config.cjs", "build_configuration"),
        (VITEST, "svgo.config.js", "build_configuration"),
        (JAVA, "pom.xml", "build_configuration"),
        (JAVA, "src/test/java/com/hr/AppTest.java", "protected_test"),
        (JAVA, "src/test/resources/x.properties", "protected_test"),
        (JAVA, "src/main/java/mockito-extensions/x", "plugin_registration"),
        (JAVA, "src/main/java/A -proc:none @opts.java", "tool_argument"),
        (JAVA, "src/main/java/-A.java", "tool_argument"),
        (JAVA, "src/main/java/@args.java", "tool_argument"),
        (JAVA, "src/main/resources/META-INF/services/org.junit.Listener", "plugin_registration"),
        (JAVA, "src/main/resources/junit-platform.properties", "runner_configuration"),
        (JAVA, "target/test-classes/com/hr/AppTest.class", "compiled"),
        (JAVA, ".mvn/jvm.config", "dotfile"),
        (RAILS, "Gemfile", "build_configuration"),
        (RAILS, "Rakefile", "runner_configuration"),
        (RAILS, "rakelib/test.rake", "runner_configuration"),
        (RAILS, ".rspec", "dotfile"),
        (RAILS, "spec/rails_helper.rb", "protected_test"),
        (RAILS, "config/environments/test.rb", "runner_configuration"),
        (RAILS, "lib/minitest/evil_plugin.rb", "shadows_module"),
        (RAILS, "app/models/minitest/evil_plugin.rb", "shadows_module"),
        (RAILS, "lib/rubygems_plugin.rb", "shadows_module"),
        (RAILS, "lib/json.rb", "shadows_module"),
    ],
)
def test_other_frameworks_are_protected(files: dict[str, str], path: str, reason: str) -> None:
    assert policy_of(files).refusal(path) == reason


@pytest.mark.parametrize(
    ("files", "path"),
    [
        (ANGULAR, "src/polyfills.ts"),
        (ANGULAR, "src/app/app.config.ts"),
        (ANGULAR, "src/app/test/test.component.ts"),
        (ANGULAR, "src/app/quiz/test-list/test-list.component.ts"),
        (ANGULAR, "src/environments/environment.ts"),
        (ANGULAR, "src/styles.scss"),
        (JAVA, "src/main/java/com/hr/TestController.java"),
        (JAVA, "src/main/java/com/hr/model/LatestTest.java"),
        (JAVA, "src/main/resources/application.properties"),
        (JAVA, "src/main/resources/META-INF/persistence.xml"),
        (RAILS, "config/routes.rb"),
        (RAILS, "config/initializers/cors.rb"),
        (RAILS, "config/environments/production.rb"),
        (RAILS, "db/migrate/20240101_add.rb"),
        (RAILS, "lib/tasks/load.rake"),
        (RAILS, "app/models/set.rb"),
        (RAILS, "app/helpers/spec_helper.rb"),
        (JAVA, "src/main/java/com/hr/util/Assert.java"),
        (JAVA, "src/main/resources/META-INF/services/com.hr.Plugin"),
        (ANGULAR, "src/environments/environment.test.ts"),
        (JEST, "src/__mocks__/companies.js"),
        (JEST, "config/jest.js"),
        (JEST, "src/__fixtures__/companies.js"),
        (JEST, "src/locales/global.json"),
        (PYTEST, "game/setup.py"),
        (PYTEST, "shop/types.py"),
        (VITEST, "src/__mocks__/companies.js"),
        (VITEST, "ecosystem.config.js"),
        (VITEST, "svgo.md"),
        (RAILS, "app/views/users/index.html.erb"),
    ],
)
def test_honest_changes_in_other_frameworks_are_allowed(files: dict[str, str], path: str) -> None:
    assert policy_of(files).refusal(path) is None


@pytest.mark.parametrize(
    ("pattern", "path", "is_protected"),
    [
        ("src/App.js", "src/App.js", True),
        ("src/App.js", "nested/src/App.js", False),
        ("src", "src/deep/x.js", True),
        ("src/", "src/deep/x.js", True),
        ("./src/x.js", "src/x.js", True),
        ("src/*", "src/x.js", True),
        ("src/*", "src/deep/x.js", True),
        ("src/**", "src/deep/x.js", True),
        ("**/*.html", "public/index.html", True),
        ("*.html", "public/index.html", True),
        (r".*\.Checks\.js$", "src/Login.Checks.js", True),
        (r".*\.Checks\.js$", "src/Login.js", False),
        ("^src/.*", "src/x.js", True),
        ("src/[id].js", "src/[id].js", True),
        ("**", "src/x.js", False),
        ("*", "src/x.js", False),
        (".*", "src/x.js", False),
        ("(a+)+$", "src/x.js", False),
        ("", "src/x.js", False),
    ],
)
def test_read_only_paths_are_read_in_all_their_notations(
    pattern: str, path: str, *, is_protected: bool
) -> None:
    reason = policy_of(NODE, readonly_paths=(pattern,)).refusal(path)
    assert reason == ("read_only" if is_protected else None)


def test_hidden_files_are_refused_even_where_the_project_lacks_them() -> None:
    assert policy_of(NODE, hidden_paths=("checks/hidden/*",)).refusal("checks/hidden/a.js") == "hidden"


def test_a_file_that_an_expected_test_names_is_a_test() -> None:
    policy = policy_of(NODE, tests=(ExpectedTest(name="a", file="src/app.js"),))
    assert policy.refusal("src/app.js") == "protected_test"


def test_result_globs_count_from_the_root() -> None:
    policy = policy_of(NODE, result_files=("*.xml", "target/reports/TEST-*.xml"))
    assert policy.refusal("report.xml") == "report_file"
    assert policy.refusal("target/reports/TEST-a.xml") == "report_file"
    assert policy.refusal("src/mapper.xml") is None


def test_features_of_an_application_are_no_tests_but_those_of_cucumber_are() -> None:
    assert policy_of(NODE).refusal("features/cart.js") is None
    policy = policy_of({**NODE, "features/shop.feature": "Feature: shop\n"})
    assert policy.refusal("features/support/env.js") == "protected_test"


def test_files_that_the_runners_settings_load_are_protected() -> None:
    config = "export default { test: { setupFiles: ['./src/prepare-dom.js'] } };\n"
    policy = policy_of({**NODE, "vite.config.js": config, "src/prepare-dom.js": "x"})
    assert policy.refusal("src/prepare-dom.js") == "runner_configuration"


def test_settings_that_the_test_script_names_are_protected() -> None:
    script = (
        "mocha --reporter mocha-multi-reporters --reporter-options configFile=config.json & node server.js"
    )
    package = json.dumps({"scripts": {"test": script}})
    policy = policy_of({"package.json": package, "config.json": "{}", "server.js": "x", "db.json": "[]"})
    assert policy.refusal("config.json") == "runner_configuration"
    assert policy.refusal("server.js") is None
    assert policy.refusal("db.json") is None


RUBY_SPEC = "describe Shop do\n  it 'adds' do\n    expect(Shop.new.add(1, 1)).to eq 2\n  end\nend\n"
NAMED_TESTS = {
    "spec/shop_spec.rb": RUBY_SPEC,
    "checks/cart_spec.rb": RUBY_SPEC,
    "checks/settings_test.rb": "CONSTANT = 1\n",  # no test to read: known by its name alone
    "shop_test.go": "package shop\n",
    "checks/test_money.py": "assert_all()\n",
}


@pytest.mark.parametrize(
    "mention", ["README.md", "notes.txt", "Rakefile", "hackerrank.yml", "run", ".rspec", "test.yaml"]
)
def test_a_test_is_a_test_whatever_mentions_it(mention: str) -> None:
    naming = "".join(f"run {path}\n" for path in NAMED_TESTS)
    policy = policy_of({**NAMED_TESTS, "lib/shop.rb": "class Shop; end\n", mention: naming})
    assert {path for path in NAMED_TESTS if policy.refusal(path, "x") is None} == set()
    assert policy.tests >= NAMED_TESTS.keys()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"test/mocha.opts": "--reporter-options configFile=config.json\n"}, "mocha"),
        ({"test/mocha.opts": "--reporter-options 'configFile=config.json'\n"}, "mocha"),
        ({"test/mocha.opts": "--require ./src/prepare\n"}, "mocha"),
        ({".mocharc.yml": "reporter-option:\n  - configFile=config.json\n"}, "mocha"),
        ({".mocharc.yml": "require: src/prepare.js\n"}, "mocha"),
        ({}, "mocha --reporter mocha-multi-reporters --reporter-options configFile=config.json"),
        ({}, "mocha --config config.json"),
        ({}, "pytest -c config.json"),
        ({"phpunit.xml": '<phpunit bootstrap="src/prepare.js"/>\n'}, "phpunit"),
    ],
)
def test_a_settings_file_that_a_command_or_other_settings_name_is_protected(
    files: dict[str, str], command: str
) -> None:
    named = "src/prepare.js" if "prepare" in "".join(files.values()) else "config.json"
    others = {"config.json": "{}\n", "src/prepare.js": "x\n", "data.json": "{}\n", "src/a.js": "x\n"}
    policy = policy_of(others | files, test_command=command)
    assert policy.refusal(named) == "runner_configuration"
    assert policy.refusal("src/a.js") is None
    assert policy.refusal("data.json") is None


def test_data_that_a_command_serves_stays_the_answers_to_change() -> None:
    policy = policy_of({"db.json": "{}\n"}, test_command="json-server --watch db.json & npx mocha")
    assert policy.refusal("db.json") is None


def test_links_are_never_written_through() -> None:
    policy = policy_of(NODE, links={"shared": "src", "alias.js": "src/app.js"})
    assert policy.refusal("alias.js") == "through_link"
    assert policy.refusal("shared/app.js") == "through_link"


def test_a_known_module_of_the_project_may_change() -> None:
    assert policy_of({**DJANGO, "calendar.py": "x"}).refusal("calendar.py") is None


def test_the_documentation_names_every_reason() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protected.md").read_text()
    section = page.partition("# What an answer may change")[2].partition("\n## ")[0]
    assert [name for name in REFUSALS if f"`{name}`" not in section] == []


PARTS = st.sampled_from(
    ["", ".", "..", "src", "node_modules", ".git", "app.js", "~", "C:", "\x00", "ü", "test", "a" * 300]
)


@given(st.lists(PARTS, max_size=6).map("/".join) | st.text(max_size=30))
@settings(deadline=None)
def test_any_path_is_refused_by_a_known_rule_or_stays_in_the_project(path: str) -> None:
    reason = policy_of(NODE).refusal(path)
    assert reason is None or reason in REFUSALS
    if reason is None:
        parts = path.split("/")
        assert not path.startswith("/")
        assert not {"", ".", "..", "node_modules", ".git"}.intersection(parts)
        assert path.isprintable()
