"""What a solution has answered, as the message of a failed altered test shows it.

An altered test asks for something else, and its message says what it got instead: what the test asks for as
it is, if the solution is right. A solution that shows another constant, which equality forgives where it is
not altered, is asked for that one next: no other constant would find it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.languages.altering import constant

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 3  # constants of a message that are asked for
# Numbers nearer to each other may be the same to an honest answer that rounds.
_NEAR = 1e-3
_NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d{1,20})(?:\.\d{1,6})?"
_NOTHING = frozenset({"nil", "None", "null", "undefined"})
_CONSTANT = re.compile(
    r"""(?<!\w)(?P<text>(?P<quote>['"])(?:[^\\\r\n]|\\.)*?(?P=quote))(?!\w)"""
    rf"""|(?<![\w.,])(?P<number>{_NUMBER})(?![\w.,]*\w)"""
    rf"""|(?P<nothing>\b(?:{"|".join(sorted(_NOTHING))})\b)"""
    r"""|<(?P<angled>[^<>\r\n]{1,200})>"""  # JUnit's, without quotes
)
# Places in a source and lengths, which are no answer.
_PLACES = re.compile(r":\d+(?::\d+)?\b|\((?:\d+|line \d+)\)|\[\d+ \w+\]|\bline \d+")


def answers(asked: str, altered: str, message: str, right: str | None = None) -> list[str]:
    """Constants that a solution may have given for the one that a test asks for, as its language writes them.

    `asked` is as the source has it, a number or a text in quotes, and `altered` what an altered test asked
    for. `message` is the solution's then, `right` the reference's. Empty where the message shows what was
    asked for as often as the reference's, or without one, at all.
    """
    wanted, *_ = [*_constants(asked), None]
    shown, known = Counter(_constants(message)), Counter(_constants(right or asked))
    if wanted is None or shown[wanted] >= known[wanted]:
        return []
    failed = {*_constants(altered)}
    others = [each for each in shown - known if each not in failed and _differs(wanted, each)]
    written = [_written(each, asked[0]) for each in others]
    return [each for each in written if each in _NOTHING or _is_constant(each.encode())][:_MOST]


def _constants(message: str) -> Iterator[str]:
    """Those of a message in their order: texts with one kind of quotes, numbers without needless signs."""
    for found in _CONSTANT.finditer(_PLACES.sub(" ", message)):
        number, angled = found["number"], found["angled"]
        if angled and re.fullmatch(_NUMBER, angled):
            number = angled
        if found["text"]:
            yield f'"{found["text"][1:-1]}"'
        elif number:
            sign, digits = number[: number.startswith("-")], number.lstrip("-").replace(",", "")
            yield sign + re.sub(r"^0+(?=\d)", "", digits)
        else:
            yield angled if angled in _NOTHING else f'"{angled}"' if angled else found["nothing"]


def _differs(wanted: str, other: str) -> bool:
    """Whether no honest answer equals both, as it may two ways of writing a value.

    It may show cents as dollars, or a text without its accents, case or hyphens.
    """
    if other in _NOTHING:
        return True
    if wanted[0] == '"' or other[0] == '"':
        return wanted[0] == other[0] and _letters(wanted) != _letters(other)
    one, two = float(wanted), float(other)
    is_scaled = one * two > 0 and _digits(wanted) == _digits(other)
    return not is_scaled and abs(one - two) > _NEAR * max(abs(one), abs(two))


def _is_constant(text: bytes) -> bool:
    """Whether it means itself in every language."""
    return bool(constant(text, 0, len(text)))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold()))


def _digits(number: str) -> str:
    return number.replace(".", "").strip("-0")


def _written(constant: str, quote: str) -> str:
    return f"{quote}{constant[1:-1]}{quote}" if constant[0] == '"' else constant
