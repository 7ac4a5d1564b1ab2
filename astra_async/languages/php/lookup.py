"""What the classes and functions of a PHP source would take the place of.

A class is loaded once, by whoever declares it first: one in PHPUnit's namespace stands in for PHPUnit's own
until that is needed. A function without a namespace before its name is looked up in the namespace at hand
first: `count` in the tests' own namespace is whatever a source declares there. What `require` is given
without a folder before it is looked for where PHP runs, before it is in the include path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED, PROTECTED

if TYPE_CHECKING:
    from collections.abc import Collection

    from astra_async.languages.pristine import Pristine


_LABEL = r"[\w\x80-\U0010ffff]+"
_BEGIN = re.compile(r"<\?(?:(?i:php)\b|=)?")
_CODE = re.compile(
    r"(?P<blank>\?>|(?://|#(?!\[))(?:(?!\?>)[^\r\n])*|/\*.*?(?:\*/|\Z))"
    r"|(?P<text>'(?:[^'\\]|\\.)*(?:'|\Z)"
    rf"|(?P<opened>[\"`]|<<<[ \t]*(?P<quote>[\"']?)(?P<label>{_LABEL})(?P=quote)(?=[\r\n])))"
    r"|[{}]",
    re.DOTALL,
)
_TEXT = re.compile(rf"\\.|[\"`]|\{{(?=\$)|\$\{{|(?<=[\r\n])[ \t]*(?P<label>{_LABEL})", re.DOTALL)
_ENDS = {"{": "}", "?>": "<?"}
_SEEN = re.compile(r"[^\r\n]")


def only_code(text: str) -> str:
    """The text with blanks for comments and for what is not PHP, and `_` for texts; line ends stay."""
    pieces: list[str] = []
    # What ends that which is being read, and what is around it: `}` code in code or in a text; a quote or a
    # label (`'label` where nothing is filled in) a text; `<?` what is not PHP; nothing the outermost code.
    at, ends = 0, ["", "<?"]
    while found := _reading(ends[-1]).search(text, at):
        here, before = found[0], text[at : found.start()]
        at = found.end()
        if ends[-1] == "<?":
            pieces.append(_filled(before + here, " "))
            ends.pop()
        elif ends[-1] in {"", "}"}:
            pieces += [before, _filled(here, " " if found["blank"] else "_" if found["text"] else "")]
            if here == ends[-1]:
                ends.pop()
            elif found["opened"]:
                ends.append(found["quote"].replace('"', "") + found["label"] if found["label"] else here)
            elif here in _ENDS:
                ends.append(_ENDS[here])
        else:
            pieces.append(_filled(before + here, "_"))
            if here[-1] == "{" and ends[-1][0] != "'":
                pieces[-1] = pieces[-1][:-1] + "{"
                ends.append("}")
            elif (found["label"] or here) == ends[-1].removeprefix("'"):
                ends.pop()
    return "".join([*pieces, _filled(text[at:], {"": "", "}": "", "<?": " "}.get(ends[-1], "_"))])


def _reading(end: str) -> re.Pattern[str]:
    return _BEGIN if end == "<?" else _CODE if end in {"", "}"} else _TEXT


def _filled(text: str, filler: str) -> str:
    return _SEEN.sub(filler, text) if filler else text


_PIECE = re.compile(
    r"\bnamespace(?:\s+(?P<namespace>[\w\\]+)|\s*\{)"
    r"|(?<![:>$\\\w])(?:class|interface|trait|enum)\s+(?P<type>\w+)|\bfunction\s+&?\s*(?P<function>\w+)\s*\(",
    re.IGNORECASE,
)
# Libraries that run tests, by the first names of their namespaces.
_TESTING = frozenset({"phpunit", "sebastianbergmann", "pest", "codeception", "mockery", "prophecy"})
_ALIAS = re.compile(r"\bclass_alias\s*\(", re.IGNORECASE)
_TESTING_NAME = re.compile(rf"[^;]{{0,500}}['\"]\\*(?:{'|'.join(sorted(_TESTING))})\b", re.IGNORECASE)
# Where it is not known what an image holds: PHPUnit and what it loads.
_USUAL = re.compile(
    r"(?:phpunit|sebastianbergmann|phario|deepcopy|doctrine|theseer|prophecy)/", re.IGNORECASE
)


class ClassLookup:
    """The classes and namespaces of one project's protected files."""

    def __init__(self, project: Pristine) -> None:
        self._texts = project.texts
        php = {path: text for path, text in project.texts.items() if path.endswith(".php")}
        sources = {path: _declared(only_code(text)) for path, text in php.items()}
        self._types = {name for path in project.protected & sources.keys() for name in sources[path][0]}
        ours = {space for path in sources.keys() - project.protected for space in sources[path][2]}
        theirs = {space for path in project.protected & sources.keys() for space in sources[path][2]}
        self._tests_alone = theirs - ours - {""}

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`."""
        if not path.lower().endswith((".php", ".inc", ".phtml")):
            return None
        code = only_code(text)
        types, functions, spaces = _declared(code)
        known = _declared(only_code(self._texts.get(path, "")))[0]
        is_found_first = _USUAL.match(path) if held is None else _is_found_as(path, held)
        is_testing = any(space.partition("\\")[0] in _TESTING for space in spaces)
        if is_testing or _is_alias_made(code, text) or (is_found_first and path not in self._texts):
            return INSTALLED
        if (types - known) & self._types or any(each[0] in self._tests_alone for each in functions):
            return PROTECTED
        return None


def _is_found_as(path: str, held: Collection[str]) -> bool:
    """Whether a file is found by a name of the include path, from the folder that it lies in or one above."""
    parts = path.split("/")
    return any("/".join(parts[at:]) in held for at in range(max(1, len(parts) - 1)))


def _is_alias_made(code: str, text: str) -> bool:
    """Whether a class is given a name of a library's that runs tests, which stands in the call."""
    return any(_TESTING_NAME.match(text, found.end()) for found in _ALIAS.finditer(code))


def _declared(code: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]], set[str]]:
    """Types and functions with their namespaces, and the namespaces, in small letters, as PHP compares."""
    types, functions, spaces, space = set(), set(), set(), ""
    for found in _PIECE.finditer(code):
        if found["type"]:
            types.add((space, found["type"].lower()))
        elif found["function"]:
            functions.add((space, found["function"].lower()))
        else:
            space = (found["namespace"] or "").lower().strip("\\")
            spaces.add(space)
    return types, functions, spaces or {""}
