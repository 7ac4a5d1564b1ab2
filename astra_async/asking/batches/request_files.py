"""Requests on their way into a batch, and results out of one: files, one line in memory at a time."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_interface import open_private
from astra_async.errors import StorageError
from astra_async.files import file_mode, read_at
from astra_async.log import sync_entries
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome
    from astra_async.types import ModelRequest

_SYNC_BYTES = 2**20


def write_requests(path: Path, interface: BatchInterface, named: Sequence[tuple[str, ModelRequest]]) -> int:
    """Write as many requests as one batch may hold, at least one; returns how many. Raises StorageError."""
    with storage(path):
        path.parent.mkdir(mode=0o777 if file_mode(path.parent.parent) & 0o066 else 0o700, exist_ok=True)
        with open_private(path, anew=True) as stream:
            size, written = stream.write(interface.opening) + len(interface.closing), 0
            for custom_id, request in named[: interface.most_requests]:
                row = interface.row(custom_id, request)
                size += len(row) + len(interface.between)
                if written and size > interface.most_bytes:
                    break
                stream.write(interface.between if written else b"")
                stream.write(row)
                written += 1
            stream.write(interface.closing)
    return written


def keep(draft: Path, path: Path) -> None:
    """Force results to disk under the name by which they are believed. Raises StorageError."""
    with storage(path):
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)
        sync_entries(path.parent)


def outcomes(
    path: Path, read: Callable[[bytes], BatchOutcome], odd: Callable[[str], None]
) -> Iterator[tuple[int, int, BatchOutcome]]:
    """The results in a file with their places (offset, length); `odd` hears of lines that are none."""
    with storage(path), path.open("rb") as stream:
        offset = 0
        for line in stream:
            if line.strip():
                try:
                    yield offset, len(line), read(line)
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                    odd(f"a line of results cannot be read ({error!r}): {one_line(line, length=80)}")
            offset += len(line)


def outcome_at(path: Path, offset: int, length: int, read: Callable[[bytes], BatchOutcome]) -> BatchOutcome:
    """The result that stands there. Raises StorageError."""
    with storage(path):
        return read(read_at(path, offset, length))


@contextlib.contextmanager
def storage(path: Path) -> Iterator[None]:
    """What a disk raises is a StorageError that says where."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}; make room or restore access, then run the same command again"
        ) from error
