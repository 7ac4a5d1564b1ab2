"""Build contexts of images."""

from __future__ import annotations

import io
import tarfile


def context(dockerfile: str) -> io.BytesIO:
    """Return a tar with only a Dockerfile."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        archive.addfile(entry, io.BytesIO(dockerfile.encode()))
    packed.seek(0)
    return packed
