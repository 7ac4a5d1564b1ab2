"""Cache file with the packed columns of results.jsonl, for fast loading of a run.

The cache (called sidecar) may be deleted at any time; results.jsonl is authoritative. The sidecar is used
only if the bytes of results.jsonl that it was made from are unchanged: the file has the same stamp, or these
bytes have the same SHA-256. An invalid sidecar is ignored, so it can cost time but cannot change a number.
The file is replaced atomically; several processes may read and write it while a run appends to results.jsonl.

Layout: a line of JSON (see `_Header`), the packed rows, the SHA-256 of both.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from astra_async.errors import StorageError
from astra_async.files import file_mode, is_whole, open_regular, storage_error, write_atomically
from astra_async.report.packed_row import ROW_DTYPE, ROW_MEANING
from astra_async.report.packing import Columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from astra_async.report.run_settings import RunSettings

NAME = ".results.columns"
# Parsing fewer bytes is as fast as writing a sidecar.
_WORTH_BYTES = 4 << 20
_BLOCK_BYTES = 1 << 20
_ROWS_AT_ONCE = 1 << 14
# A file can change again within one tick of the file system's clock, without a change of its stamp.
_TICK_NS = 2_000_000_000

Stamp = tuple[int, int, int, int, int]


class _Header(msgspec.Struct, kw_only=True):
    """Origin of the rows: the first `lines` lines of results.jsonl, under one plan.

    `parts` are (number of bytes, SHA-256) of consecutive pieces of these lines. `stamp` is the stamp of
    results.jsonl at the time `stamped_ns` (nanoseconds since 1970), before the last of these lines was read.
    """

    meaning: str
    plan: list[Any]
    lines: int
    parts: list[tuple[int, str]]
    stamp: Stamp
    stamped_ns: int
    rows: int
    state: dict[str, Any]


def read_columns(directory: Path, settings: RunSettings) -> Columns:
    """Return the columns of a run directory, using the sidecar, and rewrite the sidecar if that saves time.

    Raises StorageError, and ConflictError as `Columns.read`.
    """
    path = directory / "results.jsonl"
    try:
        stream = os.fdopen(open_regular(path), "rb", _BLOCK_BYTES)
    except FileNotFoundError:
        return Columns(settings, path)
    except OSError as error:
        raise storage_error(path, error) from error
    with stream:
        stamp, stamped_ns = _stamp(stream), time.time_ns()
        kept = _read_sidecar(directory, settings, stream)
        columns, lines, parts, is_stamped = kept or (Columns(settings, path), 0, [], True)
        offset = before = sum(size for size, _ in parts)
        stream.seek(offset)
        digest, line = hashlib.sha256(), b""
        for line in stream:
            if not line.endswith(b"\n"):
                break  # an incomplete line may still be completed or removed
            digest.update(line)
            lines += 1
            if len(line) > 1:
                columns.read(lines, offset, line[:-1])
            offset += len(line)
    if offset > before:
        parts = [*parts, (offset - before, digest.hexdigest())]
    # If the file no longer changes, a stamp saves the next reader from hashing the whole file.
    is_due = not is_stamped and _is_proof(stamp, stamped_ns)
    if is_due or offset - before >= max(_WORTH_BYTES, before // 8):
        header = _Header(
            meaning=ROW_MEANING,
            plan=columns.plan(),
            lines=lines,
            parts=parts,
            stamp=stamp,
            stamped_ns=stamped_ns,
            rows=int((columns.places["present"] == 1).sum()),
            state=columns.state(),
        )
        _write(directory, header, columns)
    if not line.endswith(b"\n") and is_whole(line):
        columns.read(lines + 1, offset, line)  # not stored in the sidecar, because the line may be replaced
    return columns


def cached_columns(directory: Path, settings: RunSettings) -> tuple[Columns, int, int]:
    """Return the columns in the sidecar, with the numbers of lines and bytes of results.jsonl they cover.

    Return empty columns and zeros without a valid sidecar.
    """
    path = directory / "results.jsonl"
    with contextlib.suppress(OSError), open(path, "rb", opener=open_regular) as log:
        if kept := _read_sidecar(directory, settings, log):
            columns, lines, parts, _ = kept
            return columns, lines, sum(size for size, _ in parts)
    return Columns(settings, path), 0, 0


def _read_sidecar(
    directory: Path, settings: RunSettings, log: BinaryIO
) -> tuple[Columns, int, list[tuple[int, str]], bool] | None:
    """Return (columns, number of lines, parts, is_stamped) from the sidecar; None if the sidecar is invalid.

    `is_stamped` is true if the stamp proved that results.jsonl is unchanged, without hashing.
    """
    columns = Columns(settings, directory / "results.jsonl")
    try:
        with (directory / NAME).open("rb") as sidecar:
            first = sidecar.readline()
            header = msgspec.json.decode(first, type=_Header)
            if (header.meaning, header.plan) != (ROW_MEANING, columns.plan()):
                return None
            is_stamped = header.stamp == _stamp(log) and _is_proof(header.stamp, header.stamped_ns)
            if not is_stamped and not _is_unchanged(header, log):
                return None
            columns.restore(header.state)
            digest = hashlib.sha256(first)
            for rows in _rows(sidecar, header.rows):
                digest.update(rows)
                columns.put(np.frombuffer(rows, ROW_DTYPE))
            if sidecar.read() != digest.digest():
                return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # Invariant: a sidecar is used completely or not at all.
    return columns, header.lines, header.parts, is_stamped


def _rows(sidecar: BinaryIO, count: int) -> Iterator[bytes]:
    while count > 0:
        rows = sidecar.read(min(count, _ROWS_AT_ONCE) * ROW_DTYPE.itemsize)
        if not rows:
            raise ValueError("the sidecar is truncated: rows are missing")
        yield rows
        count -= _ROWS_AT_ONCE


def _is_unchanged(header: _Header, log: BinaryIO) -> bool:
    """Return True if results.jsonl still begins with the bytes that the sidecar was made from."""
    log.seek(0)
    return all(_sha256(log, size) == sha256 for size, sha256 in header.parts)


def _is_proof(stamp: Stamp, stamped_ns: int) -> bool:
    """Return True if the stamp is old enough for an equal stamp to prove an unchanged file."""
    return stamped_ns - max(stamp[3:]) > _TICK_NS


def _sha256(log: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the next `size` bytes, or of fewer at the end of the file."""
    digest = hashlib.sha256()
    while size > 0 and (block := log.read(min(size, _BLOCK_BYTES))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


def _write(directory: Path, header: _Header, columns: Columns) -> None:
    """Replace the sidecar; errors are ignored, because the sidecar is optional."""
    with contextlib.suppress(StorageError, OSError):
        parts = _parts(header, columns)
        write_atomically(directory / NAME, parts, mode=file_mode(directory), sync=False)


def _parts(header: _Header, columns: Columns) -> Iterator[bytes | memoryview]:
    first = msgspec.json.encode(header) + b"\n"
    digest = hashlib.sha256(first)
    yield first
    for rows in columns.rows_by_pair():
        digest.update(rows.view(np.uint8).data)
        yield rows.view(np.uint8).data
    yield digest.digest()


def _stamp(log: BinaryIO) -> Stamp:
    found = os.fstat(log.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
