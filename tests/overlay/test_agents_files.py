"""Tests of an agent's recorded files in the tested project: changes, deletions, binary contents, modes."""

from __future__ import annotations

import io
import tarfile
from base64 import b64encode

import orjson
import pytest
from test_merge import APP, POLICY, PROJECT

from astra_async.answers.lenient import LenientParser, read_answer
from astra_async.answers.reading import read_agents_files
from astra_async.overlay import integrate, project_archive
from astra_async.types import Dropped, FileChange, Integrated, Solution, Unusable
from astra_async.view.replay import replayed


def left(**fields: object) -> str:
    return orjson.dumps(fields).decode()


def applied(text: str) -> Integrated:
    solution = read_agents_files(text)
    assert isinstance(solution, Solution), solution
    integrated = integrate(PROJECT, solution, POLICY)
    assert isinstance(integrated, Integrated), integrated
    return integrated


def unpacked(integrated: Integrated) -> dict[str, tuple[int, bytes]]:
    archive = io.BytesIO(project_archive(PROJECT, integrated.files))
    with tarfile.open(fileobj=archive) as tar:
        return {
            entry.name: (entry.mode, file.read())
            for entry in tar
            if entry.isreg() and (file := tar.extractfile(entry))
        }


def test_changes_deletions_and_bytes_reach_the_project_that_is_tested() -> None:
    integrated = applied(
        left(
            files={"src/new.js": "1;\n", "bin/tool": "#!/bin/sh\n"},
            binary={"public/logo.png": b64encode(b"\x89PNG\xff").decode()},
            deleted=("src/app.js",),
        )
    )
    found = unpacked(integrated)
    assert "src/app.js" not in found
    assert found["public/logo.png"] == (0o644, b"\x89PNG\xff")
    assert found["bin/tool"] == (0o755, b"#!/bin/sh\n")
    assert FileChange(path="src/app.js", added=0, removed=3, kind="deleted") in integrated.changes
    assert (integrated.files_changed, integrated.files["src/app.js"]) == (4, None)


def test_executable_bits_that_an_agent_sets_and_removes_reach_the_tests() -> None:
    integrated = applied(
        left(
            files={"src/app.js": APP, "bin/new": "run\n", "bin/plain": "#!/bin/sh\n", "test/app.spec.js": ""},
            executable=["src/app.js", "bin/new", "test/app.spec.js"],
        )
    )
    found = unpacked(integrated)
    modes = {path: found[path][0] for path in ("src/app.js", "bin/new", "bin/plain", "test/app.spec.js")}
    assert modes == {"src/app.js": 0o755, "bin/new": 0o755, "bin/plain": 0o644, "test/app.spec.js": 0o644}
    assert FileChange(path="src/app.js", added=0, removed=0, kind="changed") in integrated.changes


FIELDS: tuple[dict[str, list[str]], ...] = ({"executable": ["bin/tool"]}, {"executable": []}, {})


def test_a_changed_mode_changes_the_hash_of_a_solution() -> None:
    hashes = {
        applied(left(files={"bin/tool": text}, **fields)).sha256
        for text in ("#!/bin/sh\n", "run\n")
        for fields in FIELDS
    }
    assert len(hashes) == 4  # a record without `executable` has the hash of the mode that the rule gives


def test_a_record_without_executable_bits_follows_the_rule_for_single_answers() -> None:
    integrated = applied(left(files={"bin/tool": "#!/bin/sh\n", "src/app.js": APP}))
    assert unpacked(integrated)["bin/tool"][0] == 0o755
    assert integrated.files_changed == 1


def test_the_viewer_shows_a_change_of_mode_as_recorded() -> None:
    text = left(files={"src/app.js": APP}, executable=["src/app.js"], before={"src/app.js": APP})
    integrated = applied(text)
    result = {
        "changes": [{"path": each.path, "kind": each.kind} for each in integrated.changes],
        "solution_sha256": integrated.sha256,
    }
    found = replayed([read_agents_files(text)], None, result)
    assert [(each.path, each.kind, each.unified) for each in found.files] == [("src/app.js", "changed", "")]
    assert found.note == ""


def test_a_file_that_may_not_be_changed_may_not_be_deleted_either() -> None:
    integrated = applied(left(files={"src/app.js": "1;\n"}, deleted=("test/app.spec.js", "package.json")))
    assert {(each.path, each.reason) for each in integrated.dropped} == {
        ("test/app.spec.js", "protected_test"),
        ("package.json", "not_deletable"),
    }
    assert {"test/app.spec.js", "package.json"} <= unpacked(integrated).keys()


def test_only_deletions_are_a_solution_and_nothing_at_all_is_none() -> None:
    assert applied(left(deleted=("src/app.js",))).files == {"src/app.js": None}
    assert read_agents_files(left()) == Unusable(failure="no_change", reason="the answer changes no file")


def test_bytes_in_place_of_a_file_that_is_merged_by_lines_are_dropped() -> None:
    integrated = applied(left(files={"src/app.js": "1;\n"}, binary={".env": b64encode(b"\xff\xfe").decode()}))
    assert integrated.dropped == (Dropped(path=".env", reason="no_text"),)


def test_paths_are_meant_as_they_lie_in_the_container() -> None:
    """A model's `app/src/app.js` may mean `src/app.js`; an agent's is a file of its own."""
    integrated = applied(left(files={"shop/src/app.js": "1;\n", " x.js": "2;\n"}))
    assert integrated.files.keys() == {"shop/src/app.js", " x.js"}


def test_a_solution_without_a_file_hashes_otherwise_than_with_an_empty_one() -> None:
    without, empty = applied(left(deleted=("src/app.js",))), applied(left(files={"src/app.js": ""}))
    assert without.sha256 != empty.sha256


@pytest.mark.parametrize("text", ["", "[]", "{", '{"binary": {"a": "?"}}'])
async def test_a_damaged_record_is_no_verdict_on_the_agent(text: str) -> None:
    async def read() -> None:
        async with LenientParser() as lenient:
            await read_answer(text, "shell", "stop", lenient)

    with pytest.raises(ValueError, match="restore completions"):
        (await read())
