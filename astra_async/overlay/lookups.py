"""What a new file would be loaded in place of, by each language's own rules of looking up.

An answer may add whatever it likes as long as no import, require, autoload or class lookup that finds a
protected file or an installed module today would find the new file instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES

if TYPE_CHECKING:
    from astra_async.languages.language import Lookup

_COMPILED = re.compile(
    "|".join([r"\.(?:so|dylib|dll)(?:\.\d+)*$", *(each.compiled for each in LANGUAGES if each.compiled)])
)


# What an image holds beside the project, by language, in its own names: modules, packages, features, types
# (`installed.sh` in its folder). Of a language that is not there, the usual is assumed.
Installed = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """The lookups of one project, by language."""

    of: Mapping[str, Lookup] = field(default_factory=dict)
    installed: Installed = field(default_factory=dict)

    def new(self, path: str, text: str) -> str | None:
        """What a new file would be loaded in place of, as a key of REFUSALS; or None."""
        if _COMPILED.search(path.lower()):
            return "compiled"
        if any(each.plugins.search(path) for each in LANGUAGES if each.plugins):
            return "plugin_registration"
        return self.changed(path, text)

    def changed(self, path: str, text: str) -> str | None:
        """The same of a pristine file that gets another text."""
        found = (each.refusal(path, text, self.installed.get(name)) for name, each in self.of.items())
        return next(filter(None, found), None)
