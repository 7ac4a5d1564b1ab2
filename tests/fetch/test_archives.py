"""Archives from strangers: real quirks are read, hostile ones refused in one clear line."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.archives import read_archive, read_folder
from astra_async.problems.fetch.tree import build_project
from waiting import cpu_within

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Project

MANIFEST = b"version: 1.0\nconfiguration:\n  scoring:\n    command: npm test\n"


def zipped(*entries: tuple[str, bytes] | tuple[zipfile.ZipInfo, bytes], **options: int) -> bytes:
    data = io.BytesIO()
    compression = options.get("compression", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(data, "w", compression=compression, compresslevel=1) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return data.getvalue()


def unix(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    return unix(name, stat.S_IFLNK | 0o777), target.encode()


def tarred(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def member(name: str, size: int = 0, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def project(folder: Path, data: bytes) -> Project:
    path = folder / "project.zip"
    path.write_bytes(data)
    return build_project(read_archive(path))


def paths(found: Project) -> list[str]:
    return [file.path for file in found.files]


def refusal(folder: Path, data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        project(folder, data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


# --- what is kept ------------------------------------------------------------------------------------


def test_contents_executable_bits_links_and_empty_folders_are_kept(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        zipped(
            ("hackerrank.yml", MANIFEST),
            (unix("bin/env_setup", stat.S_IFREG | 0o755), b"#!/bin/bash\n"),
            ("src/", b""),
            ("src/app.js", b"\x00\xff"),
            ("output/", b""),
            link("src/alias.js", "../src/app.js"),
        ),
    )
    files = {file.path: file for file in found.files}
    assert list(files) == ["bin/env_setup", "hackerrank.yml", "src/alias.js", "src/app.js"]
    assert files["bin/env_setup"].executable
    assert not files["hackerrank.yml"].executable
    assert files["src/app.js"].content == b"\x00\xff"
    assert files["src/alias.js"].link == "../src/app.js"
    assert found.empty_folders == ("output",)
    assert found.warnings == ()


def test_the_hash_is_the_same_from_a_folder_a_zip_a_wrapped_zip_and_a_tar(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    (folder / "src").mkdir(parents=True)
    (folder / "output").mkdir()
    (folder / "hackerrank.yml").write_bytes(MANIFEST)
    (folder / "src/run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "src/run.sh").chmod(0o755)
    (folder / "alias").symlink_to("src/run.sh")
    (folder / ".DS_Store").write_bytes(b"x")
    run = (unix("src/run.sh", stat.S_IFREG | 0o755), b"#!/bin/sh\n")
    flat = zipped(("hackerrank.yml", MANIFEST), run, ("output/", b""), link("alias", "src/run.sh"))
    wrapped = zipped(
        ("p-1/output/", b""),
        link("p-1/alias", "src/run.sh"),
        (unix("p-1/src/run.sh", stat.S_IFREG | 0o755), b"#!/bin/sh\n"),
        ("p-1/hackerrank.yml", MANIFEST),
        ("__MACOSX/p-1/._hackerrank.yml", b"mac"),
        ("p-1/Thumbs.db", b"win"),
    )
    tar = tarred(
        (member("./src/run.sh", 10, mode=0o755), b"#!/bin/sh\n"),
        (member("./output", type=tarfile.DIRTYPE), b""),
        (member("./hackerrank.yml", len(MANIFEST)), MANIFEST),
        (member("./alias", type=tarfile.SYMTYPE, linkname="src/run.sh"), b""),
    )
    expected = build_project(read_folder(folder)).sha256
    assert [project(tmp_path, data).sha256 for data in (flat, wrapped, tar, gzip.decompress(tar))] == [
        expected
    ] * 4


@pytest.mark.parametrize(
    "entries",
    [
        [("a", b"2")],
        [("b", b"1")],
        [("a", b"1"), ("d/", b"")],
        [("a", b"1"), ("b", b"")],
        [(unix("a", stat.S_IFREG | 0o755), b"1")],
        [link("a", "1"), ("1", b"")],
    ],
)
def test_every_part_of_a_project_is_in_its_hash(tmp_path: Path, entries: list[tuple[str, bytes]]) -> None:
    assert project(tmp_path, zipped(*entries)).sha256 != project(tmp_path, zipped(("a", b"1"))).sha256


def test_order_dates_and_compression_are_not_in_the_hash(tmp_path: Path) -> None:
    first = zipped(("a", b"1"), ("b/c", b"2"))
    second = zipped(
        (zipfile.ZipInfo("b/c", (2001, 1, 1, 1, 1, 1)), b"2"), ("a", b"1"), compression=zipfile.ZIP_STORED
    )
    assert project(tmp_path, first) == project(tmp_path, second)


def test_folders_that_hold_something_are_not_empty(tmp_path: Path) -> None:
    found = project(
        tmp_path, zipped(("a/", b""), ("a/b/", b""), ("a/b/c/d.txt", b""), ("e/f/", b""), ("e/", b""))
    )
    assert found.empty_folders == ("e/f",)


# --- wrappers and junk -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["top/hackerrank.yml", "top/src/a.js"], ["hackerrank.yml", "src/a.js"]),
        (["x/y/HackerRank.yaml", "x/y/a.js"], ["HackerRank.yaml", "a.js"]),
        (["src/hackerrank.yml", "src/a.js"], ["a.js", "hackerrank.yml"]),
        (["challenge-main/package.json", "challenge-main/a.js"], ["a.js", "package.json"]),
        (["src/a.js", "src/b.js"], ["src/a.js", "src/b.js"]),
        (["top/a.js", "README.md"], ["README.md", "top/a.js"]),
        (["top/hackerrank.yml", "other/b"], ["other/b", "top/hackerrank.yml"]),
        (["only.txt"], ["only.txt"]),
    ],
)
def test_a_single_wrapper_folder_is_taken_off(tmp_path: Path, names: list[str], kept: list[str]) -> None:
    assert paths(project(tmp_path, zipped(*[(name, b"") for name in names]))) == kept


def test_history_and_junk_are_left_out_and_history_is_told_of(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        zipped(
            ("a.js", b""),
            (".git/config", b"secret"),
            ("sub/.git", b"gitdir: x"),
            ("sub/.gitignore", b""),
            ("__MACOSX/._a.js", b""),
            ("sub/.DS_Store", b""),
            ("Thumbs.db", b""),
        ),
    )
    assert paths(found) == ["a.js", "sub/.gitignore"]
    assert found.warnings == ("the project's .git was omitted",)


@pytest.mark.parametrize(
    "junk",
    ["._proj", "desktop.ini", "ehthumbs.db", ".DS_Store", "__MACOSX/._proj", "proj/src/Icon\r", "Icon\r"],
)
def test_what_file_managers_leave_hides_no_wrapper_folder(tmp_path: Path, junk: str) -> None:
    files = [
        ("proj/._hackerrank.yml", b"\0"),
        ("proj/hackerrank.yml", MANIFEST),
        ("proj/a.js:Zone.Identifier", b""),
    ]
    names = [(junk, b"\x00\x05\x16\x07"), *files, ("proj/src/app.js", b"1")]
    found = project(tmp_path, zipped(*names))
    assert paths(found) == ["hackerrank.yml", "src/app.js"]
    found = project(tmp_path, tarred(*((member(name, len(content)), content) for name, content in names)))
    assert paths(found) == ["hackerrank.yml", "src/app.js"]


def test_names_that_differ_in_their_unicode_form_alone_are_told(tmp_path: Path) -> None:
    found = project(tmp_path, zipped(("caf\u00e9", b"1"), ("cafe\u0301", b"2")))
    assert len(found.files) == 2
    assert found.warnings == (
        "caf\u00e9 and cafe\u0301 differ in the form of their accents only; both were kept",
    )


def test_the_history_of_a_folder_is_not_even_read(tmp_path: Path) -> None:
    (tmp_path / "p/.git").mkdir(parents=True)
    (tmp_path / "p/a.js").write_bytes(b"")
    os.mkfifo(tmp_path / "p/.git/pipe")
    found = build_project(read_folder(tmp_path / "p"))
    assert paths(found) == ["a.js"]
    assert found.warnings == ("the project's .git was omitted",)


# --- names -------------------------------------------------------------------------------------------


def test_backslashes_of_windows_archives_divide_folders(tmp_path: Path) -> None:
    found = project(tmp_path, zipped(("src\\app\\a.js", b"1"), ("output\\", b""), ("b.js", b"")))
    assert paths(found) == ["b.js", "src/app/a.js"]
    assert found.empty_folders == ("output",)


def raw_name(name: bytes, *, flag: bool) -> bytes:
    """A zip whose single entry has exactly these bytes for its name."""
    data = zipped(("N" * len(name), b"x"))
    data = data.replace(b"N" * len(name), name)
    return (
        data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x08")
        if flag
        else data
    )


def test_names_are_utf_8_flagged_or_not_and_else_cp437(tmp_path: Path) -> None:
    assert paths(project(tmp_path, zipped(("größe.js", b"")))) == ["größe.js"]
    assert paths(project(tmp_path, raw_name("größe.js".encode(), flag=False))) == ["größe.js"]
    assert paths(project(tmp_path, raw_name("größe.js".encode("cp437"), flag=False))) == ["größe.js"]


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "a/..",
        "..\\evil",
        "/etc/passwd",
        "\\\\server\\share",
        "C:\\evil",
        "c:/evil",
        "C:",
    ],
)
def test_paths_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    assert (
        "absolute path" in (said := refusal(tmp_path, zipped((name, b"x"), ("b", b""))))
        or "leads out" in said
    )


def test_a_colon_in_a_name_is_no_drive(tmp_path: Path) -> None:
    assert paths(project(tmp_path, zipped(("a:b.txt", b""), ("x/c:/d", b"")))) == ["a:b.txt", "x/c:/d"]


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\x7f"])
def test_control_characters_in_names_are_refused(tmp_path: Path, name: str) -> None:
    assert "invalid file name" in refusal(tmp_path, zipped((name, b"x")))


@pytest.mark.parametrize("name", ["x" * 256, "y/" * 2_500 + "z", "d/" * 101 + "z"])
def test_names_too_long_or_too_deep_are_refused(tmp_path: Path, name: str) -> None:
    assert "is too long" in refusal(tmp_path, zipped((name, b"x"), ("b", b"")))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")  # zipfile notices what this test makes
def test_of_duplicates_the_last_is_taken_and_of_case_twins_both(tmp_path: Path) -> None:
    found = project(tmp_path, zipped(("a", b"1"), ("a", b"2"), ("./a", b"3"), ("A", b"4")))
    assert {file.path: file.content for file in found.files} == {"a": b"3", "A": b"4"}
    assert found.warnings == (
        "a appears more than once; the last was used",
        "a appears more than once; the last was used",
        "a and A differ in case only; both were kept",
    )


def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is not a folder" in refusal(tmp_path, zipped(("a", b"1"), ("a/b", b"2")))
    assert "is not a folder" in refusal(tmp_path, zipped(link("a", "d"), ("a/b", b"2"), ("d/x", b"")))


# --- links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["b", "./b", "d/../b", "missing", "d", ".", "d/up/b"])
def test_links_that_stay_inside_are_kept(tmp_path: Path, target: str) -> None:
    found = project(tmp_path, zipped(link("a", target), ("b", b""), ("d/c", b""), link("d/up", "..")))
    assert found.files[0].link == target


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "..", "../x", "d/../../x", "d/up/../x", "", "..\\x", "d/loop", "a\x00b", "\x1b[0m"],
)
def test_links_that_lead_out_or_nowhere_are_refused(tmp_path: Path, target: str) -> None:
    archive = zipped(link("a", target), ("b", b""), ("d/c", b""), link("d/up", ".."), link("d/loop", "loop"))
    assert "leads out" in refusal(tmp_path, archive)


def test_links_that_double_at_every_step_are_refused_in_time(tmp_path: Path) -> None:
    chain = [link(f"l{n}", f"l{n + 1}/l{n + 1}/l{n + 1}/l{n + 1}") for n in range(60)]
    with cpu_within(2):
        assert "leads out" in refusal(tmp_path, zipped(*chain, ("l60", b"")))


def test_a_wrapper_does_not_make_room_for_a_link_to_leave(tmp_path: Path) -> None:
    assert "leads out" in refusal(tmp_path, zipped(link("top/a", "../b"), ("top/hackerrank.yml", b"")))


def test_links_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "p/a.js").write_bytes(b"")
    (tmp_path / "p/out").symlink_to(tmp_path / "secret")
    with pytest.raises(ArchiveError, match="leads out"):
        build_project(read_folder(tmp_path / "p"))


# --- bombs -------------------------------------------------------------------------------------------


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    data = zipped(*[(f"f{n}", b"") for n in range(50_001)], compression=zipfile.ZIP_STORED)
    assert "more than 50,000 entries" in refusal(tmp_path, data)


def test_one_file_too_large_is_refused(tmp_path: Path) -> None:
    assert "larger than 64 MiB" in refusal(tmp_path, zipped(("zeros", bytes(65 * 1024**2))))


def test_too_many_bytes_in_all_are_refused(tmp_path: Path) -> None:
    data = zipped(*[(f"f{n}", bytes(60 * 1024**2)) for n in range(9)])
    assert len(data) < 4 * 1024**2
    assert "larger than 512 MiB" in refusal(tmp_path, data)


def test_a_gzip_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    part = gzip.compress(bytes(50 * 1024**2), compresslevel=1)  # gzip files may be strung together
    assert "more than 512 MiB" in refusal(tmp_path, part * 14)


def test_headers_that_understate_a_size_do_not_help(tmp_path: Path) -> None:
    data = zipped(("zeros", bytes(1024**2)))
    lying = data.replace(struct.pack("<I", 1024**2), struct.pack("<I", 10))
    assert "broken" in refusal(tmp_path, lying)


def test_an_announced_directory_of_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    data = bytearray(zipped(("a", b"")))
    at = data.rindex(b"PK\x05\x06")
    data[at + 12 : at + 16] = struct.pack("<I", 3 * 1024**3)
    assert "directory is too large" in refusal(tmp_path, bytes(data))


# --- broken and strange ------------------------------------------------------------------------------


def test_a_damaged_content_is_told(tmp_path: Path) -> None:
    data = bytearray(zipped(("a.js", b"content" * 100), compression=zipfile.ZIP_STORED))
    data[data.index(b"content") + 3] ^= 1
    assert "broken: Bad CRC-32 for file 'a.js'" in refusal(tmp_path, bytes(data))


def test_a_cut_archive_is_told(tmp_path: Path) -> None:
    data = zipped(("a.js", os.urandom(5_000)))
    assert "broken" in refusal(tmp_path, data[:-30])
    tar = tarred((member("a", 5_000), os.urandom(5_000)))
    assert "broken" in refusal(tmp_path, tar[:-400])
    plain = gzip.decompress(tar)
    assert "broken" in refusal(tmp_path, plain[:3_000])
    assert "broken" in refusal(tmp_path, plain[: 512 + 5_120])


def test_an_encrypted_archive_is_told(tmp_path: Path) -> None:
    data = bytearray(zipped(("a.js", b"x")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    assert "encrypted" in refusal(tmp_path, bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compressions_are_refused(tmp_path: Path, method: int) -> None:
    assert "unsupported compression" in refusal(tmp_path, zipped(("a", b"x"), compression=method))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\n<!DOCTYPE html><html>Sign in</html>", "HTML page"),
        (b"<html>404</html>", "HTML page"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "is XML"),
        (b"Rar!\x1a\x07", "not a .zip"),
        (
            b"--- a/calc.py\n+++ b/calc.py\n",
            "the file is a diff; apply it to a copy of the project",
        ),
        (b"diff --git a/calc.py b/calc.py\n", "the file is a diff"),
        (b"PK\x05\x06" + bytes(18), "has no files"),
        (b"\x1f\x8bgarbage", "broken"),
    ],
)
def test_what_is_no_archive_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refusal(tmp_path, data)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": tarfile.LNKTYPE, "linkname": "b"},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.BLKTYPE},
        {"type": tarfile.FIFOTYPE},
    ],
)
def test_hard_links_and_devices_are_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert "only files, folders and symbolic links" in refusal(
        tmp_path, tarred((member("b"), b""), (member("x", **fields), b""))
    )


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_special_files_in_a_zip_are_refused(tmp_path: Path, kind: int) -> None:
    assert "not a file" in refusal(tmp_path, zipped((unix("x", kind | 0o644), b"")))


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArchiveError, match="not a file"):
        build_project(read_folder(tmp_path))


def test_a_tar_with_long_names_is_read(tmp_path: Path) -> None:
    name = "d" * 120 + "/" + "e" * 120 + "/größe.txt"
    for fmt in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz", format=fmt) as archive:
            archive.addfile(member(name, 1), io.BytesIO(b"x"))
            archive.addfile(member("b"), io.BytesIO())
        assert paths(project(tmp_path, data.getvalue())) == ["b", name]


@pytest.mark.parametrize("content", [b"1" * 60_000, b"x" * 70_000])
def test_strange_extended_headers_are_refused_in_time(tmp_path: Path, content: bytes) -> None:
    data = tarred((member("pax", len(content), type=tarfile.XHDTYPE), content), (member("a"), b""), mode="w")
    with cpu_within(1):
        assert "too large or suspicious" in refusal(tmp_path, data)


def test_a_chain_of_extended_headers_is_refused(tmp_path: Path) -> None:
    headers = [(member("pax", 12, type=tarfile.XHDTYPE), b"12 comment=\n")] * 5_000
    assert "broken" in refusal(tmp_path, tarred(*headers, (member("a"), b""), mode="w"))


@given(data=st.binary(max_size=600), cut=st.integers(0, 600), flip=st.integers(0, 4_000))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_archives_raise_nothing_but_archive_errors(
    tmp_path: Path, data: bytes, cut: int, flip: int
) -> None:
    for whole in (
        zipped(("a", b"x" * 300), ("b/c", data), link("l", "a")),
        tarred((member("a", len(data)), data), (member("b", type=tarfile.DIRTYPE), b""), mode="w"),
    ):
        broken = bytearray(whole)
        broken[flip % len(broken)] ^= 1 + cut % 255
        broken[cut % len(broken) : cut % len(broken) + cut % 7] = data[: cut % 11]
        path = tmp_path / "p"
        path.write_bytes(bytes(broken))
        try:
            build_project(read_archive(path))
        except ArchiveError:
            continue
