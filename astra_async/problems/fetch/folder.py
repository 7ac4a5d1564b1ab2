"""A folder of this machine to entries."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.tree import Allowance, Entry, is_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_folder(root: Path) -> Iterator[Entry]:
    """Everything below a folder, links not followed, in no particular order; blocking.

    Raises:
        ArchiveError: too much of it, or something that is neither file, folder nor link.
        OSError: something cannot be read.
    """
    allowance = Allowance()
    waiting = [(root, "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as found:
            for item in found:
                path = prefix + item.name
                if is_left_out(path):
                    # The name alone goes on, so that a left-out .git is still told of.
                    yield Entry(path=path, kind="folder")
                    continue
                allowance.entry()
                entry = _entry(item, path, allowance)
                if entry.kind == "folder":
                    waiting.append((folder / item.name, path + "/"))
                yield entry


def _entry(item: os.DirEntry[str], path: str, allowance: Allowance) -> Entry:
    status = item.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return Entry(path=path, kind="folder")
    if stat.S_ISLNK(status.st_mode):
        return Entry(path=path, kind="link", target=os.readlink(item.path))  # noqa: PTH115 - as above, text
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
        raise ArchiveError(f"{path!r} is neither a file, a folder nor a link")
    with open(item.path, "rb") as file:  # noqa: PTH123 - a DirEntry's path is text
        content = file.read(allowance.room())
    allowance.took(path, len(content))
    return Entry(path=path, kind="file", content=content, executable=bool(status.st_mode & stat.S_IXUSR))
