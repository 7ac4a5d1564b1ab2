"""A problem's files, where they come from, and the prompt made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

from annotated_types import MinLen, Predicate

from astra_async.types.declarations import Setting, is_http_url

if TYPE_CHECKING:
    from astra_async.types.answers import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file of a project. `link` is the target of a symbolic link that stays inside the project."""

    path: str
    content: bytes = b""
    executable: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A problem's pristine files, sorted by path, and its empty folders.

    `sha256` covers paths, contents, executable bits, links and empty folders, nothing else: the same
    project has the same hash whether it came from a folder, an archive or S3.
    """

    files: tuple[ProjectFile, ...]
    empty_folders: tuple[str, ...] = ()
    sha256: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact text sent, the same to the byte in every sample of (problem, format, version)."""

    text: str
    sha256: str
    files: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # (path, rule that left it out)


class ProjectStore(Protocol):
    """Fetches projects and reference solutions; raises SourceError or ArchiveError."""

    async def load(self, location: str) -> Project:
        """The project at a folder, .zip, https or s3 location."""
        ...

    async def load_reference(self, location: str) -> Solution:
        """The files of a reference solution."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """`[s3]` of the configuration file."""

    endpoint_url: Annotated[
        str | None, Predicate(is_http_url), Setting("Server of one's own (MinIO, Ceph); Amazon's if not set.")
    ] = None
    region: Annotated[
        str | None, MinLen(1), Setting("As the location, else as the environment says, if not set.")
    ] = None
    anonymous: Annotated[bool, Setting("Send unsigned requests, for public buckets.")] = False
