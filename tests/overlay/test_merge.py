"""What an answer changes: applied, dropped, counted, screened; and the archive of the result."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from typing import Literal
from unicodedata import normalize

import pytest

from astra_async.overlay import anchored, integrate, path_policy, project_archive
from astra_async.types import Dropped, Integrated, Problem, Project, ProjectFile, Solution, Unusable
from waiting import cpu_within

APP = "const express = require('express');\nconst app = express();\nmodule.exports = app;\n"
PACKAGE = {
    "name": "shop",
    "scripts": {"test": "mocha"},
    "dependencies": {"express": "^4.18.0"},
    "devDependencies": {"mocha": "^10.0.0"},
}
FILES = {
    "package.json": json.dumps(PACKAGE),
    "src/app.js": APP,
    "src/routes/products.js": "module.exports = [];\n",
    "test/app.spec.js": "describe('app', () => { it('works', () => expect(1).to.equal(1)); });\n",
    "bin/www": "#!/bin/sh\n",
}
PROJECT = Project(
    files=tuple(
        sorted(
            [
                *(
                    ProjectFile(path=path, content=text.encode(), executable=path == "bin/www")
                    for path, text in FILES.items()
                ),
                ProjectFile(path="latest.js", link="src/app.js"),
            ],
            key=lambda file: file.path,
        )
    ),
    empty_folders=("output", "logs/old"),
    sha256="f" * 64,
)
PROBLEM = Problem(
    id="shop", statement="", project="/problems/shop", test_command="npm test", result_files=("unit.xml",)
)
POLICY = path_policy(PROBLEM, PROJECT)


def applied(files: dict[str, str], project: Project = PROJECT) -> Integrated:
    integrated = integrate(project, Solution(files=files), path_policy(PROBLEM, project))
    assert isinstance(integrated, Integrated), integrated
    return integrated


def test_changed_and_new_files_are_applied_and_counted() -> None:
    text = APP.replace("module", "app.use(express.json());\nmodule")
    result = applied({"src/app.js": text, "src/services/cart.js": "a\nb\n"})
    assert result.files == {"src/app.js": text.encode(), "src/services/cart.js": b"a\nb\n"}
    assert (result.files_changed, result.lines_written, result.dropped) == (2, 3, ())


def test_what_the_policy_refuses_is_dropped_and_the_rest_applied() -> None:
    result = applied({"src/app.js": "x", "test/app.spec.js": "x", ".npmrc": "x", "../../etc/passwd": "x"})
    assert list(result.files) == ["src/app.js"]
    assert result.dropped == (
        Dropped(path="test/app.spec.js", reason="protected_test"),
        Dropped(path=".npmrc", reason="dotfile"),
        Dropped(path="../../etc/passwd", reason="outside"),
    )


def test_an_answer_of_which_nothing_may_be_applied_is_a_path_violation() -> None:
    verdict = integrate(PROJECT, Solution(files={"test/app.spec.js": "x", "hackerrank.yml": "x"}), POLICY)
    assert isinstance(verdict, Unusable)
    assert verdict.failure == "path_violation"
    assert verdict.reason == "no file of the answer may be changed (manifest, protected_test)"


def test_a_file_equal_to_the_pristine_one_is_no_change_and_no_violation() -> None:
    result = applied({"src/app.js": APP, "test/app.spec.js": "x"})
    assert (result.files, result.files_changed, result.lines_written) == ({}, 0, 0)


def test_other_line_ends_are_kept_and_are_no_written_lines() -> None:
    result = applied({"src/app.js": APP.replace("\n", "\r\n")})
    assert result.files["src/app.js"] == APP.replace("\n", "\r\n").encode()
    assert result.lines_written == 0


def test_lone_surrogates_are_written_as_the_replacement_character() -> None:
    assert applied({"src/app.js": "x\ud800"}).files == {"src/app.js": "x\ufffd".encode()}


def test_the_hash_covers_applied_paths_and_contents_alone() -> None:
    one = applied({"src/app.js": "x", "src/b.js": "y"})
    same = applied({"src/b.js": "y", "./src/app.js": "x", ".npmrc": "z"})
    other = applied({"src/app.js": "x", "src/b.js": "z"})
    assert one.sha256 == same.sha256 != other.sha256


def test_files_of_the_answer_that_exclude_each_other_are_dropped() -> None:
    result = applied({"src/a.js/b.js": "x", "src/a.js": "y", "src/c.js": "z", "src/c.js/d.js": "w"})
    assert list(result.files) == ["src/a.js/b.js", "src/c.js"]
    assert [entry.reason for entry in result.dropped] == ["conflicts_with_folder", "conflicts_with_file"]


def test_an_answer_of_a_thousand_files_is_the_most_there_can_be() -> None:
    result = applied({f"src/f{number}.js": "x" for number in range(1500)})
    assert result.files_changed == 1000
    assert len(result.dropped) == 200
    assert result.dropped[0].reason == "too_many_files"


def test_of_an_environment_file_all_is_merged_but_what_steers_the_tests() -> None:
    steering = "export NODE_OPTIONS=--require ./x.js\r\n"
    text = f"JWT_SECRET=abc\n{steering}NODE_ENV=development\nPYTHONPATH: src\nMEDIA_PATH=x"
    result = applied({".env": text})
    assert result.files == {".env": b"JWT_SECRET=abc\nNODE_ENV=development\nMEDIA_PATH=x"}
    assert result.dropped == (
        Dropped(path=".env#NODE_OPTIONS", reason="runner_configuration"),
        Dropped(path=".env#PYTHONPATH", reason="runner_configuration"),
    )


ENVIRONMENT = "BASE=/srv\nTEST_DB=sqlite:$BASE/x\nPORT=1\nNODE_PATH=src\nNAME='a b'"


@pytest.mark.parametrize(
    ("answer", "merged"),
    [
        (ENVIRONMENT, None),
        (ENVIRONMENT + "\nAPI=x\n", ENVIRONMENT + "\nAPI=x\n"),
        ("PORT=2\n", "PORT=2\nTEST_DB=sqlite:$BASE/x\nNODE_PATH=src\n"),
        ("NODE_PATH=lib\nPORT=2", "PORT=2\nTEST_DB=sqlite:$BASE/x\nNODE_PATH=src\n"),
        ("NODE_PATH=src\nA=1\nTEST_DB=sqlite:$BASE/x", "TEST_DB=sqlite:$BASE/x\nNODE_PATH=src\nA=1\n"),
        ("A='\nNODE_PATH=src\n'\n", "TEST_DB=sqlite:$BASE/x\nNODE_PATH=src\nA='\n'\n"),
        ("A=\"'\"'\nB='\n", "TEST_DB=sqlite:$BASE/x\nNODE_PATH=src\nA=\"'\"'\nB='\n"),
        ("A=1 \\\n", "TEST_DB=sqlite:$BASE/x\nNODE_PATH=src\nA=1 \\\n"),
        ("NODE_OPTIONS\n\n=--require x\n", "NODE_OPTIONS\n\nTEST_DB=sqlite:$BASE/x\nNODE_PATH=src\n"),
    ],
)
def test_the_lines_that_steer_the_tests_are_always_the_projects_own(answer: str, merged: str | None) -> None:
    project = Project(
        files=(*PROJECT.files, ProjectFile(path=".env", content=ENVIRONMENT.encode())), sha256="0"
    )
    result = applied({".env": answer}, project)
    assert result.files == ({} if merged is None else {".env": merged.encode()})


@pytest.mark.parametrize(
    "line", ["a" * 3_000_000 + "'", " " * 3_000_000, "NODE_PATH=src\n" * 200_000, "'\n" * 900_000]
)
def test_no_environment_file_takes_long(line: str) -> None:
    project = Project(files=(ProjectFile(path=".env", content=ENVIRONMENT.encode()),), sha256="0")
    with cpu_within(5):
        applied({".env": line}, project)


def test_repeating_a_file_that_is_not_utf_8_changes_nothing() -> None:
    text = "// Größe\nfoo();\n"
    project = Project(files=(ProjectFile(path="src/a.js", content=text.encode("latin-1")),), sha256="0")
    assert applied({"src/a.js": text}, project).files == {}
    result = applied({"src/a.js": f"{text}bar();\n"}, project)
    assert result.files == {"src/a.js": f"{text}bar();\n".encode()}
    assert [(change.added, change.removed) for change in result.changes] == [(1, 0)]


def test_an_environment_file_that_only_steers_the_tests_is_no_usable_file() -> None:
    verdict = integrate(PROJECT, Solution(files={".env": "NODE_OPTIONS=x"}), POLICY)
    assert isinstance(verdict, Unusable)


# --- paths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "repairs"),
    [
        ("src/app.js", ()),
        ("./src/app.js", ("path_mended",)),
        (" src/app.js\n", ("path_mended",)),
        ("src\\app.js", ("path_mended",)),
        ("src/./x/../app.js", ("path_mended",)),
        ("/projects/challenge/src/app.js", ("path_mended",)),
        ("projects/challenge/src/app.js", ("path_mended",)),
        ("shop/src/app.js", ("path_prefix",)),
        ("/src/app.js", ("path_prefix",)),
        ("/shop/src/app.js", ("path_prefix",)),
        ("./projects/challenge/src/app.js", ("path_mended",)),
        ("src/app.js (do not change)", ("path_mended",)),
        ("src/app.js (saved in UTF-16, your answer will be in UTF-8) (do not change)", ("path_mended",)),
    ],
)
def test_paths_are_repaired_and_the_repair_is_named(written: str, repairs: tuple[str, ...]) -> None:
    solution = anchored(Solution(files={written: "x"}), PROJECT)
    assert solution == Solution(files={"src/app.js": "x"}, repairs=repairs)
    assert anchored(solution, PROJECT) == solution


@pytest.mark.parametrize(
    "files", [{"lib/x.js": "1"}, {"shop/src/app.js": "1", "src/app.js": "2"}, {"src/src/app.js": "1"}]
)
def test_a_folder_that_only_looks_like_a_prefix_stays(files: dict[str, str]) -> None:
    assert anchored(Solution(files=files), PROJECT).files == files


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (("/src/app.js", "/src/new.js", "/new.js"), ("src/app.js", "src/new.js", "new.js")),
        (("/src/app.js", "lib/x.js"), ("src/app.js", "lib/x.js")),
        (("/etc/passwd",), ("/etc/passwd",)),
        (("/etc/passwd", "src/app.js"), ("/etc/passwd", "src/app.js")),
        (("/src/new.js", "src/app.js"), ("/src/new.js", "src/app.js")),
        (("src/new (1).js", "app/(shop)"), ("src/new (1).js", "app/(shop)")),
    ],
)
def test_a_slash_before_paths_is_dropped_where_the_project_has_what_they_name(
    written: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    assert tuple(anchored(Solution(files=dict.fromkeys(written, "x")), PROJECT).files) == kept


@pytest.mark.parametrize(("stored", "typed"), [("NFD", "NFC"), ("NFC", "NFD"), ("NFD", "NFD")])
def test_a_path_in_another_unicode_form_names_the_projects_own_file(
    stored: Literal["NFC", "NFD"], typed: Literal["NFC", "NFD"]
) -> None:
    tests = "describe('a', () => { it('works', () => expect(1).to.equal(1)); });\n"
    contents = {
        "src/caf\u00e9.js": "old\n",
        "sp\u00e9cs/caf\u00e9.test.js": tests,
        "donn\u00e9es/a.json": "{}\n",
    }
    files = tuple(
        ProjectFile(path=normalize(stored, path), content=text.encode()) for path, text in contents.items()
    )
    project = Project(files=files, empty_folders=(normalize(stored, "vid\u00e9"),), sha256="0")
    problem = replace(PROBLEM, readonly_paths=(normalize("NFC", "donn\u00e9es/**"),))
    given = (*contents, "donn\u00e9es/b.json", "vid\u00e9/new.js")
    answer = Solution(files={normalize(typed, path): "new\n" for path in given})
    result = integrate(project, answer, path_policy(problem, project))
    assert isinstance(result, Integrated)
    assert [(change.path, change.kind) for change in result.changes] == [
        (normalize(stored, "src/caf\u00e9.js"), "changed"),
        (normalize(stored, "vid\u00e9") + "/new.js", "new"),
    ]
    assert [(entry.path, entry.reason) for entry in result.dropped] == [
        (normalize(stored, "sp\u00e9cs/caf\u00e9.test.js"), "protected_test"),
        (normalize(stored, "donn\u00e9es/a.json"), "read_only"),
        (normalize(stored, "donn\u00e9es") + "/b.json", "read_only"),
    ]
    once = anchored(answer, project)
    assert anchored(once, project) == once


def test_of_two_files_whose_names_differ_in_form_alone_each_is_itself() -> None:
    both = [normalize(form, "caf\u00e9.js") for form in ("NFC", "NFD")]
    project = Project(files=tuple(ProjectFile(path=path, content=b"x") for path in both), sha256="0")
    assert list(anchored(Solution(files=dict.fromkeys(both, "y")), project).files) == both


def test_the_last_of_two_spellings_of_a_path_wins() -> None:
    solution = anchored(Solution(files={"src/app.js": "old", "./src/app.js": "new"}), PROJECT)
    assert solution.files == {"src/app.js": "new"}
    assert solution.repairs == ("path_mended", "duplicate_path")


# --- package.json -----------------------------------------------------------------------------------


def test_of_package_json_only_dependencies_are_merged() -> None:
    answer = PACKAGE | {
        "scripts": {"test": "echo ok"},
        "jest": {"setupFiles": ["./x.js"]},
        "dependencies": {"cors": "^2.8.5"},
        "devDependencies": {"mocha": "^9.0.0", "chai": "npm:evil@1", "sinon": "file:./src"},
    }
    result = applied({"package.json": json.dumps(answer)})
    assert json.loads(result.files["package.json"] or "") == PACKAGE | {
        "dependencies": {"express": "^4.18.0", "cors": "^2.8.5"},
        "devDependencies": {"mocha": "^9.0.0"},
    }
    assert result.dropped == (
        Dropped(path="package.json#scripts", reason="runner_configuration"),
        Dropped(path="package.json#jest", reason="runner_configuration"),
        Dropped(path="package.json#devDependencies.chai", reason="not_a_version"),
        Dropped(path="package.json#devDependencies.sinon", reason="not_a_version"),
    )


def test_a_package_json_that_changes_nothing_allowed_stays_pristine() -> None:
    result = applied({"src/app.js": "x", "package.json": json.dumps(PACKAGE | {"type": "module"})})
    assert list(result.files) == ["src/app.js"]
    assert [entry.path for entry in result.dropped] == ["package.json#type"]


@pytest.mark.parametrize("text", ["{", "[]", "null", "[" * 100_000])
def test_a_package_json_that_cannot_be_read_is_dropped(text: str) -> None:
    result = applied({"src/app.js": "x", "package.json": text})
    assert result.dropped == (Dropped(path="package.json", reason="invalid_json"),)


# --- the screen -------------------------------------------------------------------------------------

SUSPICIOUS = {
    "process_exit": [
        "process.exit(0);",
        "import os; os._exit(0)",
        "System.exit(0);",
        "exit! 0",
        "process.kill(1)",
    ],
    "exit_handler": ["process.on('exit', f);", "import atexit", "at_exit { }"],
    "report_file": ["fs.writeFileSync('unit.xml', '')"],
    "patched_global": [
        "(globalThis as any).it = real;",
        "g.expect = yes;",
        "const g = globalThis;",
        "(window as any).expect = x;",
        "global.expect = () => ok;",
        "expect.extend({});",
        "Object.is = () => true;",
        "Array.prototype.includes = f;",
        "Buffer.prototype.equals = f;",
        "DOMWrapper.prototype.exists = f;",
        "chai.use(evil);",
        "JWT.singleton_class.prepend(Issuing)",
        "document.body.querySelectorAll = found;",
        "TestCase.run = f",
    ],
    "custom_equality": [
        "public boolean equals(Object other) {",
        "def __eq__(self, other):",
        "asymmetricMatch() {}",
        "def ==(other)",
        "func (w wrong) Is(target error) bool {",
        "impl PartialEq<i64> for Price {",
    ],
    "test_library": [
        "const c = require('chai');",
        "import org.junit.jupiter.api.Test;",
        "@org.junit.Test",
        "class Assertions {",
        "import pytest",
        "import x from '@testing-library/react';",
        "import { DOMWrapper } from '@vue/test-utils';",
    ],
    "test_environment": ["process.env.JEST_WORKER_ID", "os.environ['PYTEST_CURRENT_TEST']", "os.Args[0]"],
    "child_process": [
        "require('child_process')",
        "import subprocess",
        'import "os/exec"',
        "use std::process::Command;",
        "proc_open($command, $pipes);",
        "child = fork do",
        "system('rspec')",
    ],
    "test_file": [
        "fs.readdirSync(root)",
        "for each in os.walk('.'):",
        "Dir.glob('**/*')",
        "Files.walk(root)",
    ],
    "introspection": [
        "require.cache[x] = 1",
        "sys.modules['x'] = 1",
        "ObjectSpace.each_object",
        "field.trySetAccessible()",
        "new Throwable().getStackTrace()",
        "runtime.Callers(0, stack)",
    ],
    "dynamic_code": [
        "console.log.constructor('return process')()",
        "eval(x)",
        "new Function('x')",
        "exec(code)",
        "javax.tools.ToolProvider x;",
    ],
    "test_runner": ["TEST_RUNNER = 'x.Y'"],
}


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in SUSPICIOUS.items() for line in lines]
)
def test_code_that_could_bend_its_tests_is_named(name: str, line: str) -> None:
    assert f"{name}:src/app.js" in applied({"src/app.js": f"{APP}{line}\n"}).suspicions


@pytest.mark.parametrize(
    "line",
    [
        "if (require.main === module) app.listen(3000);",
        "const match = /x/.exec(text);",
        "pattern = re.compile('x')",
        "list.prepend(item);",
        "self.test = 1",
        "app.get('/exit', handler);",
        "window.location = '/';",
        "Product.prototype.price = 1;",
        "console.log('done');",
        "system = 'metric'",
        "forks = shop.fork(1)",
    ],
)
def test_ordinary_code_is_not_suspicious(line: str) -> None:
    assert applied({"src/app.js": f"{APP}{line}\n"}).suspicions == ()


@pytest.mark.parametrize(
    "declared",
    [
        "package org.junit.jupiter.api;",
        "/* a shop */ package /**/ org . junit\n.jupiter.api;",
        "// package shop;\n\\u0070ackage \\uu006frg.opentest4j;",
        "package java.util;",
        "\tpackage junit\t;",
    ],
)
def test_a_class_of_a_test_librarys_package_is_refused_in_any_folder(declared: str) -> None:
    files = {"src/main/java/shop/Shop.java": f"{declared}\nclass Shop {{ }}\n", "src/app.js": "1;\n"}
    assert applied(files).dropped == (Dropped(path="src/main/java/shop/Shop.java", reason="shadows_module"),)


@pytest.mark.parametrize(
    "text",
    [
        "package shop;\nclass Shop { }\n",
        "package org.junitors.shop;\nclass Shop { }\n",
        "package javafx.shop;\n",
        "// package org.junit;\npackage shop;\n",
        "import org.junit.Test;\nclass Shop { }\n",
        'class Shop { String text = "package org.junit;"; }\n',
        "/*" * 100_000,
    ],
)
def test_a_class_of_the_projects_own_package_is_taken(text: str) -> None:
    assert applied({"src/main/java/shop/Shop.java": text}).dropped == ()


def test_a_report_is_named_by_what_its_pattern_says_for_sure() -> None:
    problem = Problem(
        id="p",
        statement="",
        project="p",
        test_command="bin/test",
        result_files=("reports/TEST-*.xml", "*.xml"),
    )
    policy = path_policy(problem, PROJECT)
    for line, named in (("write('reports/TEST-a.xml')", True), ("read('feed.xml')", False)):
        result = integrate(PROJECT, Solution(files={"src/app.js": f"{APP}{line}\n"}), policy)
        assert isinstance(result, Integrated)
        assert ("report_file:src/app.js" in result.suspicions) is named


def test_what_the_pristine_file_had_already_is_not_suspicious() -> None:
    files = tuple(
        ProjectFile(path="src/app.js", content=b"process.exit(1);\n") if file.path == "src/app.js" else file
        for file in PROJECT.files
    )
    project = Project(files=files, sha256="0" * 64)
    assert applied({"src/app.js": "process.exit(1);\nfoo();\n"}, project).suspicions == ()
    assert applied({"src/app.js": "process.exit(1);\nprocess.exit(1);\n"}, project).suspicions


def test_a_large_answer_is_integrated_in_linear_time() -> None:
    text = "".join(f"line {number} process on window global self {number}\n" for number in range(40_000))
    with cpu_within(3):
        result = applied({"src/app.js": text, "src/one.js": "x" * 2_000_000, "src/two.js": "/ " * 1_000_000})
        assert result.lines_written == 40_002


# --- the archive ------------------------------------------------------------------------------------


def members(archive: bytes) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = tar.getnames()
        assert len(names) == len(set(names))
        return {
            entry.name: (entry, file.read() if (file := tar.extractfile(entry)) and entry.isreg() else b"")
            for entry in tar
            if not entry.issym()
        } | {entry.name: (entry, b"") for entry in tar if entry.issym()}


def test_the_archive_holds_the_whole_project_with_the_changes_laid_over() -> None:
    found = members(project_archive(PROJECT, {"src/app.js": b"new", "src/deep/er/x.js": b"y"}))
    assert found["src/app.js"][1] == b"new"
    assert found["src/deep/er/x.js"][1] == b"y"
    assert found["test/app.spec.js"][1] == FILES["test/app.spec.js"].encode()
    for folder in ("src", "src/deep", "src/deep/er", "src/routes", "output", "logs", "logs/old"):
        assert found[folder][0].isdir()
    assert found["latest.js"][0].linkname == "src/app.js"
    assert found["bin/www"][0].mode == 0o755
    assert found["src/app.js"][0].mode == 0o644
    assert {(entry.uid, entry.gid) for entry, _ in found.values()} == {(1000, 1000)}


def test_folders_come_before_what_is_in_them() -> None:
    with tarfile.open(fileobj=io.BytesIO(project_archive(PROJECT, {"a/b/c.js": b""}))) as tar:
        names = tar.getnames()
    for name in names:
        if "/" in name:
            assert names.index(name.rpartition("/")[0]) < names.index(name)


def test_the_archive_is_the_same_to_the_byte() -> None:
    changed = {"src/app.js": b"new", "b.js": b""}
    assert project_archive(PROJECT, changed) == project_archive(PROJECT, dict(reversed(changed.items())))


def test_a_changed_file_bears_another_time_than_the_pristine_one() -> None:
    pristine = members(project_archive(PROJECT, {}))["src/app.js"][0].mtime
    one = members(project_archive(PROJECT, {"src/app.js": b"1"}))["src/app.js"][0].mtime
    two = members(project_archive(PROJECT, {"src/app.js": b"2"}))["src/app.js"][0].mtime
    assert len({pristine, one, two}) == 3


def test_names_beyond_ustar_are_kept() -> None:
    long = "src/" + "ü" * 100 + "/" + "n" * 200 + ".js"
    assert members(project_archive(PROJECT, {long: b"x"}))[long][1] == b"x"


def test_an_archive_of_thirty_files_takes_about_a_millisecond() -> None:
    project = Project(
        files=tuple(ProjectFile(path=f"src/part{number}/f.js", content=b"x" * 2000) for number in range(30)),
        sha256="1" * 64,
    )
    with cpu_within(0.2):
        for _ in range(20):
            project_archive(project, {"src/part1/f.js": b"y"})
