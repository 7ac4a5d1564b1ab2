"""Data structures that describe a programming language; each subpackage fills in one `Language`.

All fields except the name are optional; `astra_async.languages.lacks` lists missing features for the user.
Patterns for paths are searched in the original path. Patterns for tools must match the whole lower-case name.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from astra_async.languages.mutations import TestReader
    from astra_async.languages.needs import Commands, Part
    from astra_async.languages.project_files import Pristine
    from astra_async.types import Dropped, Project

Rule = Literal["runner_configuration", "build_configuration"]
RUNNER: Rule = "runner_configuration"
BUILD: Rule = "build_configuration"
# Reasons to refuse a new file: it would shadow an installed module, or a protected file.
INSTALLED, PROTECTED = "shadows_module", "shadows_protected"
# A file counts in the tool's folder, also above the tests, anywhere, or by its whole path.
Reach = Literal["place", "above", "any", "path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Detection of a language's projects, and the needs of their images.

    `find` examines one folder of a project ("" is the root). `calls` matches the language's programs in
    commands. `signs` are file names that identify a project, for messages. `installs` converts the words of a
    command that adds packages by name into the command for the image.

    `managers` are package managers. They are disabled during tests, which have no network. `leavings` are
    files that an installation writes into the project. Both are part of every image's name.

    `holds` is a script that writes the names of installed modules to a file, one per line.
    """

    find: Callable[[Mapping[str, bytes], str, Commands], Part | None]
    calls: re.Pattern[str]
    signs: tuple[str, ...]
    installs: Callable[[Sequence[str]], str] | None = None
    managers: tuple[str, ...] = ()
    leavings: tuple[str, ...] = ()
    holds: str = ""


@dataclass(frozen=True, slots=True)
class ProjectTool:
    """A program that runs tests, builds or installs.

    `sign` matches the tool in commands and manifests, `brings` are tools that it includes, `scripts` are
    files whose text it executes.
    """

    name: str
    sign: str
    _: KW_ONLY
    runs_tests: bool = False
    brings: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reads:
    """Files that tools read by name; `by` lists the tools, separated by blanks ("" for any tool).

    `names` is a pattern. `when` restricts the rule to test commands that match this pattern.
    """

    rule: Rule
    by: str
    reach: Reach
    names: str
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of a language and the files that they read.

    `manifests` matches files whose text reveals the tools; a tool runs in the manifest's folder. `everyday`
    matches names that sources have too, so only their folder makes them configuration. `settings` matches
    keys whose values are files that a runner loads. `settings_files` are more files with such keys,
    `sections` yields those in a manifest, and `ends` are suffixes that the values may omit.

    `scripts` returns the manifest scripts that a command runs; `development` the packages needed only for
    tests. `inert` matches dotfiles that no test run reads. `variables` matches environment variables that
    control interpreters and runners.
    """

    programs: tuple[ProjectTool, ...] = ()
    reads: tuple[Reads, ...] = ()
    manifests: str = ""
    everyday: str = ""
    settings: str = ""
    settings_files: str = ""
    sections: Callable[[str, str], Iterator[str]] | None = None
    ends: tuple[str, ...] = ()
    scripts: Callable[[str, str, str], Mapping[str, str]] | None = None
    development: Callable[[str, str], Collection[str]] | None = None
    inert: str = ""
    variables: str = ""
    dependency_folders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFiles:
    """Patterns that recognize test files.

    `paths` matches paths of tests. A file of the original project with such a path still counts as a source
    if only sources use it, unless it matches `certain`. `likely` matches further test names in answers.
    `content` are patterns that all match in tests only; without them, names decide. A folder in `alone`
    contains only tests, including new files. `folders` are names of folders that belong to the tests if they
    contain one. For a test that matches `whole`, the topmost folder belongs to the tests.
    """

    __test__ = False  # not a test for pytest to collect

    paths: re.Pattern[str] | None = None
    certain: re.Pattern[str] | None = None
    likely: re.Pattern[str] | None = None
    content: tuple[re.Pattern[str], ...] = ()
    alone: re.Pattern[str] | None = None
    folders: frozenset[str] = frozenset()
    whole: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """Rules that disable package installations during test runs.

    `command` returns the modified test command, `environment` additional variables.
    """

    command: Callable[[str, Project], str]
    environment: Callable[[Project], Mapping[str, str]]


class Lookup(Protocol):
    """Detects new files that would be loaded in place of other modules of one project."""

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:
        """Return INSTALLED, PROTECTED, another key of `overlay.REFUSALS`, or None, for a file with this text.

        The file is new or replaces one of the original project. `held` are the module names in the image, as
        `Images.holds` writes them; None if they are unknown and common names are assumed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Files of which an answer may change only parts.

    `takes` returns True for such a path. `merged` takes path, original text and the answer's text, and
    returns the merged text (None if nothing was accepted) and the dropped parts. `parted` splits an
    original text into the changeable and the fixed part. With `new`, parts of new files are dropped too. With
    `is_enough`, no other configuration rule applies to the file.
    """

    takes: Callable[[str, str], bool]
    merged: Callable[[str, str, str], tuple[str | None, list[Dropped]]]
    parted: Callable[[str], tuple[str, str]] = lambda text: (text, "")
    is_enough: bool = True
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. `suffixes` are its source suffixes, in lower case without the dot.

    `loaded` is the form in which a source names another file: in an import, as a word, in quotes, or never.
    `offline` disables package managers. `arguments` matches paths that its programs accept as one file in
    commands. `compiled` matches binary files that programs load, `plugins` files that register plugins.
    `unbuilt` matches compiler and loader output for code that does not build. `mutate` finds the parts of
    tests that an audit may change.
    """

    name: str
    suffixes: frozenset[str] = frozenset()
    images: Images | None = None
    tools: Tools = field(default_factory=Tools)
    tests: TestFiles = field(default_factory=TestFiles)
    lookup: Callable[[Pristine], Lookup] | None = None
    merge: Merge | None = None
    loaded: Literal["import", "word", "quoted", "never"] = "quoted"
    arguments: re.Pattern[str] | None = None
    offline: Offline | None = None
    compiled: str = ""
    unbuilt: str = ""
    plugins: re.Pattern[str] | None = None
    mutate: TestReader | None = None
