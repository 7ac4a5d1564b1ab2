from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.problems.manifest import MAX_MANIFEST_BYTES, find_manifest, read_manifest
from astra_async.types import Manifest, Project, ProjectFile
from waiting import cpu_within

WHOLE = b"""\
version: 1.0
configuration:
  has_webserver: true
  readonly_paths:
    - src/App.test.js
    - test/**
  scoring:
    command: "bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm test"
    files:
      - junit.xml
      - ./target/surefire-reports/TEST-*.xml
    testcase_weights:
      first test: 0.25
      com.acme.Suite.second: 0.75
    hidden_files_paths: [test/hidden.js]
  ide_config:
    default_open_files: [src/App.js]
    project_menu: {run: npm start, install: npm install, test: npm test}
"""


def read(text: str) -> Manifest:
    return read_manifest(text.encode())


def scoring(lines: str) -> str:
    indented = "\n".join("    " + line for line in lines.splitlines())
    return f"version: 1.0\nconfiguration:\n  scoring:\n{indented}\n"


def test_a_documented_manifest_is_read_without_a_warning() -> None:
    assert read_manifest(WHOLE) == Manifest(
        command="bash bin/env_setup && . $HOME/.nvm/nvm.sh && npm test",
        result_files=("junit.xml", "target/surefire-reports/TEST-*.xml"),
        readonly_paths=("src/App.test.js", "test/**"),
        hidden_paths=("test/hidden.js",),
        weights={"first test": 0.25, "com.acme.Suite.second": 0.75},
    )


def test_windows_line_ends_a_byte_order_mark_and_utf_16_are_read() -> None:
    plain = read_manifest(WHOLE)
    assert read_manifest(b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r\n")) == plain
    assert read_manifest(WHOLE.decode().encode("utf-16")) == plain


def test_readonly_paths_under_ide_config_are_read_with_a_warning() -> None:
    manifest = read(
        "configuration:\n  scoring: {command: npm test}\n  ide_config:\n    readonly_paths: [test]\n"
    )
    assert manifest.readonly_paths == ("test",)
    assert any("ideconfig" in warning for warning in manifest.warnings)


def test_hidden_files_directly_under_configuration_are_read_with_a_warning() -> None:
    manifest = read(
        "configuration:\n  hidden_files_paths:\n    - spec/secret.js\n  scoring: {command: npm test}\n"
    )
    assert manifest.hidden_paths == ("spec/secret.js",)
    assert len(manifest.warnings) == 1


def test_paths_of_several_places_are_united_once_each() -> None:
    manifest = read(
        "configuration:\n  readonly_paths: [a, b]\n  scoring: {command: x}\n  ide_config:\n"
        "    readonly_paths: [b, c]\n"
    )
    assert manifest.readonly_paths == ("a", "b", "c")


def test_nested_lists_are_flattened_with_a_warning() -> None:
    manifest = read(
        "configuration:\n  readonly_paths:\n    - [src/App.test.js]\n    - b\n  scoring: {command: x}\n"
    )
    assert manifest.readonly_paths == ("src/App.test.js", "b")
    assert any("nested" in warning for warning in manifest.warnings)


def test_regular_expressions_are_kept_as_they_are_with_a_warning() -> None:
    manifest = read(
        "configuration:\n  readonly_paths:\n    - '.*\\.Tests\\.java$'\n  scoring: {command: x}\n"
    )
    assert manifest.readonly_paths == (r".*\.Tests\.java$",)
    assert any("regular expression" in warning for warning in manifest.warnings)


def test_globs_that_yaml_takes_for_aliases_are_quoted_and_read() -> None:
    manifest = read(
        "configuration:\n  readonly_paths:\n    - *.test.js\n    - **/spec/*\n    - 'a b'\n"
        "  scoring:\n    command: npm test\n    files:\n      - unit.xml\n"
    )
    assert manifest.readonly_paths == ("*.test.js", "**/spec/*", "a b")
    assert manifest.command == "npm test"
    assert manifest.result_files == ("unit.xml",)
    assert any("after quoting" in warning for warning in manifest.warnings)


def test_weights_whose_names_hold_brackets_and_colons_are_read() -> None:
    manifest = read(
        scoring(
            "command: npm test\ntestcase_weights:\n  {id} is kept: 0.5\n  [GET] /a: ok: 0.25\n  x{}[]: 0.25"
        )
    )
    assert manifest.weights == {"{id} is kept": 0.5, "[GET] /a: ok": 0.25, "x{}[]": 0.25}
    assert manifest.command == "npm test"


def test_a_command_with_a_colon_or_tabs_is_read_in_the_second_attempt() -> None:
    assert read(scoring("command: npm run test: all")).command == "npm run test: all"
    assert read("configuration:\n\tscoring:\n\t\tcommand: npm test\n").command == "npm test"


def test_a_block_scalar_keeps_its_inner_lines() -> None:
    assert read(scoring("command: |\n  cd app\n  npm test\nfiles: [u.xml]")).command == "cd app\nnpm test"
    broken = read(scoring('command: |\n  echo "a: b"\n  npm test\nfiles:\n  - *.xml'))
    assert broken.command == 'echo "a: b"\nnpm test'
    assert broken.result_files == ("*.xml",)


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("command: [npm, test]", "npm test"),
        ("command:\n  - npm ci\n  - npm test", "npm ci && npm test"),
        ("Command: npm test", "npm test"),
    ],
)
def test_unusual_forms_of_the_command_are_read(lines: str, command: str) -> None:
    assert read(scoring(lines)).command == command


