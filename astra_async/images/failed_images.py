"""Record of images that could not be built, so that later runs do not repeat the failure.

An image's name holds the hash of its inputs (see `build.image_tag`), so changed inputs are tried again. Only
failures of the build or the installation are recorded, not errors of Docker Engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import orjson

from astra_async.files import write_atomically
from astra_async.log import now_utc

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.errors import ImageError


@dataclass(frozen=True, slots=True)
class ImageFailure:
    """Failed build of an image: time (UTC, ISO 8601), one-line reason, and the file of the whole output."""

    at: str
    why: str
    output: str


class FailedImages:
    """Recorded failures in the cache; with `retry`, failures of earlier runs are ignored."""

    def __init__(self, cache: Path, *, retry: bool = False) -> None:
        self._folder = cache / "failed_images"
        self._retry = retry
        self._fresh: set[str] = set()

    def of(self, tag: str) -> ImageFailure | None:
        """Return the image's last failure, or None if the image should be tried."""
        if self._retry and tag not in self._fresh:
            return None
        try:
            return ImageFailure(**orjson.loads(self._path(tag, "json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None  # missing or unreadable: try the image

    def keep(self, tag: str, error: ImageError) -> None:
        """Record a failure; raises StorageError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._fresh.add(tag)
        output = self._path(tag, "txt")
        write_atomically(output, (error.output or str(error)).encode(errors="replace"))
        failure = ImageFailure(
            at=now_utc(), why=str(error).partition("\n")[0].rstrip(":"), output=str(output)
        )
        write_atomically(self._path(tag, "json"), orjson.dumps(failure))

    def forget(self, tag: str) -> None:
        """Remove the record after the image was built."""
        self._path(tag, "json").unlink(missing_ok=True)
        self._path(tag, "txt").unlink(missing_ok=True)

    def _path(self, tag: str, kind: str) -> Path:
        return self._folder / f"{quote(tag, safe='')}.{kind}"
