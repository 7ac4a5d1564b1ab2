"""What a solution has answered, as the message of a failed altered test shows it.

An altered test asks for something else, and its message says what it got instead: what the test asks for as
it is, if the solution is right. A solution that shows another constant, which equality forgives where it is
not altered, is asked for that one next: no other constant would find it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 2  # constants of a message that are asked for
# Numbers nearer to each other may be the same to an honest answer that rounds.
_NEAR = 1e-3
_NUMBER = r"-?\d{1,9}(?:\.\d{1,6})?"
_NOTHING = frozenset({"nil", "None", "null", "undefined"})
_CONSTANT = re.compile(
    rf"""(?P<text>(?P<quote>['"])[^'"`\\#$%{{}}\r\n]{{1,200}}(?P=quote))"""
    rf"""|(?<![\w.])(?P<number>{_NUMBER})(?![\w.]*\w)"""
    rf"""|(?P<nothing>\b(?:{"|".join(sorted(_NOTHING))})\b)"""
    r"""|<(?P<angled>[^<>'"`\\#$%{}\r\n]{1,200})>"""  # JUnit's, without quotes
)


def answers(asked: str, altered: str, message: str, right: str | None = None) -> list[str]:
    """Constants that a solution may have given for the one that a test asks for, as its language writes them.

    `asked` is as the source has it, a number or a text in quotes, and `altered` what an altered test asked
    for. `message` is the solution's then, `right` the reference's. Empty where the message shows what was
    asked for, or the reference's does not.
    """
    wanted, *_ = [*_constants(asked), None]
    shown = [*_constants(message)]
    known = None if right is None else [*_constants(right)]
    if wanted is None or wanted in shown or (known is not None and wanted not in known):
        return []
    failed = {*_constants(altered)}
    others = dict.fromkeys(each for each in shown if each not in failed and _differs(wanted, each))
    by_chance = known or ()  # what the reference shows as well: a line's number, what the test sends
    return [_written(each, asked[0]) for each in sorted(others, key=by_chance.__contains__)][:_MOST]


def _constants(message: str) -> Iterator[str]:
    """Those of a message in their order: texts with one kind of quotes, numbers as they are."""
    for found in _CONSTANT.finditer(message):
        if found["text"]:
            yield f'"{found["text"][1:-1]}"'
        elif (angled := found["angled"]) and not re.fullmatch(_NUMBER, angled) and angled not in _NOTHING:
            yield f'"{angled}"'
        else:
            yield found["number"] or found["nothing"] or angled


def _differs(wanted: str, other: str) -> bool:
    """Whether no honest answer equals both: other numbers, other texts but for their spelling, nothing."""
    if other in _NOTHING:
        return True
    if wanted[0] == '"' or other[0] == '"':
        one, two = (" ".join(each[1:-1].lower().split()) for each in (wanted, other))
        return wanted[0] == other[0] and one != two
    one_value, other_value = float(wanted), float(other)
    return abs(one_value - other_value) > _NEAR * max(abs(one_value), abs(other_value))


def _written(constant: str, quote: str) -> str:
    return f"{quote}{constant[1:-1]}{quote}" if constant[0] == '"' else constant
