"""Rust's own macros, which a source may declare anew for the tests that follow or import it.

Where a macro declares one of these names, that it was given, the compiler calls it ambiguous, unless the
prelude is off or the name is imported outside of macros: these two are refused, not macros that make macros.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import masked
from astra_async.languages.rust.items import SKIPPED, counting, tests_in

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine

_OWN = "assert|assert_eq|assert_ne|debug_assert|matches|panic|unreachable|todo|unimplemented|vec|format"
_USED = re.compile(rf"\b({_OWN})\s*!")
_DECLARED = re.compile(rf"\bmacro_rules\s*!\s*(?:r#)?({_OWN})\b|\b(no_implicit_prelude)\b")
_USE = re.compile(r"\buse\b[^;]*;?")
# The rest of Rust's own are modules' and functions' names, too.
_IMPORTED = re.compile(rf"(?:\bas\s+(?:r#)?({_OWN})|\b(assert(?:_eq|_ne)?))\s*[;,}}]")


class MacroLookup:
    """No file may declare macros of the names that the tests use, unless it does already.

    A file of any name may be a module (`#[path]`, `include!`). Tests inside of sources are not asked where
    those of an answer's own are dropped.
    """

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        self._used: set[str] = set()
        for path, text in project.texts.items():
            if path.endswith(".rs"):
                tests = text if path in project.protected else tests_in(text)
                self._used.update(_USED.findall(tests))
        self._used |= {"no_implicit_prelude"} if self._used else set()

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        pristine = self._texts.get(path, "")
        new = (_declared(path, pristine, text) if self._used else set()) - _declared(path, pristine, pristine)
        return INSTALLED if self._used & new else None


def _declared(path: str, pristine: str, text: str) -> set[str]:
    is_rust = path.lower().endswith(".rs")
    counts = counting(pristine, text) if path.endswith(".rs") else text
    code = masked(counts, SKIPPED, nested=True)
    # Prose and other languages use things, too, though not by such paths.
    uses = (found[0] for found in _USE.finditer(code) if is_rust or "::" in found[0])
    found = [*_DECLARED.findall(code), *(each for use in uses for each in _IMPORTED.findall(use))]
    return {name for names in found for name in names if name}
