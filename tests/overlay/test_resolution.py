"""What would be loaded in place of what: attacks by placement, and what only sounds like it."""

from __future__ import annotations

import pytest

from astra_async.overlay import Installed, PathPolicy, integrate, path_policy
from astra_async.types import Integrated, Problem, Project, ProjectFile, Solution
from waiting import cpu_within

PY_TEST = "def test_a():\n    assert True\n"
JS_TEST = "describe('a', () => { it('works', () => { expect(1).toBe(1); }); });\n"
JAVA_TEST = (
    "package shop;\n\nimport java.util.*;\nimport org.junit.jupiter.api.Test;\n"
    "import org.junit.jupiter.api.*;\n\n"
    "class ShopTest {\n    @Test\n    void a() { Assertions.assertEquals(List.of(1), new Shop().all()); }\n"
    "    Math m; Stack<Integer> s; String t; Order o; Package p;\n}\n"
)

PROJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "pytest": (
        "python3 -m pytest tests --junitxml=unit.xml",
        {
            "pytest.ini": "[pytest]\npythonpath = . lib\n",
            "lib/__unused__": "",
            "lib/money.py": "x\n",
            "shop/__init__.py": "",
            "shop/prices.py": "x\n",
            "shop/locked.py": "x\n",
            "plain/locked.py": "x\n",
            "pages/locked.py": "x\n",
            "pages/quote.py": "x\n",
            "tests/helpers.py": "x\n",
            "tests/test_prices.py": "import helpers\n" + PY_TEST,
        },
    ),
    "layout": ("pytest", {"src/shop/__init__.py": "", "tests/test_shop.py": PY_TEST}),
    "from-src": ("pytest", {"src/app.py": "x", "tests/test_app.py": "from src import app\n" + PY_TEST}),
    "gradle": ("./gradlew test", {"build.gradle": "junit", "src/main/java/shop/Shop.java": "package shop;"}),
    "go": (
        "go test ./...",
        {"go.mod": "module shop", "shop.go": "package shop", "shop_test.go": "package shop"},
    ),
    "django": (
        "python3 manage.py test",
        {
            "manage.py": "x\n",
            "books/__init__.py": "",
            "books/views.py": "x\n",
            "books/tests.py": "from django.test import TestCase\n\n\nclass T(TestCase):\n"
            "    def test_a(self):\n        pass\n",
        },
    ),
    "unittest": (
        "python3 -m xmlrunner discover -s checks -t app",
        {
            "app/rules.py": "x\n",
            "checks/check_rules.py": "import unittest\n\n\nclass T(unittest.TestCase):\n"
            "    def test_a(self):\n        pass\n",
        },
    ),
    "mocha": (
        "npm test",
        {
            "package.json": '{"scripts": {"test": "NODE_PATH=src mocha"}, "devDependencies":'
            ' {"mocha": "10", "chai": "4"}}',
            ".mocharc.json": '{"require": ["./boot/index.js"], "reporter": "mocha-multi-reporters",'
            ' "reporter-option": ["configFile=config.json"]}',
            "config.json": "{}",
            "boot/index.js": "x\n",
            "src/locked.js": "x\n",
            "data/locked.json": "{}",
            "test/api.spec.js": JS_TEST,
        },
    ),
    "jest": (
        "npm test",
        {
            "package.json": '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "29",'
            ' "jest-junit": "16"},'
            ' "jest": {"moduleDirectories": ["node_modules", "shared"],'
            ' "testSuitePropertiesFile": "props.js"}}',
            "props.js": "x\n",
            "shared/format.js": "x\n",
            "src/api.js": "x\n",
            "src/App.jsx": "x\n",
            "src/locked.js": "x\n",
            "src/views/locked.jsx": "x\n",
            "src/__tests__/App.test.jsx": "import 'chai/register';\njest.mock('../api');\n" + JS_TEST,
        },
    ),
    "cra": (
        "npm test",
        {
            "package.json": '{"scripts": {"test": "react-scripts test"}, "dependencies":'
            ' {"react-scripts": "5"}}',
            "jsconfig.json": '{"compilerOptions": {"baseUrl": "src"}}',
            "src/App.js": "x\n",
            "src/locked.js": "x\n",
            "src/App.test.js": JS_TEST,
        },
    ),
    "rspec": (
        "bundle exec rspec",
        {
            "Gemfile": "gem 'rails'\n",
            "spec/rails_helper.rb": "x\n",
            "spec/support/users.rb": "x\n",
            "spec/models/user_spec.rb": "RSpec.describe User do\nend\n",
            "app/models/user.rb": "x\n",
            "app/models/locked.rb": "x\n",
        },
    ),
    "minitest": (
        "ruby -Ilib -Itest -e 'Dir[\"./test/*_test.rb\"].each { |path| require path }'",
        {
            "lib/shop.rb": "x\n",
            "test/test_helper.rb": "require 'minitest/autorun'\n",
            "test/shop_test.rb": "require 'test_helper'\nclass ShopTest < Minitest::Test\nend\n",
        },
    ),
    "javac": (
        "bash bin/test",
        {
            "bin/test": "#!/bin/bash\nfind src -name '*.java' > build/sources\n"
            "javac -cp junit.jar @build/sources\n",
            "src/main/java/shop/Shop.java": "package shop;\n\nclass Shop { }\n",
            "src/main/java/shop/Locked.java": "package shop;\n\nclass Locked { Helper helper; }\n",
            "src/test/java/shop/ShopTest.java": JAVA_TEST,
        },
    ),
    "make": ("make test", {"Makefile": "test:\n\t./run-tests *.c\n", "main.c": "x\n"}),
}
LOCKED = (
    *(
        "shop/locked.py",
        "plain/locked.py",
        "pages/locked.py",
        "src/locked.js",
        "data/locked.json",
        "src/views/locked.jsx",
    ),
    *("app/models/locked.rb", "src/main/java/shop/Locked.java"),
)
IMAGE: Installed = {
    "python": frozenset({"pytest", "pygments", "jwt", "json", "tests", "in_this_image_alone", "xmlrunner"}),
    "javascript": frozenset({"chai", "mocha", "jest", "in-this-image-alone", "@scope/tools", "react"}),
    "ruby": frozenset(
        {"rspec/core", "time", "json", "minitest", "minitest/spec", "in_this_image_alone", "capybara/dsl"}
    ),
    "java": frozenset(
        {
            "org.junit.jupiter.api Assertions Test",
            "com.image.alone Tool",
            "java.util List Stack",
            "java.lang Math String Package",
        }
    ),
}


