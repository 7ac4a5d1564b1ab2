"""A tar read as it arrives says what Python's own reader says of it."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from astra_async.testing.sandbox.resultfiles import entries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONG = "folder/" * 30 + "file"


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("piece", [1, 511, 10**6])
async def test_long_names_and_long_links_are_whole(form: int, piece: int) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=form) as tar:
        for name, kind, link in (
            (LONG, tarfile.REGTYPE, ""),
            ("hard", tarfile.LNKTYPE, LONG),
            (f"{LONG}2", tarfile.SYMTYPE, f"{LONG}3"),
            ("ü", tarfile.REGTYPE, ""),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, io.BytesIO(b"abc"))

    async def pieces() -> AsyncIterator[bytes]:
        content = packed.getvalue()
        for at in range(0, len(content), piece):
            yield content[at : at + piece]

    found = entries(pieces(), lambda _: True, most_bytes=10**7)
    assert ([(e.name, e.type, e.linkname, e.size, content) async for e, content in found]) == [
        (LONG, tarfile.REGTYPE, "", 3, b"abc"),
        ("hard", tarfile.LNKTYPE, LONG, 0, b""),
        (f"{LONG}2", tarfile.SYMTYPE, f"{LONG}3", 0, b""),
        ("ü", tarfile.REGTYPE, "", 3, b"abc"),
    ]
