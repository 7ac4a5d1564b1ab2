"""Images that could not be made, remembered by the hash of their inputs: no command tries in vain again.

An image's name holds that hash (see `build.image_tag`): other inputs are another image, which is tried. Only
what the build or the installation itself said is kept, no trouble of the engine.
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
    """Why an image could not be made: when (UTC, ISO 8601), in one line, and the file of the whole output."""

    at: str
    why: str
    output: str


class FailedImages:
    """The failures that are kept in the cache; `retry` forgets those that are asked for."""

    def __init__(self, cache: Path, *, retry: bool = False) -> None:
        self._folder = cache / "failed_images"
        self._retry = retry
        self._fresh: set[str] = set()

    def of(self, tag: str) -> ImageFailure | None:
        """The image's last failure, if it is to be believed."""
        if self._retry and tag not in self._fresh:
            return None
        try:
            return ImageFailure(**orjson.loads(self._path(tag, "json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None  # none, or not ours to read: the image is tried

    def keep(self, tag: str, error: ImageError) -> None:
        """Remember; raises StorageError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._fresh.add(tag)
        output = self._path(tag, "txt")
        write_atomically(output, (error.output or str(error)).encode(errors="replace"))
        failure = ImageFailure(
            at=now_utc(), why=str(error).partition("\n")[0].rstrip(":"), output=str(output)
        )
        write_atomically(self._path(tag, "json"), orjson.dumps(failure))

    def forget(self, tag: str) -> None:
        """The image was made after all."""
        self._path(tag, "json").unlink(missing_ok=True)
        self._path(tag, "txt").unlink(missing_ok=True)

    def _path(self, tag: str, kind: str) -> Path:
        return self._folder / f"{quote(tag, safe='')}.{kind}"