def policy_of(name: str, installed: Installed | None = None) -> tuple[Project, PathPolicy]:
    command, texts = PROJECTS[name]
    project = Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(texts.items())),
        sha256=name,
    )
    problem = Problem(
        id=name,
        statement="Finish the Shop. An Order lies on a Stack.",
        project="/p",
        test_command=command,
        result_files=("unit.xml",),
        readonly_paths=LOCKED,
    )
    policy = path_policy(problem, project)
    return project, policy.with_installed(installed) if installed else policy


# (project, path, rule); with an image the names that only it has are taken too
ATTACKS = [
    ("django", "books/tests/__init__.py", "shadows_protected"),
    ("django", "books/tests.cpython-311.so", "compiled"),
    ("django", "books/tests.so", "compiled"),
    ("django", "books/tests.abi3.so", "compiled"),
    ("django", "books/tests.pyc", "compiled"),
    ("django", "books/__pycache__/tests.cpython-311.pyc", "compiled"),
    ("django", "manage/__init__.py", "shadows_protected"),
    ("django", "pygments/__init__.py", "shadows_module"),
    ("django", "sqlparse/__init__.py", "shadows_module"),
    ("django", "asgiref/sync.py", "shadows_module"),
    ("django", "typing_extensions.py", "shadows_module"),
    ("django", "pytz.py", "shadows_module"),
    ("django", "setuptools/__init__.py", "shadows_module"),
    ("django", "unittest/__init__.py", "shadows_module"),
    ("django", "x.egg-info/entry_points.txt", "plugin_registration"),
    ("django", "evil.pth", "plugin_registration"),
    ("pytest", "jwt/__init__.py", "shadows_module"),
    ("pytest", "itsdangerous.py", "shadows_module"),
    ("pytest", "flask_sqlalchemy/__init__.py", "shadows_module"),
    ("pytest", "lib/pluggy.py", "shadows_module"),
    ("pytest", "lib/tests/__init__.py", "shadows_protected"),
    ("pytest", "shop/usercustomize.py", "runner_configuration"),
    ("layout", "src/pytest.py", "shadows_module"),
    ("pytest", "shop/locked/__init__.py", "shadows_protected"),
    ("pytest", "plain/__init__.py", "shadows_protected"),
    ("pytest", "plain.py", "shadows_protected"),
    ("pytest", "helpers.py", "shadows_protected"),
    ("pytest", "lib/helpers.py", "shadows_protected"),
    ("pytest", "shop/anywhere/conftest.py", "runner_configuration"),
    ("pytest", "tests/__init__.py", "protected_test"),
    ("pytest", "tests/pytest.ini", "protected_test"),
    ("pytest", ".pytest.ini", "dotfile"),
    ("unittest", "checks/json.py", "shadows_module"),
    ("unittest", "app/unittest.py", "shadows_module"),
    ("unittest", "app/check_rules.py", "shadows_protected"),
    ("mocha", "boot.js", "shadows_protected"),
    ("mocha", "boot", "conflicts_with_folder"),
    ("mocha", "boot/index.ts", "shadows_protected"),
    ("mocha", "boot/package.json", "build_configuration"),
    ("mocha", "config.json", "runner_configuration"),
    ("mocha", "src/locked", "shadows_protected"),
    ("mocha", "src/locked.mjs", "shadows_protected"),
    ("mocha", "src/locked.node", "compiled"),
    ("mocha", "data/locked.js", "shadows_protected"),
    ("mocha", "src/chai/index.js", "shadows_module"),
    ("mocha", "src/chai.js", "shadows_module"),
    ("mocha", "src/sinon.json", "shadows_module"),
    ("mocha", ".mocharc.cjs", "dotfile"),
    ("mocha", "test/-r evil.js", "protected_test"),
    ("jest", "props.js", "runner_configuration"),
    ("jest", "junitProperties.js", "runner_configuration"),
    ("jest", "jest.config.ts", "runner_configuration"),
    ("jest", "shared/chai.js", "shadows_module"),
    ("jest", "shared/@testing-library/react/index.js", "shadows_module"),
    ("jest", "shared/chai/register.js", "shadows_module"),
    ("jest", "src/deep/__mocks__/chai.js", "shadows_module"),
    ("jest", "__mocks__/react/index.js", "shadows_module"),
    ("jest", "src/__mocks__/api.js", "shadows_protected"),
    ("jest", "src/locked.ts", "shadows_protected"),
    ("jest", "src/locked.web.js", "shadows_protected"),
    ("jest", "src/views/locked.js", "shadows_protected"),
    ("jest", "src/views/locked.json", "shadows_protected"),
    ("jest", "src/package.json", "build_configuration"),
    ("jest", "src/__tests__/__snapshots__/App.test.jsx.snap", "protected_test"),
    ("jest", "src/__snapshots__/App.test.js.snap", "protected_test"),
    ("cra", "src/react/index.js", "shadows_module"),
    ("cra", "src/locked.tsx", "shadows_protected"),
    ("cra", "src/setupTests.js", "runner_configuration"),
    ("cra", "src/tsconfig.json", "build_configuration"),
    ("rspec", "lib/rspec/core.rb", "shadows_module"),
    ("rspec", "lib/json.rb", "shadows_module"),
    ("rspec", "lib/time.rb", "shadows_module"),
    ("rspec", "lib/rails_helper.rb", "shadows_protected"),
    ("rspec", "app/models/support/users.rb", "shadows_protected"),
    ("rspec", "app/aaa/locked.rb", "shadows_protected"),
    ("rspec", "app/models/concerns/locked.rb", "shadows_protected"),
    ("rspec", "app/aaa/minitest/x_plugin.rb", "shadows_module"),
    ("rspec", ".rspec-local", "dotfile"),
    ("rspec", "Rakefile", "runner_configuration"),
    ("minitest", "lib/minitest.rb", "shadows_module"),
    ("minitest", "lib/minitest/lie_plugin.rb", "shadows_module"),
    ("minitest", "lib/test_helper.rb", "shadows_protected"),
    ("minitest", "lib/rubygems_plugin.rb", "shadows_module"),
    ("minitest", "lib/set.rb", "shadows_module"),
    ("javac", "src/main/java/A -proc:none @opts.java", "tool_argument"),
    ("javac", "src/main/java/a b/X.java", "tool_argument"),
    ("javac", 'src/main/java/"X".java', "tool_argument"),
    ("javac", "src/main/java/#X.java", "tool_argument"),
    ("javac", "src/@opts.java", "tool_argument"),
    ("javac", "-J-javaagent.java", "tool_argument"),
    (
        "javac",
        "src/main/resources/META-INF/services/org.junit.jupiter.api.extension.Extension",
        "plugin_registration",
    ),
    ("javac", "META-INF/services/javax.annotation.processing.Processor", "plugin_registration"),
    ("javac", "src/main/resources/META-INF/spring.factories", "plugin_registration"),
    ("javac", "src/main/resources/junit-platform.properties", "runner_configuration"),
    ("javac", "lib/junit.jar", "compiled"),
    ("make", "GNUmakefile", "build_configuration"),
    ("make", "makefile", "build_configuration"),
    ("make", "local.mk", "build_configuration"),
    ("gradle", "buildSrc/src/main/java/Evil.java", "build_configuration"),
    ("gradle", "gradle/libs.versions.toml", "build_configuration"),
    ("gradle", "init.gradle", "build_configuration"),
    ("go", "more_test.go", "protected_test"),
    ("go", "go.work", "build_configuration"),
    ("make", "--eval=x.c", "tool_argument"),
    ("make", "a -o b.c", "tool_argument"),
]


