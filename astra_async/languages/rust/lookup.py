"""Rust's own macros, which a source may declare anew for the tests that follow or import it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import MOST_CHARACTERS, masked
from astra_async.languages.rust.items import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine

_OWN = "assert assert_eq assert_ne debug_assert matches panic unreachable todo unimplemented vec format"
_DECLARED = re.compile(
    rf"\bmacro_rules\s*!\s*(?:r#)?(?:{_OWN.replace(' ', '|')})\b"
    rf"|\buse\s[^;]*\bas\s+(?:r#)?(?:{_OWN.replace(' ', '|')})\s*[;,}}]"
)


class MacroLookup:
    """No source may declare macros of the names by which tests assert, unless one does already."""

    def __init__(self, project: Pristine) -> None:
        self._declared = {
            path for path, text in project.texts.items() if path.endswith(".rs") and _declares(text)
        }

    def refusal(self, path: str, text: str, _: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        is_new = path.lower().endswith(".rs") and path not in self._declared
        return INSTALLED if is_new and _declares(text) else None


def _declares(text: str) -> bool:
    return _DECLARED.search(masked(text[:MOST_CHARACTERS], SKIPPED, nested=True)) is not None
