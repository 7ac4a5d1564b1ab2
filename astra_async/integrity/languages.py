"""Which rewriter makes the twin of which test file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import random
    from types import ModuleType

    from astra_async.integrity.other_values import Altered
    from astra_async.integrity.rewriting import Rewriter

_JAVASCRIPT = ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts")
# Modules of this room, each with `rewrite` and `blurred`; a grammar is loaded when a problem needs it.
_MODULES = {
    "py": "python_twin",
    "rb": "ruby_twin",
    "java": "java_twin",
    **dict.fromkeys(_JAVASCRIPT, "javascript_twin"),
}


def rewriter_of(path: str) -> Rewriter | None:
    """The rewriter for a file of this name; None where there is none for its language."""
    module = _module(path)
    return cast("Rewriter", module.rewrite) if module else None


def blurred(path: str, text: str, rng: random.Random) -> str:
    """A test file with comments of random words and length: neither size nor hash are as one knows them."""
    module = _module(path)
    return str(module.blurred(path, text, rng)) if module else text


def altered(path: str, text: str, rng: random.Random) -> Altered:
    """A test file whose tests expect other values; see `other_values`."""
    from astra_async.integrity import other_values  # loads the grammars

    return other_values.altered(path, text, rng)


def is_alike(path: str) -> bool:
    """Whether a twin of this file needs no blurring: tests in it that do not fail look as if they did."""
    return path.endswith(".py")


def _module(path: str) -> ModuleType | None:
    name = _MODULES.get(path.rpartition(".")[2].lower())
    return import_module(f"astra_async.integrity.{name}") if name else None