@pytest.mark.parametrize(("name", "path", "rule"), ATTACKS, ids=str)
def test_what_would_be_loaded_in_place_of_something_is_refused(name: str, path: str, rule: str) -> None:
    assert policy_of(name)[1].refusal(path, "x") == rule


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("django", "books/tests/notes.py"),  # a folder never wins over a module
        ("django", "books/pygments.py"),
        ("django", "profile/__init__.py"),
        ("django", "json_views.py"),
        ("pytest", "src/types.py"),
        ("from-src", "src/types.py"),
        ("pytest", "shop/jwt.py"),
        ("pytest", "shop/helpers.py"),
        ("pytest", "shop/locked.pyi"),
        ("pytest", "shop/locked/data.json"),
        ("pytest", "examples/conf.py"),
        ("pytest", "pages/__init__.py"),  # whose modules are the answer's, too
        ("unittest", "app/pytest.ini"),
        ("unittest", "lib/json.py"),
        ("mocha", "chai.js"),
        ("mocha", "lib/chai/index.js"),
        ("mocha", "src/locked/helpers.js"),
        ("mocha", "src/locked/index.js"),  # the file comes before the folder
        ("mocha", "src/locked.json"),  # .js comes before .json
        ("mocha", "src/locked.d.ts"),
        ("mocha", "src/events.js"),  # Node's own modules come first
        ("mocha", "src/util/format.js"),
        ("mocha", "src/chai/helpers.js"),
        ("mocha", "src/__mocks__/chai.js"),
        ("mocha", "junitProperties.js"),
        ("mocha", "config/config.json"),
        ("mocha", "lib/package.json"),
        ("jest", "src/chai/index.js"),
        ("jest", "src/__mocks__/companies.js"),
        ("jest", "src/__mocks__/fs-like.js"),
        ("jest", "src/locked.css"),
        ("jest", "src/components/junitProperties.js"),
        ("jest", "server/package.json"),
        ("cra", "src/reactions/index.js"),
        ("cra", "src/react/Hook.js"),
        ("rspec", "app/models/json.rb"),
        ("rspec", "app/helpers/spec_helper.rb"),
        ("rspec", "app/helpers/rails_helper.rb"),
        ("rspec", "lib/rspec_free.rb"),
        ("rspec", "app/services/users.rb"),
        ("minitest", "app/json.rb"),
        ("minitest", "lib/shop/set.rb"),
        ("javac", "src/main/java/shop/My-notes.md"),
        ("javac", "src/main/resources/META-INF/services/shop.Plugin"),
        ("javac", "docs/read me.txt"),
        ("make", "my notes.txt"),
    ],
)
def test_what_only_sounds_like_it_is_kept(name: str, path: str) -> None:
    assert policy_of(name)[1].refusal(path, "x") is None


