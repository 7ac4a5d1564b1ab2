r"""Match the path patterns of manifests and CSVs.

A pattern is a plain path (`src/App.test.js`), a directory (`src/test`), a glob (`src/test/*`,
`**/*.spec.js`) or a regular expression (`.*\.Tests\.java$`). A pattern that matches a directory covers all
files in it. A pattern without a wildcard is relative to the project's root; one with a wildcard but no slash
matches at any depth, as in a .gitignore. Wildcards are `*`, `**` and `?`; brackets are literal, because
routers use them in folder names (`app/[slug]`). Unicode forms of one name (NFC, NFD) are equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import normalize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pathspec import GitIgnoreSpec

# Nested or many repeated quantifiers can take exponential time, and no real manifest needs them.
_NESTED = re.compile(r"\)[*+{?]|[*+}][*+{]")
_MAX_REPETITIONS = 3
_MAX_PATTERN = 500
_PROBES = ("zq", "zq/zq.zq")  # a pattern that matches these paths would match every path
# Do not split at the commas of `app/[a,b]`, `{a,b}.js` and `a{1,2}`.
_COMMA = r",(?![^\[({\n]{0,100}[\])}])"


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """A compiled list of patterns; `ignored` lists those that are invalid or match every path."""

    patterns: tuple[str, ...]
    ignored: tuple[str, ...]
    _named: frozenset[str]
    _globs: GitIgnoreSpec
    _regexes: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, patterns: Iterable[str], *, anchored: bool = False) -> PathPatterns:
        """Compile patterns; ignore those that match every path or are template text.

        With `anchored`, the patterns name result files: a pattern without a slash matches only at the
        project's root, and brackets are character classes, as in the glob that collects the files.
        """
        found = [(pattern, _compiled(pattern, anchored=anchored)) for pattern in patterns]
        readable = tuple(pattern for pattern, rule in found if rule is not None)
        return cls(
            readable,
            tuple(pattern for pattern, rule in found if rule is None),
            frozenset(_cleaned(pattern) for pattern in readable),
            _globs(tuple(rule for _, rule in found if rule and isinstance(rule, str))),
            tuple(rule for _, rule in found if isinstance(rule, re.Pattern)),
        )

    def matches(self, path: str) -> bool:
        """Return True if the patterns cover a relative path or one of its parent directories."""
        path = composed(path)
        if not self._named.isdisjoint(_with_folders(path)) or self._globs.match_file(path):
            return True
        return any(regex.search(path) for regex in self._regexes)

    def without_match(self, paths: Collection[str]) -> list[str]:
        """Return the patterns that match none of the paths."""
        names = {name for path in paths for name in _with_folders(composed(path))}
        others = (each for each in self.patterns if _cleaned(each) not in names)
        return [each for each in others if not any(map(PathPatterns.of([each]).matches, paths))]


def composed(path: str) -> str:
    """Return a path in Unicode form NFC, which people type; macOS may store names in NFD."""
    return path if path.isascii() else normalize("NFC", path)


def listed_paths(text: str) -> list[str]:
    """Split unbracketed text into paths, at lines and `;` if it has a `;`, else at lines and commas."""
    entries = re.split(r"[;\n]" if ";" in text else rf"\n|{_COMMA}", text)
    return [path for each in entries if (path := each.strip())]


@lru_cache(maxsize=1024)  # thousands of problems share a few distinct patterns
def _globs(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _with_folders(path: str) -> Iterator[str]:
    """Yield a path and each of its parent folders."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _cleaned(pattern: str) -> str:
    return composed(pattern.strip().replace("\\", "/").removeprefix("./").strip("/"))


def _compiled(pattern: str, *, anchored: bool) -> str | re.Pattern[str] | None:
    """Return a .gitignore line or regular expression; None if the pattern is invalid or matches every path.

    Return '' for a plain path, which is matched by name.
    """
    pattern = composed(pattern.strip())
    if not _cleaned(pattern) or len(pattern) > _MAX_PATTERN or "\n" in pattern:
        return None
    is_regex = "\\" in pattern or pattern.startswith("^") or pattern.endswith("$") or ".*" in pattern[1:]
    rule: str | re.Pattern[str] | None = _regex(pattern) if is_regex else _glob(pattern, anchored=anchored)
    return None if rule is None or (rule and _matches_everything(rule)) else rule


def _glob(pattern: str, *, anchored: bool) -> str | None:
    glob = pattern.removeprefix("./").removeprefix("/")
    wildcards = [len(re.findall(r"\*+", segment)) for segment in glob.split("/")]
    if max(wildcards) > _MAX_REPETITIONS or glob.count("**") > _MAX_REPETITIONS:
        return None
    if not any(mark in glob for mark in ("*?[" if anchored else "*?")):
        return ""
    from_root = anchored or "/" in glob.rstrip("/")
    # A leading `!` or `#` has a special meaning in .gitignore that no manifest intends.
    mark = "\\" if not from_root and glob.startswith(("!", "#")) else ""
    line = ("/" if from_root and not glob.startswith("**") else mark) + glob
    return line if anchored and _is_readable(line) else re.sub(r"[\[\]]", r"\\\g<0>", line)


def _is_readable(line: str) -> bool:
    try:
        _globs((line,))
    except re.error:
        return False
    return True


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
