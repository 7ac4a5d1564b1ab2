"""What an agent leaves becomes an answer's text: every kind of entry that a tar can hold."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.agents import left_behind
from astra_async.agents.left_behind import Answer, LeftBehind, unreadable
from astra_async.types import ProjectFile

if TYPE_CHECKING:
    from collections.abc import Mapping

GIVEN = {
    each.path: each
    for each in (
        ProjectFile(path="src/app.js", content=b"old\n"),
        ProjectFile(path="run.sh", content=b"#!/bin/sh\n", executable=True),
        ProjectFile(path="latin.txt", content="früh".encode("cp1252")),
        ProjectFile(path="current", link="src"),
        ProjectFile(path="debug.log", content=b"given\n"),
    )
}


NOTHING: dict[str, Any] = {"files": {}, "binary": {}, "executable": [], "deleted": [], "before": {}}
Entry = tuple[tarfile.TarInfo, bytes]


def entry(
    path: str, content: bytes = b"", *, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, to: str = ""
) -> Entry:
    info = tarfile.TarInfo(path)
    info.size, info.mode, info.type, info.linkname = len(content), mode, kind, to
    return info, content


def left(*entries: Entry, kept: Mapping[str, str] | None = None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What entries come to, beside the given files that `untouched` stands for."""
    found = LeftBehind(GIVEN, kept or {})
    for info, content in entries:
        if info.islnk():
            found.link(info.name, info.linkname)
        else:
            found.take(info.name, info, content if found.wants(info.name, info) else b"")
    answer = found.answer().chosen(lambda _: None)
    assert answer.text == json.dumps(
        json.loads(answer.text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return json.loads(answer.text), answer.left_out


def untouched(*but: str) -> list[Entry]:
    return [
        entry(each.path, kind=tarfile.SYMTYPE, to=each.link)
        if each.link
        else entry(each.path, each.content, mode=0o755 if each.executable else 0o644)
        for each in GIVEN.values()
        if each.path not in but
    ]


def test_an_untouched_project_is_an_empty_answer() -> None:
    found, notes = left(entry("src", kind=tarfile.DIRTYPE), *untouched())
    assert found == NOTHING
    assert notes == ()


def test_changed_new_deleted_renamed_and_binary_files() -> None:
    found, notes = left(
        *untouched("src/app.js", "run.sh", "latin.txt"),
        entry("src/app.js", b"new\n"),
        entry("bin/run.sh", b"#!/bin/sh\n", mode=0o755),
        entry("latin.txt", "spät".encode("cp1252")),
        entry("icon.png", b"\x89PNG\0"),
        entry("späte.txt", "ü\u2028".encode()),
    )
    assert found["files"] == {"src/app.js": "new\n", "bin/run.sh": "#!/bin/sh\n", "späte.txt": "ü\u2028"}
    assert found["binary"] == {"icon.png": "iVBORwA=", "latin.txt": "c3DkdA=="}
    assert found["executable"] == ["bin/run.sh"]
    assert found["deleted"] == ["run.sh"]
    assert notes == ()


def test_a_bit_alone_is_a_change() -> None:
    found, _ = left(*untouched("src/app.js"), entry("src/app.js", b"old\n", mode=0o755))
    assert found["files"] == {"src/app.js": "old\n"}
    assert found["executable"] == ["src/app.js"]


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (entry("etc", kind=tarfile.SYMTYPE, to="/etc"), "a symbolic link: etc"),
        (entry("pipe", kind=tarfile.FIFOTYPE), "a FIFO: pipe"),
        (entry("disk", kind=tarfile.BLKTYPE), "a device: disk"),
        (entry("b\udcff", b"x"), "a name that is not UTF-8"),
        (entry("node_modules/a/index.js", b"x"), "node_modules/: node_modules/a/index.js"),
        (entry("a/__pycache__/b.js", b"x"), "__pycache__/: a/__pycache__/b.js"),
        (entry("a/.git/config", b"x"), ".git/: a/.git/config"),
        (entry(".aider.chat.history.md", b"x"), ".aider*: .aider.chat.history.md"),
    ],
)
def test_what_is_no_part_of_an_answer_is_named(odd: Entry, why: str) -> None:
    found, notes = left(*untouched(), odd)
    assert found == NOTHING
    assert notes[0].startswith(why)


def test_the_repository_that_an_agent_is_given_is_not_named() -> None:
    assert left(*untouched(), entry(".git/config", b"x")) == (NOTHING, ())


def test_a_given_file_counts_whatever_its_name_and_one_that_became_a_link_is_gone() -> None:
    found, notes = left(
        *untouched("debug.log", "src/app.js"),
        entry("debug.log", b"changed\n"),
        entry("src/app.js", kind=tarfile.SYMTYPE, to="/etc/passwd"),
    )
    assert found["files"] == {"debug.log": "changed\n"}
    assert found["deleted"] == ["src/app.js"]
    assert notes == ("a symbolic link: src/app.js",)