@pytest.mark.parametrize(
    ("name", "path", "by_default", "in_the_image"),
    [
        ("pytest", "in_this_image_alone/__init__.py", None, "shadows_module"),
        ("pytest", "sqlparse.py", "shadows_module", None),
        ("pytest", "examples/__init__.py", None, None),
        ("django", "tests/__init__.py", None, None),
        ("mocha", "src/in-this-image-alone.js", None, "shadows_module"),
        ("mocha", "src/@scope/tools.js", None, "shadows_module"),
        ("mocha", "src/@scope/others.js", None, None),
        ("mocha", "src/sinon.js", "shadows_module", None),
        ("rspec", "lib/in_this_image_alone.rb", None, "shadows_module"),
        ("rspec", "lib/csv.rb", "shadows_module", None),
        ("rspec", "app/models/capybara/dsl.rb", None, "shadows_module"),
    ],
)
def test_what_the_image_holds_decides(
    name: str, path: str, by_default: str | None, in_the_image: str | None
) -> None:
    assert policy_of(name)[1].refusal(path) == by_default
    assert policy_of(name, IMAGE)[1].refusal(path) == in_the_image


JAVA_SOURCES = [
    ("package org.junit.jupiter.api; class X { }", "shadows_module"),
    ("/* a */ package/**/org . junit\n.jupiter.api ;\nclass X { }", "shadows_module"),
    ("\\u0070ackage \\u006frg.junit.jupiter.api; class X { }", "shadows_module"),
    ("@Deprecated package org.junit.jupiter.api; class X { }", "shadows_module"),
    ("package java.util; class X { }", "shadows_module"),
    ("package shop; class Assertions { }", "shadows_module"),
    ("package shop; class X { } class Assertions { }", "shadows_module"),
    ("package shop; class X { } @interface Y { } interface Assertions { }", "shadows_module"),
    ('package shop; class X { String s = "class A {"; } enum Math { A }', "shadows_module"),
    ("package shop; record String() { }", "shadows_module"),
    ("package shop; class List { }", "shadows_module"),
    ("package shop; class org { static class junit { } }", "shadows_module"),
    ("package shop; class java { }", "shadows_module"),
    ("package shop; cl\\u0061ss Assertions { }", "shadows_module"),
    ("package shop; // its\rclass Assertions { }", "shadows_module"),
    ("package shop; // its\\u000dclass Assertions { }", "shadows_module"),
    ("package shop; class ShopTest { }", "shadows_protected"),
    ("package shop; class Stack { }", None),  # the statement asks for it
    ("package shop; class Order { }", None),
    ("package shop; class Test { }", None),  # imported by name
    ("package shop; class X { static class Assertions { } }", None),
    ("package shop; class X { } // class Assertions { }", None),
    ('package shop; class X { String s = "; class Assertions { }"; }', None),
    ("package shop.util; class Assertions { }", None),
    ("package shop.api; class Assert { }", None),
    ("class Assertions { }", None),
]


