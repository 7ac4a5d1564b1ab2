r"""What a Java source declares, imports and mentions, read as the compiler reads it: token by token.

`\u006f` is an o wherever it stands, comments may stand anywhere, and neither the folder nor the file's name
says which package and types a file declares. Kotlin, Groovy and Scala are near enough for their packages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u+([0-9a-fA-F]{4})")
_PIECE = re.compile(
    r"(?P<skip>\s+|//[^\r\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<text>"""(?:[^\\]|\\.)*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?)'
    r"|(?P<name>[^\W\d]\w*|\$[\w$]*|`[^`\n]*`)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_DECLARING = frozenset({"class", "interface", "enum", "record", "object", "trait"})
_LONGEST_NAME = 100  # names and dots of an import


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaNames:
    """One source: `types` are its top-level ones, `names` all that its code mentions by simple name.

    `imported` are simple names that it imports one by one, `wholly` packages (or types) imported with `*`.
    """

    package: str
    types: frozenset[str]
    imported: frozenset[str]
    wholly: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=256)  # an answer often leaves a file as other answers have it
def java_names(text: str) -> JavaNames:
    """What a source says; a text that is none gives what its tokens look like."""
    text = _UNICODE_ESCAPE.sub(lambda found: found[1] + chr(int(found[2], 16)), text)
    found = (each for each in _PIECE.finditer(text) if each.lastgroup in {"name", "other"})
    pieces = [each[0].strip("`") or "`" for each in found]
    imports = list(_stated("import", pieces))
    package = next(_stated("package", pieces), [])
    return JavaNames(
        package=".".join(package),
        types=frozenset(_top_level(pieces)),
        imported=frozenset(words[-1] for words in imports if words and words[-1] != "*"),
        wholly=frozenset(".".join(words[:-1]) for words in imports if words and words[-1] == "*"),
        names=frozenset(piece for piece in pieces if piece[0].isalpha() or piece[0] in "_$"),
    )


def _stated(word: str, pieces: list[str]) -> Iterator[list[str]]:
    """The names of each statement that begins with a word, `package` or `import`."""
    for at, piece in enumerate(pieces):
        if piece == word:
            yield _dotted(pieces[at + 1 : at + _LONGEST_NAME])


def _dotted(pieces: list[str]) -> list[str]:
    """The names of a statement, up to what cannot belong to it."""
    words: list[str] = []
    after_dot = True
    for piece in pieces:
        if piece == "static" and not words:
            continue
        if piece == ".":
            after_dot = True
        elif after_dot and (piece == "*" or piece.isidentifier()):
            words.append(piece)
            after_dot = False
        else:
            break
    return words


def _top_level(pieces: list[str]) -> Iterator[str]:
    depth = 0
    for piece, following in pairwise((*pieces, "")):
        if piece in _DECLARING and depth == 0 and following.isidentifier():
            yield following
        depth += (piece in "{(") - (piece in "})")
