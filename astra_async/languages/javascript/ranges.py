"""Version ranges as package.json writes them (node-semver's grammar), as far as `engines` uses them."""

from __future__ import annotations

import re

Version = tuple[int, int, int]

_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_COMPARATOR = re.compile(
    r"(?P<operator>[<>]=?|[~^=]?)\s*v?"
    r"(?P<major>\d+|[xX*])(?:\.(?P<minor>\d+|[xX*])(?:\.(?P<patch>\d+|[xX*]))?)?(?:[-+][\w.+-]*)?"
)
_LONGEST = 200  # an honest range has some twenty characters
_ABOVE_ALL = (10**9, 0, 0)


def satisfies(version: Version, text: str) -> bool | None:
    """Whether a version lies in a range such as `>=12 <17 || ^18.2.0`; None when it is no range."""
    if len(text) > _LONGEST:
        return None
    answers = [_all(version, alternative) for alternative in text.split("||")]
    if True in answers:
        return True
    return None if None in answers else False


def first_major(text: str) -> int | None:
    """The first number of a version, such as 12 for `v12.18.3` or `lts/12.x`."""
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
    """The half-open interval of one comparator."""
    numbers = [int(part) for name in ("major", "minor", "patch") if (part := found[name] or "x").isdigit()]
    if not numbers:
        return (0, 0, 0), _ABOVE_ALL
    zeros = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    low, beyond = _filled(numbers), _next(numbers)  # `beyond`: the first that the written numbers leave out
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
