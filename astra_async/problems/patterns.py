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
        readable, globs, regexes, ignored = [], [], [], []
        for pattern in patterns:
            glob, regex = _compiled(pattern, anchored=anchored)
            if (glob is None and regex is None) or _matches_everything(glob, regex):
                ignored.append(pattern)
                continue
            readable.append(pattern)
            globs += [glob] if glob is not None else []
            regexes += [regex] if regex is not None else []
        exact = frozenset(_cleaned(pattern) for pattern in readable)
        return cls(tuple(readable), tuple(ignored), exact, _globs(tuple(globs)), tuple(regexes))

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


def _compiled(pattern: str, *, anchored: bool) -> tuple[str | None, re.Pattern[str] | None]:
    """The pattern as a .gitignore line, as a regular expression, or neither when it is unusable."""
    pattern = pattern.strip()
    if not pattern or len(pattern) > _MAX_PATTERN or "\n" in pattern:
        return None, None
    if _looks_like_regex(pattern):
        return None, _regex(pattern)
    glob = pattern.removeprefix("./").removeprefix("/")
    wildcards = [len(re.findall(r"\*+", segment)) for segment in glob.split("/")]
    if not glob.strip("/") or max(wildcards) > _MAX_REPETITIONS or glob.count("**") > _MAX_REPETITIONS:
        return None, None
    has_wildcard = any(mark in glob for mark in "*?[")
    anchored = anchored or not has_wildcard or "/" in glob.rstrip("/")
    # A directory named `src/` and the bare name `src` both stand for the directory and all below it.
    line = glob.rstrip("/") if not has_wildcard else glob
    return ("/" if anchored and not line.startswith("**") else "") + _escaped(line, anchored=anchored), None


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


def _matches_everything(glob: str | None, regex: re.Pattern[str] | None) -> bool:
    if regex is not None:
        return all(regex.search(probe) for probe in _PROBES)
    spec = _globs((glob,) if glob else ())
    return all(spec.match_file(probe) for probe in _PROBES)
