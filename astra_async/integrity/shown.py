"""What a solution has answered, as the message of a failed altered test shows it.

An altered test asks for something else, and its message says what it got instead: what the test asks for as
it is, if the solution is right. A solution that shows another constant, which equality forgives where it is
not altered, is asked for that one next: no other constant would find it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity.substitutes import respelled
from astra_async.languages.altering import constant

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 3  # constants of a message that are asked for
# Numbers nearer to each other may be the same to an honest answer that rounds.
_NEAR = 1e-3
_NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d{1,20})(?:\.\d{1,6})?"
_QUOTES = "\"'"
_BEFORE = 10  # characters before an answer, by which its place is found in another message
_NEEDLESS = re.compile(r"\b0+(?=\d)|(\.\d*?)0+\b")  # zeros of numbers
_NOTHING = frozenset({"nil", "None", "null", "undefined"})
_WORDS = _NOTHING | {"true", "false", "True", "False"}
_CONSTANT = re.compile(
    r"""(?<!\w)(?P<text>(?P<quote>['"])(?:[^\\\r\n]|\\.)*?(?P=quote))(?!\w)"""
    rf"""|(?<![\w.,])(?P<number>{_NUMBER})(?![A-Za-z_]{{4}}|\d|[.,]\d)"""  # a unit may follow
    r"""|(?<!\w)(?P<key>[A-Za-z_]\w*)(?=: |=>)"""
    rf"""|(?P<word>\b(?:{"|".join(sorted(_WORDS))})\b)"""
    r"""|<(?P<angled>[^<>\r\n]{1,200})>"""  # JUnit's, without quotes
)
_NAMED = re.compile(r"""(\w+)["']?\s*(?::|=>)""")
# What was cut off may have been anything, and a moment may be shown in any time zone.
_OPEN = re.compile(r"…|\[\d+ chars\]|tzinfo=|\d:\d\d\S* ?(?:[+-]\d\d:?\d\d|UTC|Z)\b")
# Places in a source (`a.js:15:42`) and lengths, which are no answer.
_PLACES = re.compile(r"\.\w{1,5}:\d+(?::\d+)?\b|\((?:\d+|line \d+)\)|\[\d+ \w+\]|\bline \d+")


class Shown(NamedTuple):
    """What an `altered` test asked for, and the messages of a solution and of the `right` one then."""

    altered: str
    message: str
    right: str | None = None


def answers(asked: str, shown: Shown, *, own_equality: bool = True, is_altered: bool = True) -> list[str]:
    """Constants that a solution may have given for the one that a test asks for, as its language writes them.

    `asked` is as the source has it, a number, a truth or a text in quotes. Empty where the solution's message
    shows that and no right one is given, or the right one does not show it. With `own_equality` an honest
    answer may equal two constants that are alike; without, any other one is another answer. Of a place beside
    the one that `is_altered` what is asked for has to stand there less often than in the right message.

    First comes what stands where the reference's message has what was asked for; what that shows as well is
    no answer. Of a message that shows no constant of its own it is what is next to the right number, or
    without `own_equality` other spellings of the right text.
    """
    altered, message, right = shown
    message, reference = _PLACES.sub(" ", message), _PLACES.sub(" ", right or "")
    wanted = next((each for _, each in _constants(asked)), None)
    given = [*_constants(message)]
    failed, known = {each for _, each in _constants(altered)}, [*_constants(reference or asked)]
    places = [at for at, each in known if each == wanted]
    times = sum(each == wanted for _, each in given)
    if wanted is None or not places or (times and right is None):
        return []
    if not is_altered and times >= len(places):
        return []
    more = Counter(each for _, each in given) - Counter(each for _, each in known)
    if not more and right and not times and is_altered and (wanted.isdigit() or wanted[0] == '"'):
        return _near_to(wanted, asked, failed, own_equality=own_equality)
    at = _place_after(reference[: places[0]][-_BEFORE:], message)
    given.sort(key=lambda each: each[0] < at)
    others = (each for each in dict.fromkeys(each for _, each in given) if each in more)
    differing = (each for each in others if not own_equality or _differs(wanted, each))
    quote = asked[0] if asked[0] in _QUOTES else _QUOTES[0]
    written = (_written(each, quote) for each in differing if each not in failed)
    return [each for each in written if each in _WORDS or _is_constant(each.encode())][:_MOST]


def _near_to(wanted: str, asked: str, failed: set[str], *, own_equality: bool) -> list[str]:
    """The next numbers, or other spellings of a text."""
    if wanted.isdigit():
        return sorted({str(abs(int(wanted) + by)) for by in (1, -1)} - failed)
    spellings = [] if own_equality else [each.decode() for each in respelled(wanted[1:-1].encode())]
    return [f"{asked[0]}{each}{asked[0]}" for each in spellings if f'"{each}"' not in failed]


def differing(message: str, right: str) -> set[str] | None:
    """The names beside which a message has other constants than the right one; None where it has the same."""
    given, known = ([*_constants(_PLACES.sub(" ", each))] for each in (message, right))
    one, other = (Counter(each for _, each in found) for found in (given, known))
    if one == other:
        return None
    more = ((message, given, one - other), (right, known, other - one))
    return {
        name
        for text, found, others in more
        for at, each in found
        if each in others
        for name in _NAMED.findall(_PLACES.sub(" ", text)[:at])[-1:]
    }


def otherwise(asked: str, shown: Shown, *, own_equality: bool) -> set[str]:
    """Constants that a message shows where the right one shows what is asked for, which it shows nowhere.

    An object that equals what is asked for may be shown as anything, and seldom is as a plain constant.
    """
    altered, message, right = shown
    message, reference = _PLACES.sub(" ", message), _PLACES.sub(" ", right or "")
    wanted = next((each for _, each in _constants(asked)), "")
    given, known = _constants(message), _constants(reference)
    if not wanted or _OPEN.search(shown.message) or any(each == wanted for _, each in given):
        return set()
    places = {_before(reference, at) for at, each in known if each == wanted}
    others = {each for _, each in (*known, *_constants(altered))}
    return {
        each
        for at, each in given
        if each not in others
        and "..." not in each
        and is_alike(wanted, each)
        and not (own_equality and not _differs(wanted, each))
        and (right is None or _before(message, at) in places)
    }


def _before(message: str, at: int) -> str:
    """What stands before a constant, with its own first sign if that is none of it."""
    return message[max(at - _BEFORE, 0) : at] + ("" if message[at].isalnum() else message[at])


def is_alike(one: str, other: str) -> bool:
    """Whether two constants are of one type in every language that has types."""
    if one[0] in _QUOTES or other[0] in _QUOTES:
        return one[0] in _QUOTES and other[0] in _QUOTES
    return not {one, other} & _WORDS and all((sign in one) == (sign in other) for sign in "-.")


def _place_after(before: str, message: str) -> int:
    """Where the message goes on after what stands before an answer, or at least its end; else 0."""
    parts = (before[-length:] for length in range(len(before), 2, -1))
    return next((message.index(part) + len(part) for part in parts if part in message), 0)


@lru_cache(maxsize=16)  # a message is looked at for each place of its test
def _constants(message: str) -> tuple[tuple[int, str], ...]:
    """Those of a message with their places: texts with one kind of quotes, numbers without needless zeros."""
    return tuple(_found_in(message))


def _found_in(message: str) -> Iterator[tuple[int, str]]:
    for found in _CONSTANT.finditer(message):
        number, angled = found["number"], found["angled"] or ""
        if re.fullmatch(_NUMBER, angled):
            number = angled
        if found["text"]:
            text = f'"{found["text"][1:-1]}"'
        elif number:
            sign, digits = number[: number.startswith("-")], number.lstrip("-").replace(",", "")
            text = sign + re.sub(r"^0+(?=\d)", "", digits)
        elif found["key"]:
            text = f'"{found["key"]}"'
        else:
            text = found["word"] or (angled if angled in _WORDS else f'"{angled}"')
        yield found.start(), text


def _differs(wanted: str, other: str) -> bool:
    """Whether no honest answer equals both, as it may two ways of writing a value.

    It may show cents as dollars, or a text without its accents, case, hyphens or a number's needless zeros.
    """
    if wanted in _NOTHING or {wanted, other} & _WORDS:
        return wanted in _NOTHING or other in _WORDS
    if wanted[0] == '"' or other[0] == '"':
        short, other_short = (_NEEDLESS.sub(r"\1", each) for each in (wanted, other))
        is_same = _letters(wanted) == _letters(other) or _letters(short) == _letters(other_short)
        return wanted[0] == other[0] and not is_same
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
