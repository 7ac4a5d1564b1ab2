"""Fingerprint of everything that changes results: recorded with a run and compared on resume.

Each part is a plain JSON object (a model's settings, a problem's statement and hashes, ...). An error
message can therefore name the difference instead of only two hashes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import orjson

from astra_async.errors import ConflictError
from astra_async.redaction import mask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

PartKind = Literal["models", "formats", "problems", "grading", "feedback"]
PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)
_SHOWN_CHARACTERS = 60
# Settings of earlier versions that no longer exist. They are ignored when a run is resumed.
_RETIRED: dict[PartKind, frozenset[str]] = {"grading": frozenset({"trials"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that changes results, by part and name; each value is a plain JSON object.

    `feedback` affects only follow-up turns; a run without follow-up turns has none.
    """

    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    formats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    feedback: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def merge_parts(
    run: dict[str, Any], parts: Parts, used: Mapping[PartKind, Collection[str]], where: Path
) -> None:
    """Add parts and their hashes to a run.json; `used` lists parts that already have results.

    Raises ConflictError if a part with results differs; the message has the difference and the remedy.
    """
    for kind in PART_KINDS if parts.feedback else PART_KINDS[:-1]:
        old = run.setdefault("parts", {}).setdefault(kind, {})
        hashes = run.setdefault("fingerprints", {}).setdefault(kind, {})
        for name, part in getattr(parts, kind).items():
            plain = orjson.loads(orjson.dumps(part))
            if name in old and name in used[kind]:
                known = {each: old[name][each] for each in old[name] if each not in _RETIRED.get(kind, ())}
                # Ignore fields that the old part lacks: an earlier version did not record them. In a model's
                # part, unset fields are omitted, so a new field there is a difference.
                compared = (
                    plain if kind == "models" else {each: plain[each] for each in plain if each in known}
                )
                if known != compared:
                    raise ConflictError(_difference(where, kind, name, known, compared))
            old[name] = plain
            hashes[name] = fingerprint(plain)


def merge_description(run: dict[str, Any], description: Mapping[str, Any]) -> None:
    """Merge descriptive fields into a run.json; tables and models are merged by name."""
    for name, value in description.items():
        if name == "models":
            merged = {model["name"]: model for model in [*run.get("models", []), *value]}
            run["models"] = list(merged.values())
        elif isinstance(value, dict):
            run[name] = {**run.get(name, {}), **value}
        else:
            run[name] = value


def fingerprint(part: object) -> str:
    """SHA-256 of a plain JSON object in canonical form (sorted keys)."""
    return hashlib.sha256(orjson.dumps(part, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _difference(path: Path, kind: PartKind, name: str, old: Any, new: Any) -> str:
    changes = "; ".join(_changes(old, new))
    remedy = {
        "grading": f"test the recorded answers again with: astra regrade {path}",
        "models": "use another --out, or give the changed model its own `name` in the TOML file",
        "feedback": "use another --out, or the previous --feedback",
    }.get(kind, "use another --out")
    named = {"models": "model", "formats": "format", "problems": "problem"}
    what = named.get(kind, f"{kind} of")
    return f"{path}: {what} {name} has results with other settings ({changes}); {remedy}"


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in [*dict.fromkeys([*old, *new])]:
        if old.get(name) != new.get(name):
            yield f"{name}: {_short(old.get(name))} -> {_short(new.get(name))}"


def _short(value: Any) -> str:
    text = mask(orjson.dumps(value).decode())  # mask before truncating, so that no part of a key remains
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:40]}... ({len(text)} characters)"