def test_plain_text_under_scoring_is_the_command() -> None:
    manifest = read("configuration:\n  scoring: npm test\n")
    assert manifest.command == "npm test"
    assert manifest.warnings


def test_scoring_outside_configuration_is_read_with_a_warning() -> None:
    manifest = read("version: 1\nscoring:\n  command: make test\n  files: out.xml\n")
    assert (manifest.command, manifest.result_files) == ("make test", ("out.xml",))
    assert len(manifest.warnings) == 2


def test_without_scoring_the_command_is_unknown_and_the_menu_is_no_substitute() -> None:
    manifest = read("configuration:\n  ide_config:\n    project_menu:\n      test: npm test\n")
    assert manifest.command == ""
    assert any("no `scoring`" in warning for warning in manifest.warnings)


@pytest.mark.parametrize("text", ["<scoring command>", "{{command}}", "(string)", "TODO: command"])
def test_template_text_is_no_command(text: str) -> None:
    manifest = read(scoring(f'command: "{text}"'))
    assert manifest.command == ""
    assert any("template" in warning for warning in manifest.warnings)


def test_without_result_files_standard_output_is_scored() -> None:
    assert read(scoring("command: bash score.sh")).result_files == ()


def test_result_files_outside_the_project_are_left_out() -> None:
    manifest = read(scoring("command: x\nfiles: [../a.xml, /etc/b.xml, /projects/challenge/c.xml, a/../d]"))
    assert manifest.result_files == ("c.xml",)
    assert len(manifest.warnings) == 3


def test_weights_that_are_no_numbers_are_left_out_and_a_wrong_sum_is_said() -> None:
    manifest = read(scoring("command: x\ntestcase_weights: {a: .5, b: hi, c: -1, d: .nan, e: inf, f: '0.1'}"))
    assert manifest.weights == {"a": 0.5, "f": 0.1}
    assert any("is 0.6 instead of 1" in warning for warning in manifest.warnings)


def test_weights_as_a_list_of_pairs_are_read() -> None:
    manifest = read(scoring("command: x\ntestcase_weights:\n  - a: 0.5\n  - scoring: 0.5"))
    assert manifest.weights == {"a": 0.5, "scoring": 0.5}
    assert manifest.command == "x"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (b"# nothing here\n", "empty"),
        (b"- a\n- b\n", "not a mapping"),
        (b"just text", "not a mapping"),
        (b"configuration: {scoring: {command: npm test", "invalid YAML"),
        (b"\x00\x01\x02\x03", "invalid YAML"),
        (b"a: 1\n" * MAX_MANIFEST_BYTES, "the limit"),
        (b"[" * 60_000, "nested deeper"),
    ],
)
def test_unreadable_files_give_an_empty_manifest_that_says_why(data: bytes, said: str) -> None:
    manifest = read_manifest(data)
    assert manifest.command == ""
    assert any(said in warning for warning in manifest.warnings)


def bomb() -> str:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(levels) + "\nconfiguration: {readonly_paths: *a11, scoring: {command: x}}\n"


@pytest.mark.parametrize(
    "text",
    [
        bomb(),
        "a: &a [*a]\n",
        "a: &a {<<: *a}\n",
        "- " * 40_000,
        "? " * 40_000,
        "a: b: " * 15_000,
        " " * 100_000 + "x",
        "x" + " " * 100_000 + "y",
        '"' * 60_001,
        "{a: " * 30_000,
        "- [" * 30_000,
        "&a " * 30_000,
        "!!python/object/apply:os.system ['false']\n",
        "x\n" * 50_000,
        "a: |\n" + " \n" * 50_000,
    ],
)
def test_hostile_text_is_read_in_moderate_time(text: str) -> None:
    with cpu_within(3):
        manifest = read(text[: MAX_MANIFEST_BYTES - 1])
    assert manifest.warnings


def test_a_few_aliases_are_honest() -> None:
    manifest = read(
        "paths: &tests [test]\nconfiguration:\n  readonly_paths: *tests\n  scoring: {command: x}\n"
    )
    assert manifest.readonly_paths == ("test",)


def project(*paths: str) -> Project:
    return Project(files=tuple(ProjectFile(path=path) for path in paths), sha256="0")


def test_the_manifest_is_found_at_the_root_in_any_case() -> None:
    found = find_manifest(project("HackerRank.yaml", "app/hackerrank.yml"))
    assert found is not None
    assert found.path == "HackerRank.yaml"
    assert find_manifest(project("app/hackerrank.yml")) is None


def test_of_several_manifests_the_exact_name_is_taken() -> None:
    found = find_manifest(project("HACKERRANK.YAML", "hackerrank.yml"))
    assert found is not None
    assert found.path == "hackerrank.yml"


LINES = [
    "configuration:",
    "  scoring:",
    "    command: npm test",
    "    files:",
    "      - unit.xml",
    "      - *.xml",
    "    testcase_weights:",
    "      {a}: 0.5",
    "  readonly_paths: [a, [b]]",
    "  readonly_paths:",
    "    - **/x",
    "\t- y",
    "---",
    "...",
    "? [a]",
    "&a [*a]",
    "<<: *a",
    "'",
    '"',
    "|",
    "",
]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=12), max_size=12), st.binary(max_size=20))
@settings(deadline=None)
def test_no_file_raises(lines: list[str], tail: bytes) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + tail
    assert isinstance(read_manifest(data), Manifest)