@pytest.mark.parametrize("installed", [None, IMAGE], ids=["usual", "image"])
@pytest.mark.parametrize(("text", "rule"), JAVA_SOURCES)
def test_a_java_type_is_judged_by_what_tests_mean_by_its_name(
    text: str, rule: str | None, installed: Installed | None
) -> None:
    policy = policy_of("javac", installed)[1]
    assert policy.refusal("src/main/java/anything/More.java", text) == rule
    assert policy.refusal("src/main/java/shop/Shop.java", f"{text}\nclass Shop {{ }}") == rule


def kept(name: str, files: dict[str, str]) -> set[str]:
    project, policy = policy_of(name)
    result = integrate(project, Solution(files=files), policy)
    assert isinstance(result, Integrated)
    assert {entry.path for entry in result.dropped} == files.keys() - result.files.keys()
    assert {entry.reason for entry in result.dropped} <= {"own_test"}
    return set(result.files)


def test_an_own_test_is_left_out_unless_the_rest_of_the_answer_loads_it() -> None:
    test = "it('fails', () => { expect(1).toBe(2); });\n"
    files = {
        "src/app.js": "x",
        "src/more.test.js": test,
        "src/rules.test.js": f"require('./deep.spec');\n{test}",
    }
    assert kept("mocha", files) == {"src/app.js"}
    loaded = {**files, "src/app.js": "require('./rules.test');", "src/deep.spec.js": test}
    assert kept("mocha", loaded) == {"src/app.js", "src/rules.test.js", "src/deep.spec.js"}


