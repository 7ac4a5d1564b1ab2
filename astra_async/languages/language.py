"""What the program knows about a programming language: one value, filled by one folder.

Everything but the name may be left out. What a language lacks is told to whoever uses it
(`astra_async.languages.lacks`), and never makes another one weaker. Patterns for paths see them as the
project names them and are searched for; those for tools see names in small letters and have to match whole.
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
# A new file that would be loaded in place of an installed module, or of a protected file.
INSTALLED, PROTECTED = "shadows_module", "shadows_protected"
# A tool looks where it works, in the folders above the tests too, or in any; or the names are whole paths.
Reach = Literal["place", "above", "any", "path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """How a project of the language is recognised, and what its image needs.

    `find` looks at one folder of a project ("" is the root). `calls` are the language's programs in commands.
    `signs` says to a user which files tell of it. `installs` reads the words of one command: the same command
    for an image, where it adds packages by name.

    `managers` would fetch packages during the tests, which have no network, and are made to do nothing;
    `leavings` are what an installation writes into the project. Both are part of every image's name.

    `holds` is a script that writes what an image holds beside a project into a file, one name a line.
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

    `sign` tells of it in commands and manifests, `brings` are others that are at hand with it, and `scripts`
    files whose text it runs.
    """

    name: str
    sign: str
    _: KW_ONLY
    runs_tests: bool = False
    brings: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reads:
    """Files that tools (one of `by`, between blanks; any where that is empty) read by their names.

    `names` is a pattern, `when` restricts it to test commands in which that pattern is found.
    """

    rule: Rule
    by: str
    reach: Reach
    names: str
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of a language and what they read by themselves.

    `manifests` are names of files whose text tells of tools; a tool works where one lies. `everyday` are
    names that sources have too: only their place makes them configuration. `settings` are words after which
    settings name files that a runner loads, `settings_files` further files with such settings, `sections`
    those in a manifest, and `ends` what a name may lack.

    `scripts` are those of manifests that a command calls; `development` what manifests need for tests alone.
    `inert` are dotfiles that no test run reads. `variables` steer interpreters and runners.
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
    """Which files are tests.

    `paths` are names and places of tests; a pristine file of such a name that sources alone use is a source,
    unless it is `certain`. `likely` are further names of tests that an answer adds. `content` is what only
    tests hold, all of it; without it names alone tell. In a place that is `alone` nothing but tests can be,
    new ones included. `folders` are names of folders that are the tests' where they hold some; of a test of
    the kind `whole`, the topmost folder is.
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
    """How installs that a project asks for when its tests run are made harmless.

    `command` gives the test command as it is run, `environment` further variables for it.
    """

    command: Callable[[str, Project], str]
    environment: Callable[[Project], Mapping[str, str]]


class Lookup(Protocol):
    """What a file would be loaded in place of, in one project, by the language's own rules of looking up."""

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:
        """INSTALLED, PROTECTED, another key of `overlay.REFUSALS`, or None, of a file that gets this text.

        It is new, or one of the pristine project's. `held` are names that the image holds, as `Images.holds`
        writes them; None where that is not known and the usual is assumed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Files of which an answer changes parts.

    `takes` says whether a path is one; `merged` gives the text for it (None: nothing was taken), of its path,
    the pristine text and the answer's, and what was dropped. `parted` gives the part of a pristine text that
    may change, and the part that stays. Of `new` files parts are left out, too. It `is_enough` where nothing
    else about such a file is asked, whatever reads it by its name.
    """

    takes: Callable[[str, str], bool]
    merged: Callable[[str, str, str], tuple[str | None, list[Dropped]]]
    parted: Callable[[str], tuple[str, str]] = lambda text: (text, "")
    is_enough: bool = True
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. `suffixes` are those of its sources, in small letters and without the dot.

    `loaded` says how a source asks for another file: by its name in an import, as a word, in quotes, or not
    at all. `offline` silences its package managers. `arguments` are paths that its programs take as one file,
    where commands hand them on.
    `compiled` are files that programs load and nobody reads, `plugins` those that register plugins.
    `unbuilt` is what compilers and loaders print of code that does not build. `mutate` finds the places of
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
