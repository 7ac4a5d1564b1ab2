"""What one project may hold: counted while it is read, whatever its headers say."""

from __future__ import annotations

from astra_async.errors import ArchiveError

MAX_ARCHIVE_BYTES = 512 * 1024**2
MAX_ENTRIES = 50_000
MAX_FILE_BYTES = 64 * 1024**2
MAX_TOTAL_BYTES = 512 * 1024**2


class Allowance:
    """The room that is left while one project is read; every overrun is an ArchiveError."""

    def __init__(self) -> None:
        self._entries = 0
        self._bytes = 0

    def entry(self) -> None:
        """One more file, folder or link."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise ArchiveError(
                f"it holds more than {MAX_ENTRIES:,} entries; remove node_modules and the like"
            )

    def room(self) -> int:
        """How many bytes to ask for at most: one more than the next file may have."""
        return min(MAX_FILE_BYTES, MAX_TOTAL_BYTES - self._bytes) + 1

    def took(self, path: str, size: int) -> None:
        """So many bytes were read of a file."""
        self._bytes += size
        if size > MAX_FILE_BYTES:
            raise ArchiveError(f"{path[:200]!r} is larger than {MAX_FILE_BYTES // 1024**2} MiB")
        if self._bytes > MAX_TOTAL_BYTES:
            raise ArchiveError(f"it holds more than {MAX_TOTAL_BYTES // 1024**2} MiB")
