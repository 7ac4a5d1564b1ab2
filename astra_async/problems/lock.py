"""What `astra fetch` has brought: one file beside the CSV that pins every byte of the set.

DIR/fetch.lock.json     source, revision, licence, hashes
DIR/NAME.csv            the problems, as they came
DIR/projects/...        the archives, and those of references/ where there are any
DIR/skills.csv          what --skills named, if anything
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Predicate

from astra_async.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCK_NAME = "fetch.lock.json"
SKILLS_NAME = "skills.csv"
Field = Literal["project", "reference"]
FOLDERS: Mapping[Field, str] = {"project": "projects", "reference": "references"}


def is_inside(path: str) -> bool:
    """A relative path that stays below its folder."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and "\\" not in path


Inside = Annotated[str, Predicate(is_inside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """One archive: whose it is, where it came from (without secrets), where it lies, what it holds."""

    problem_id: str
    field: Field
    location: str
    path: Inside
    sha256: str
    size_bytes: Annotated[int, Ge(0)]

    @property
    def key(self) -> str:
        """Problem and field: a file of the set, whatever it holds."""
        return f"{self.problem_id} {self.field}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The state of a fetched set; it is written after every file that has come.

    Attributes:
        source: as `parse_source` reads it, without the revision that was found.
        root: what relative locations in the CSV start from.
        revision: of the hub; '' for a web address.
        licence: '' where none is stated, None where nobody could say.
        csv, csv_sha256: the CSV's name in the folder, and its content.
        columns: `--column` as it was given.
        files: what has come.
        replaces: `--update` that is under way: the hash of each file before, by problem and field.
        complete: everything that the CSV names has come.
    """

    schema: Literal[1] = 1
    source: str
    root: str
    endpoint: str = ""
    revision: str = ""
    licence: str | None = None
    gated: bool = False
    private: bool = False
    fetched_at: str = ""
    csv: Inside
    csv_sha256: str
    columns: dict[str, str] = field(default_factory=dict)
    files: tuple[LockedFile, ...] = ()
    replaces: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def of(self, problem_id: str, which: Field) -> LockedFile | None:
        """The file that has come for a problem."""
        return next(
            (each for each in self.files if (each.problem_id, each.field) == (problem_id, which)), None
        )

    def to_json(self) -> bytes:
        """Its text, indented for people."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"


def read_lock(folder: Path) -> Lock | None:
    """The lock in a folder, None where there is none. Raises UsageError for one that cannot be used."""
    from pydantic import TypeAdapter, ValidationError

    path = folder / LOCK_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        return TypeAdapter(Lock).validate_json(data)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise UsageError(
            f"{path}: no lock that this version can read (at {place or 'its beginning'});"
            " fetch the set into a new folder"
        ) from error
