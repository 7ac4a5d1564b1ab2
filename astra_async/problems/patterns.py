r"""Path patterns as manifests and problem tables really write them.

Found in the wild: plain paths (`src/App.test.js`), bare directories (`src/test`), globs (`src/test/*`,
`**/*.spec.js`) and regular expressions (`.*\.Tests\.java$`). A pattern that matches a directory covers
everything in it. A pattern without a wildcard counts from the project's root; one with a wildcard and
without a slash counts at any depth, as in a .gitignore. Wildcards are `*`, `**` and `?`: brackets stand for
themselves, as in the folders of a router (`app/[slug]`). One name in two Unicode forms is one name.
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

# Nested quantifiers take exponential time, many in a row a high power of it; no manifest needs them.
_NESTED = re.compile(r"\)[*+{?]|[*+}][*+{]")
_MAX_REPETITIONS = 3
_MAX_PATTERN = 500
_PROBES = ("zq", "zq/zq.zq")  # a pattern that matches these would protect every file there can be
# Not the commas of `app/[a,b]`, `{a,b}.js` and `a{1,2}`.
_COMMA = r",(?![^\[({\n]{0,100}[\])}])"


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """A compiled list of patterns; `ignored` names those that are unreadable or match everything."""

    patterns: tuple[str, ...]
    ignored: tuple[str, ...]
    _named: frozenset[str]
    _globs: GitIgnoreSpec
    _regexes: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, patterns: Iterable[str], *, anchored: bool = False) -> PathPatterns:
        """Compile patterns; one that would match any path at all is ignored, as template text is.

        With `anchored` they are result files: a pattern without a slash counts at the project's root alone,
        and brackets are also a choice of characters, as whoever looks for the files reads them.
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
        """Whether a relative path, or a directory above it, is covered."""
        path = composed(path)
        if not self._named.isdisjoint(_with_folders(path)) or self._globs.match_file(path):
            return True
        return any(regex.search(path) for regex in self._regexes)

    def without_match(self, paths: Collection[str]) -> list[str]:
        """The patterns that cover none of these paths."""
        names = {name for path in paths for name in _with_folders(composed(path))}
        others = (each for each in self.patterns if _cleaned(each) not in names)
        return [each for each in others if not any(map(PathPatterns.of([each]).matches, paths))]


def composed(path: str) -> str:
    """A path in the Unicode form that people type (NFC); macOS also stores names decomposed."""
    return path if path.isascii() else normalize("NFC", path)


def listed_paths(text: str) -> list[str]:
    """The paths of a text that is no list in brackets: one in a line, or separated by `;`, else by `,`."""
    entries = re.split(r"[;\n]" if ";" in text else rf"\n|{_COMMA}", text)
    return [path for each in entries if (path := each.strip())]


@lru_cache(maxsize=1024)  # thousands of problems share a handful of rules
def _globs(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _with_folders(path: str) -> Iterator[str]:
    """A path and every folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _cleaned(pattern: str) -> str:
    return composed(pattern.strip().replace("\\", "/").removeprefix("./").strip("/"))


def _compiled(pattern: str, *, anchored: bool) -> str | re.Pattern[str] | None:
    """The pattern as a .gitignore line or a regular expression; None when it is unusable or matches all.

    Empty for a name: that needs no rule.
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
    # Gitignore gives a leading `!` or `#` a meaning that no manifest intends.
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
