"""What is text, and what it was saved in."""

from __future__ import annotations

import gzip

import pytest

from astra_async.problems.sources import SourceText, as_utf8, source_text


@pytest.mark.parametrize(
    ("content", "text", "encoding"),
    [
        (b"", "", ""),
        ("\ufeffgr\u00f6\u00dfe\n".encode(), "\ufeffgr\u00f6\u00dfe\n", ""),
        (
            "// caf\u00e9 \u20ac\r\n\t\f\x1a".encode("cp1252"),
            "// caf\u00e9 \u20ac\r\n\t\f\x1a",
            "windows-1252",
        ),
        (b"\xff\xfex\0\n\0", "x\n", "UTF-16"),
        (b"\xfe\xff\0x\0\n", "x\n", "UTF-16"),
        ("\u65e5\u672c".encode("utf-16"), "\u65e5\u672c", "UTF-16"),
    ],
)
def test_text_is_read_as_it_was_saved(content: bytes, text: str, encoding: str) -> None:
    assert source_text(content) == SourceText(text, encoding)
    assert as_utf8(content) == text.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"a\0b",
        b"\x89PNG\xff",
        b"\xff\xfex",
        b"\xff\xfe\x00\xd8x\x00",
        b"\xff\xfe\0\0x\0\0\0",
        b"caf\xe9 \x90 and so on",
        b"caf\xe9 \x01 and so on",
        gzip.compress(b"x", mtime=0),
        "\u041f\u0440\u0438\u0432\u0435\u0442".encode("koi8-r"),
        "\u30b3\u30e1\u30f3\u30c8".encode("shift-jis"),
    ],
)
def test_what_no_rule_reads_is_binary_and_stays_as_it_is(content: bytes) -> None:
    assert source_text(content) is None
    assert as_utf8(content) == content