def link(path: str, to: str) -> Entry:
    return entry(path, kind=tarfile.SYMTYPE, to=to)


def test_symbolic_links_inside_the_project_are_recorded_as_copies() -> None:
    found, notes = left(
        link("alias.js", "src/app.js"),  # before its target in the archive
        *untouched("run.sh"),
        entry("run.sh", b"#!/bin/sh\nls\n", mode=0o755),
        entry("lib/deep/one.js", b"one\n"),
        link("src/run", "../run.sh"),
        link("src/deep", "../lib/deep"),
        link("chain", "alias.js"),
        link("lib/absolute.js", "/projects/challenge/src/app.js"),
        link("lib/folder", "/projects/challenge/lib/deep"),
    )
    assert found["files"] == {
        "alias.js": "old\n",
        "chain": "old\n",
        "lib/absolute.js": "old\n",
        "lib/folder/one.js": "one\n",
        "lib/deep/one.js": "one\n",
        "run.sh": "#!/bin/sh\nls\n",
        "src/deep/one.js": "one\n",
        "src/run": "#!/bin/sh\nls\n",
    }
    assert found["executable"] == ["run.sh", "src/run"]
    assert (found["deleted"], notes) == ([], ())


@pytest.mark.parametrize(
    "to",
    [
        *("/etc/passwd", "/projects/challenge", "/projects/challenge/../a", "../../etc/passwd"),
        *("..", "../..", ".", "../src"),
        *("missing", "loop", "other", "../.git/config", "../node_modules/a/index.js", "a\udcff", ""),
    ],
)
def test_other_symbolic_links_are_left_out(to: str) -> None:
    found, notes = left(
        *untouched(),
        entry(".git/config", b"[core]\n"),
        entry("node_modules/a/index.js", b"a\n"),
        link("src/other", "loop"),
        link("src/loop", to),
    )
    assert found == NOTHING
    assert any("a symbolic link: src/" in note for note in notes)


def test_links_that_multiply_files_have_a_limit() -> None:
    links = [link(f"l{number}", "many") for number in range(1000)]
    found, notes = left(*untouched(), *(entry(f"many/{number}.js", b"x") for number in range(900)), *links)
    assert len(found["files"]) == left_behind.MOST_FILES
    assert notes


def test_hard_links_are_the_files_that_they_lead_to() -> None:
    found, notes = left(
        entry("a.js", b"new\n", mode=0o755),
        *untouched("src/app.js"),
        entry("src/app.js", kind=tarfile.LNKTYPE, to="a.js"),
        entry("src/copy.sh", kind=tarfile.LNKTYPE, to="run.sh"),
        entry("src/far", kind=tarfile.LNKTYPE, to="node_modules/x"),
    )
    assert found["files"] == {"a.js": "new\n", "src/app.js": "new\n", "src/copy.sh": "#!/bin/sh\n"}
    assert found["executable"] == ["a.js", "src/app.js", "src/copy.sh"]
    assert found["deleted"] == []
    assert notes == ("a hard link to a file that is left out: src/far",)


def test_what_the_image_keeps_there_is_nobodys_work_until_it_changes() -> None:
    kept = {
        "lib/a.js": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",  # of x
        "lib/b.js": "0" * 64,
        "node_modules/c.js": "",
    }
    entries = [entry(path, b"x") for path in kept]
    found, notes = left(*untouched(), *entries, kept=kept)
    assert found["files"] == {"lib/b.js": "x"}
    assert notes == ()


def test_sizes_and_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "FILE_BYTES", 10)
    monkeypatch.setattr(left_behind, "ALL_BYTES", 25)
    monkeypatch.setattr(left_behind, "MOST_FILES", 3)
    huge = [entry(name, b"x" * 11) for name in ("huge.js", "src/app.js")]
    some = [entry(f"{name}.js", b"x" * 10) for name in "abc"]
    found, notes = left(*untouched("src/app.js"), *huge, *some, entry("d.js", b""), entry("e.js", b""))
    assert sorted(found["files"]) == ["a.js", "b.js", "d.js"]
    assert found["deleted"] == []
    assert notes == (
        "larger than 10 bytes: huge.js",
        "larger than 10 bytes: src/app.js",
        "beyond 3 files or 25 bytes: c.js",
        "beyond 3 files or 25 bytes: e.js",
    )


def test_changes_of_the_project_come_before_new_files_and_ignored_files_come_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_behind, "MOST_FILES", 2)
    given = {path: ProjectFile(path=path, content=text) for path, text in
             ((".gitignore", b"out/\n"), ("z.js", b"old"))}  # fmt: skip
    behind = LeftBehind(given, {})
    for each, content in (entry("out/a.txt", b"x"), entry("b.js", b"x"), entry("z.js", b"new"),
                          entry(".gitignore", b"out/\n")):  # fmt: skip
        behind.take(each.name, each, content)
    answer = behind.answer().chosen(lambda _: None)
    assert sorted(json.loads(answer.text)["files"]) == ["b.js", "z.js"]
    assert answer.left_out == (f"beyond 2 files or {left_behind.ALL_BYTES:,} bytes: out/a.txt",)


