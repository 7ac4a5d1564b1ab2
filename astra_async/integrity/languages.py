"""Which rewriter makes the twin of which test file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.integrity.rewriting import Rewriter

_HASH, _SLASHES = "#", "//"
_SIGNS = {"py": _HASH, "rb": _HASH}


def rewriter_of(path: str) -> Rewriter | None:
    """The rewriter for a file of this name; None where there is none for its language."""
    suffix = path.rpartition(".")[2].lower()
    if suffix == "py":
        from astra_async.integrity.python_twin import rewrite as python

        return python
    if suffix == "rb":
        from astra_async.integrity.ruby_twin import rewrite as ruby

        return ruby
    return None


def comment_sign(path: str) -> str | None:
    """What begins a comment in a file of this name that has a rewriter."""
    return _SIGNS.get(path.rpartition(".")[2].lower())
