"""What a build of an image begins with."""

from __future__ import annotations

import io
import tarfile


def context(dockerfile: str) -> io.BytesIO:
    """A tar of a Dockerfile alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        archive.addfile(entry, io.BytesIO(dockerfile.encode()))
    packed.seek(0)
    return packed
