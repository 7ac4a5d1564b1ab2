"""Files that another process appends to, read on from where the last look ended.

Invariant: what was handed out ends behind a newline. A torn last line is not handed out; when a resumed run
cuts it off, nothing that was read has changed.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_BLOCK_BYTES = 1 << 20
_MARK_BYTES = 64

Place = tuple[int, int]  # offset and length of a line
Line = tuple[int, int, bytes]  # number from 1, offset, content without its newline


class Regrown(Exception):  # noqa: N818 - what happened to the file
    """The file is not the one that was read: it is shorter, another, or has other content."""


class Tail:
    """One growing file of lines.

    Attributes:
        offset: how far it was read; whole lines only.
        lines: how many lines that was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.lines = 0
        self._inode = 0
        self._mark = b""
        self._searched = 0  # bytes behind `offset` that hold no newline

    def skip(self, lines: int, size: int) -> None:
        """Go on behind so many lines of so many bytes, which are known to be there. Raises OSError."""
        with self.path.open("rb") as stream:
            self._inode = os.fstat(stream.fileno()).st_ino
            self._mark = os.pread(stream.fileno(), min(_MARK_BYTES, size), max(0, size - _MARK_BYTES))
        self.lines, self.offset = lines, size

    def read(self) -> list[Line]:
        """About a megabyte of whole lines that are new; empty at the end. Raises Regrown, OSError."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            if self.offset:
                raise Regrown from None
            return []
        try:
            return self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> list[Line]:
        found = os.fstat(descriptor)
        if self.offset and (found.st_ino != self._inode or found.st_size < self.offset):
            raise Regrown
        self._inode = found.st_ino
        if found.st_size - self.offset <= self._searched:
            return []
        if os.pread(descriptor, len(self._mark), self.offset - len(self._mark)) != self._mark:
            raise Regrown
        block = self._block(descriptor)
        return self._lines(block) if block else []

    def _block(self, descriptor: int) -> bytes:
        """The next bytes, up to and with a newline; empty while the next line has no end."""
        block = os.pread(descriptor, _BLOCK_BYTES, self.offset + self._searched)
        end = block.rfind(b"\n") + 1
        while not end and block:
            self._searched += len(block)
            block = os.pread(descriptor, _BLOCK_BYTES, self.offset + self._searched)
            end = block.find(b"\n") + 1
        if not end:
            return b""
        length, self._searched = self._searched, 0
        return (os.pread(descriptor, length, self.offset) if length else b"") + block[:end]

    def _lines(self, block: bytes) -> list[Line]:
        found: list[Line] = []
        for line in block.split(b"\n")[:-1]:
            self.lines += 1
            if line:
                found.append((self.lines, self.offset, line))
            self.offset += len(line) + 1
        self._mark = block[-_MARK_BYTES:]
        return found


class LineIndex:
    """Where the lines of each sample stand in a file: sample's number, turn, offset and length."""

    def __init__(self) -> None:
        self._places = array("q")
        self._turns = array("I")
        self._offsets = array("Q")
        self._lengths = array("I")

    def add(self, place: int, offset: int, length: int, turn: int = 0) -> None:
        """Note one line."""
        self._places.append(place)
        self._turns.append(turn)
        self._offsets.append(offset)
        self._lengths.append(length)

    def columns(self) -> list[Numbers]:
        """Samples, offsets and lengths of all lines, in the order of the file."""
        return [np.array(each, dtype=np.int64) for each in (self._places, self._offsets, self._lengths)]

    def places(self) -> Numbers:
        """The samples of all lines, in the order of the file."""
        return np.array(self._places, dtype=np.int64)

    def of(self, place: int) -> list[tuple[int, Place]]:
        """Turn and place of the lines of one sample, in the order of the file."""
        found = np.flatnonzero(np.frombuffer(self._places, dtype=np.int64) == place) if self._places else ()
        return [(self._turns[i], (self._offsets[i], self._lengths[i])) for i in found]
