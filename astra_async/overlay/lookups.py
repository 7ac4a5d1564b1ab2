"""What a new file would be loaded in place of, by each language's own rules of looking up.

An answer may add whatever it likes as long as no import, require, autoload or class lookup that finds a
protected file or an installed module today would find the new file instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from astra_async.languages.language import Lookup
    from astra_async.languages.pristine import Pristine

_COMPILED = re.compile(
    "|".join([r"\.(?:so|dylib|dll)(?:\.\d+)*$", *(each.compiled for each in LANGUAGES if each.compiled)])
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an image holds beside the project, by language; of one that is not named, the usual is assumed.

    Each language has its own names: modules, packages, features, types (`installed.sh` in its folder).
    """

    names: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """The lookups of one project, by language."""

    of: Mapping[str, Lookup] = field(default_factory=dict)
    installed: Installed = field(default_factory=Installed)

    @classmethod
    def in_project(cls, project: Pristine) -> Lookups:
        """Those of a project with these files, of which some are protected."""
        return cls(of={each.name: each.lookup(project) for each in LANGUAGES if each.lookup})

    def new(self, path: str, text: str) -> str | None:
        """What a new file would be loaded in place of, as a key of REFUSALS; or None."""
        if _COMPILED.search(path.lower()):
            return "compiled"
        if any(each.plugins.search(path) for each in LANGUAGES if each.plugins):
            return "plugin_registration"
        return self.changed(path, text)

    def changed(self, path: str, text: str) -> str | None:
        """The same of a pristine file that gets another text."""
        held = self.installed.names
        found = (each.refusal(path, text, held.get(name)) for name, each in self.of.items())
        return next(filter(None, found), None)