def test_a_file_called_like_a_test_that_holds_none_is_kept() -> None:
    files = {"shop/test_data.py": "ROWS = [1]\n", "shop/test_rules.py": PY_TEST, "shop/prices.py": "x = 1\n"}
    assert kept("pytest", files) == {"shop/test_data.py", "shop/prices.py"}
    assert kept("pytest", {**files, "shop/prices.py": "from shop import test_rules\n"}) == set(files)


def test_sources_called_like_tests_may_change_unless_tests_use_them() -> None:
    texts = {
        "tasks/views.py": "from tasks.test_data import ROWS\n",
        "tasks/test_data.py": "ROWS = []\n",
        "tasks/test_rows.py": "ROWS = []\n",
        "tasks/tests.py": "from tasks.test_rows import ROWS\n" + PY_TEST,
    }
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items())
    problem = Problem(id="p", statement="", project="/p", test_command="pytest")
    policy = path_policy(problem, Project(files=files, sha256=""))
    assert policy.refusal("tasks/test_data.py") is None
    assert policy.refusal("tasks/test_rows.py") == "protected_test"


@pytest.mark.parametrize(
    "text",
    [
        "import " * 60_000,
        "package a.b;\n" + '"' * 300_000,
        "package a.b;\n" + "\\u0022" * 60_000,
        "/*" * 150_000,
        "class A {" * 40_000,
    ],
    ids=["imports", "quotes", "escapes", "comments", "classes"],
)
def test_a_source_made_to_be_slow_to_read_is_read_in_time(text: str) -> None:
    with cpu_within(2.0):
        policy_of("javac")[1].refusal("src/main/java/shop/More.java", text)