def test_new_files_in_places_of_generated_files_are_part_of_the_answer() -> None:
    paths = [
        "src/obj/answer.txt",
        "target/a.txt",
        "coverage/a.txt",
        "build/a.txt",
        "a.log",
        "a.map",
        "a.min.js",
    ]
    found, notes = left(*untouched(), *(entry(path, b"x") for path in paths))
    assert sorted(found["files"]) == sorted(paths)
    assert notes == ()


def test_the_state_of_build_tools_is_left_out() -> None:
    paths = ["target/test-classes/a.json", "a/target/maven-status/b.lst", "a/obj/project.assets.json"]
    found, notes = left(*untouched(), *(entry(path, b"x") for path in paths))
    assert found == NOTHING
    assert len(notes) == len(paths)


def chosen(paths: list[str], *, refused: str = "-") -> Answer:
    behind = LeftBehind(GIVEN, {})
    for info, content in (*untouched(), *(entry(path, b"x") for path in paths)):
        behind.take(info.name, info, content if behind.wants(info.name, info) else b"")
    return behind.answer().chosen(lambda path: "compiled" if path.endswith(refused) else None)


def test_build_output_takes_no_places_from_the_work() -> None:
    output = [f"build/{number}.o" for number in range(1200)]
    answer = chosen([*output, "build/answer.txt", "src/answer.txt", "tests/z.txt"], refused=".o")
    files = json.loads(answer.text)["files"]
    assert {"build/answer.txt", "src/answer.txt", "tests/z.txt"} <= files.keys()
    assert len(files) == left_behind.MOST_FILES
    assert answer.lost == 0


def test_files_that_the_rules_refuse_take_no_places() -> None:
    refused = [f"a/{number}.spec.js" for number in range(1200)]
    answer = chosen([*refused, "dist/a.js", "src/z.js"], refused=".spec.js")
    assert {"dist/a.js", "src/z.js"} <= json.loads(answer.text)["files"].keys()
    assert answer.lost == 0
    assert chosen(refused, refused="-").lost == len(refused) - left_behind.MOST_FILES


def test_a_large_folder_of_generated_files_is_read_with_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_behind, "READ_FILES", 10)
    kept = LeftBehind({}, {})
    for number in range(18_000):
        info, content = entry(f"dist/{number}.js", b"x")
        kept.take(info.name, info, content)
    kept.take("src/a.js", *entry("src/a.js", b"x"))
    answer = kept.answer().chosen(lambda _: None)
    assert len(json.loads(answer.text)["files"]) == left_behind.MOST_FILES
    assert "src/a.js" in json.loads(answer.text)["files"]
    assert len(answer.left_out) == 201
    assert answer.left_out[-1].endswith(" bytes: 16,801 more")


def test_every_reason_is_recorded_with_its_paths_and_their_number() -> None:
    reasons = ["venv/", "node_modules/", ".git/", ".next/", ".nuxt/", ".gradle/", ".mvn/", ".hg/", ".svn/"]
    reasons += [".claude/", ".codex/", ".cache/", ".npm/"]
    links = [link("etc", "/etc/passwd"), link("loop", "pool"), link("pool", "loop")]
    many = [entry(f"venv/{number:03}", b"x") for number in range(500)]
    found, notes = left(*untouched(), *(entry(f"a/{each}x", b"x") for each in reasons), *links, *many)
    assert found == NOTHING
    assert {note.partition(": ")[0] for note in notes} == {*reasons, "a symbolic link"}
    assert {f"a symbolic link: {each}" for each in ("etc", "loop", "pool")} <= set(notes)
    assert len([note for note in notes if note.startswith("venv/")]) == 201
    assert "venv/: 301 more" in notes


@pytest.mark.parametrize(("path", "lost"), [("etc", 1), ("node_modules/.bin/a", 0), ("dist/a", 0)])
def test_generated_files_do_not_count_as_lost(path: str, lost: int) -> None:
    behind = LeftBehind({}, {})
    behind.take(path, *link(path, "/etc"))
    answer = behind.answer().chosen(lambda _: None)
    assert (len(answer.left_out), answer.lost) == (1, lost)


def test_a_folder_that_cannot_be_read_is_an_empty_answer_with_the_reason() -> None:
    answer = unreadable("goes on and on")
    assert json.loads(answer.text) == NOTHING
    assert answer.left_out == ("the project's folder: goes on and on",)


def test_names_that_a_terminal_would_obey_are_not_passed_on() -> None:
    _, notes = left(*untouched(), entry("a\x1b[2Jb", kind=tarfile.FIFOTYPE))
    assert "\x1b" not in notes[0]
