r"""Path patterns as manifests and problem tables really write them.

Found in the wild: plain paths (`src/App.test.js`), bare directories (`src/test`), globs (`src/test/*`,
`**/*.spec.js`) and regular expressions (`.*\.Tests\.java$`). A pattern that matches a directory covers
everything in it. A pattern without a wildcard counts from the project's root; one with a wildcard and
without a slash counts at any depth, as in a .gitignore.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathspec import GitIgnoreSpec

# Nested quantifiers take exponential time, many in a row a high power of it; no manifest needs them.
_NESTED = re.compile(r"\)[*+{?]|[*+}][*+{]")
_MAX_REPETITIONS = 3
_MAX_PATTERN = 500
_PROBES = ("zq", "zq/zq.zq")  # a pattern that matches these would protect every file there can be


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """A compiled list of patterns; `ignored` names those that are unreadable or match everything."""

    patterns: tuple[str, ...]
    ignored: tuple[str, ...]
    _exact: frozenset[str]
    _globs: GitIgnoreSpec
    _regexes: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, patterns: Iterable[str], *, anchored: bool = False) -> PathPatterns:
        """Compile patterns; one that would match any path at all is ignored, as template text is.

        With `anchored`, a pattern without a slash counts at the project's root alone (result files).
        """
        found = [(pattern, _compiled(pattern, anchored=anchored)) for pattern in patterns]
        readable = tuple(pattern for pattern, rule in found if rule is not None)
        return cls(
            readable,
            tuple(pattern for pattern, rule in found if rule is None),
            frozenset(_cleaned(pattern) for pattern in readable),
            _globs(tuple(rule for _, rule in found if isinstance(rule, str))),
            tuple(rule for _, rule in found if isinstance(rule, re.Pattern)),
        )

    def matches(self, path: str) -> bool:
        """Whether a relative path, or a directory above it, is covered."""
        if path in self._exact or self._globs.match_file(path):
            return True
        return any(regex.search(path) for regex in self._regexes)


@lru_cache(maxsize=1024)  # thousands of problems share a handful of rules
def _globs(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _cleaned(pattern: str) -> str:
    return pattern.strip().replace("\\", "/").removeprefix("./").strip("/")


def _compiled(pattern: str, *, anchored: bool) -> str | re.Pattern[str] | None:
    """The pattern as a .gitignore line or a regular expression; None when it is unusable or matches all."""
    pattern = pattern.strip()
    if not pattern or len(pattern) > _MAX_PATTERN or "\n" in pattern:
        return None
    rule = _regex(pattern) if _looks_like_regex(pattern) else _glob(pattern, anchored=anchored)
    return None if rule is None or _matches_everything(rule) else rule


def _glob(pattern: str, *, anchored: bool) -> str | None:
    glob = pattern.removeprefix("./").removeprefix("/")
    wildcards = [len(re.findall(r"\*+", segment)) for segment in glob.split("/")]
    if not glob.strip("/") or max(wildcards) > _MAX_REPETITIONS or glob.count("**") > _MAX_REPETITIONS:
        return None
    has_wildcard = any(mark in glob for mark in "*?[")
    anchored = anchored or not has_wildcard or "/" in glob.rstrip("/")
    # A directory named `src/` and the bare name `src` both stand for the directory and all below it.
    line = glob.rstrip("/") if not has_wildcard else glob
    return ("/" if anchored and not line.startswith("**") else "") + _escaped(line, anchored=anchored)


def _escaped(line: str, *, anchored: bool) -> str:
    """Gitignore gives a leading `!` or `#` a meaning that no manifest intends."""
    return f"\\{line}" if not anchored and line.startswith(("!", "#")) else line


def _looks_like_regex(pattern: str) -> bool:
    return "\\" in pattern or pattern.startswith("^") or pattern.endswith("$") or ".*" in pattern[1:]


def _regex(pattern: str) -> re.Pattern[str] | None:
    repetitions = sum(pattern.count(mark) for mark in "*+{")
    if _NESTED.search(pattern) or repetitions > _MAX_REPETITIONS:
        return None
    anchor = "" if pattern.startswith(("^", ".*")) else "(?:^|/)"
    try:
        return re.compile(anchor + pattern.removeprefix("^./").removeprefix("./"))
    except re.error:
        return None


def _matches_everything(rule: str | re.Pattern[str]) -> bool:
    matches = _globs((rule,)).match_file if isinstance(rule, str) else rule.search
    return all(matches(probe) for probe in _PROBES)
