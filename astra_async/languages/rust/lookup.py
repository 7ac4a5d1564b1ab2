"""Rust's own macros, which a source may declare anew for the tests that follow or import it.

Where a macro declares one of these names, that it was given, the compiler calls it ambiguous, unless the
prelude is off or the name is imported outside of macros: these two are refused, not macros that make macros.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import MOST_CHARACTERS, masked
from astra_async.languages.rust.items import SKIPPED, parted

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine

_OWN = "assert|assert_eq|assert_ne|debug_assert|matches|panic|unreachable|todo|unimplemented|vec|format"
_DECLARED = re.compile(rf"\bmacro_rules\s*!\s*(?:r#)?(?:{_OWN})\b|\bno_implicit_prelude\b")
_USE = re.compile(r"\buse\b[^;]*;?")
# The rest of Rust's own are modules' and functions' names, too.
_IMPORTED = re.compile(rf"(?:\bas\s+(?:r#)?(?:{_OWN})|\bassert(?:_eq|_ne)?)\s*[;,}}]")


class MacroLookup:
    """No source may declare macros of the names by which tests assert, unless it does already.

    Tests inside of sources are not asked: those of an answer's own are dropped.
    """

    def __init__(self, project: Pristine) -> None:
        self._declared = {
            path for path, text in project.texts.items() if path.endswith(".rs") and _declares(text)
        }

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        is_new = path.lower().endswith(".rs") and path not in self._declared
        return INSTALLED if is_new and _declares(text) else None


def _declares(text: str) -> bool:
    code = masked(parted(text)[0][:MOST_CHARACTERS], SKIPPED, nested=True)
    uses = (found[0] for found in _USE.finditer(code))
    return _DECLARED.search(code) is not None or any(map(_IMPORTED.search, uses))
