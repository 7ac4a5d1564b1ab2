"""What else may stand in a place of a problem's tests: a constant as plausible as the one that is there."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from astra_async.languages import language_of
from astra_async.languages.altering import DRAWN, KEYS, NUMBER, SYMBOL, TEXT, WITHIN

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from astra_async.languages.altering import Alteration

# Of constants are none that the tests use, but like this one: where there is one of its form, and where not.
_INVENTED, _INVENTED_ALONE = 0.2, 0.7
_NEAR = 0.9  # of the others are of the same form, where there are such
# Of texts become one that stands elsewhere in their file, such as what a test sends.
_ELSEWHERE = 0.15
_NEXT = 0.5  # of numbers that are invented are the next ones: what is forgiven may be near
_RESPELLED = 0.25  # of texts, where no object of an answer's decides what they equal or hold
_LAST = 0.7  # of numbers change in one of their last two digits
_DIGITS = 0.4  # of texts that are looked for within others and have digits get two more
# Draws until another text is found than those that were asked before, and one that no text of theirs has.
_TRIES, _FEW_TRIES = 200, 8
_QUOTED = re.compile(rb"""(['"])([^'"\\`#$%{}\r\n]+)\1""")
_NAME = re.compile(rb"[\w-]+")
_POINTS = bytes.maketrans(b".,", b",.")
_NO_WORD = re.compile(rb"[\s!-/:-@]")
_WORD = re.compile(rb"[A-Za-z]{4,}")
_Group = tuple[object, ...]


class Substitutes:
    """The constants of a problem's tests, in groups: by their file, their form and what they are asked of.

    `sources` are the tests' files by path, `places` what may be altered in them, with the path.
    """

    def __init__(self, sources: Mapping[str, bytes], places: Iterable[tuple[str, Alteration]]) -> None:
        self._sources = sources
        # With how often each stands there. What is done for each place of each form reads a group, never
        # all constants: of a file of many tests that would take minutes.
        self._groups: dict[_Group, Counter[bytes]] = defaultdict(Counter)
        phrases = set[bytes]()
        for path, place in places:
            text = sources[path][place.begin : place.end]
            for group in (*_near(path, place, text), *_of_kind(path, place)):
                self._groups[group][text] += 1
            if place.kind in {TEXT, WITHIN}:
                phrases.add(text)
        for path, source in sources.items():
            for found in _QUOTED.finditer(source):
                self._groups[path, _form(found[2])][found[2]] = 1
        self._phrases = b"\n".join(sorted(phrases))
        self._words: dict[_Group, list[bytes]] = defaultdict(list)
        for word in sorted(set(_WORD.findall(self._phrases))):
            self._words[_word_form(word)].append(word)

    def other(self, path: str, place: Alteration, rng: random.Random, but: Collection[bytes] = ()) -> bytes:
        """What else may stand in this place; one of `but` only where hardly anything else may.

        A name without another stays, and the reference passes it.
        """
        if place.others:
            left = [each for each in place.others if not any(_is_made_of(each, text) for text in but)]
            return _drawn_in(rng.choice(left or place.others), rng)
        source = self._sources[path]
        text = source[place.begin : place.end]
        quote = source[place.begin - 1 : place.begin] if place.kind == TEXT else b"\n"
        groups = _near(path, place, text), _of_kind(path, place), [(path, _form(text))]
        if rng.random() < _RESPELLED and (spellings := _spellings(path, place, text)):
            return rng.choice(spellings)
        known = [self._others(each, text, quote) for each in groups] if place.kind != WITHIN else []
        if place.kind in KEYS:  # not a key that its table has already
            table = source[source.rfind(b"{", 0, place.begin) + 1 : source.find(b"}", place.end)]
            but = {*but, *_NAME.findall(table)}
        found = text
        for _ in range(_TRIES):
            if (found := self._drawn(text, place.kind, known, rng)) not in but:
                break
        return found

    def is_spelling(self, path: str, place: Alteration, text: bytes) -> bool:
        """Whether it is the text of this place in a spelling that no honest answer takes for it."""
        return text in _spellings(path, place, self._sources[path][place.begin : place.end])

    def _others(self, groups: Iterable[_Group], text: bytes, quote: bytes) -> Counter[bytes]:
        """The other constants of the first group that has some; none that its quotes could not hold.

        Not another spelling: code that equals in any case, as some answers do, equals both.
        """
        spelled, found = text.lower(), Counter[bytes]()
        for group in groups:
            for each, count in self._groups.get(group, found).items():
                if each.lower() != spelled and quote not in each:
                    found[each] = count
            if found:
                break
        return found

    def _drawn(self, text: bytes, kind: str, known: Sequence[Counter[bytes]], rng: random.Random) -> bytes:
        """One of those that are known (near ones, all of the kind, texts of the file), or a new one."""
        if not known:  # another of the tests' words may well be shown beside it
            return _like(text, kind, rng)
        near, others, quoted = known
        if kind == TEXT and quoted and rng.random() < _ELSEWHERE:
            return rng.choice(list(quoted))
        invented = (self._reworded(text, rng) if kind == TEXT else b"") or _like(text, kind, rng)
        if not others or (invented != text and rng.random() < (_INVENTED if near else _INVENTED_ALONE)):
            return invented
        if near and (kind == NUMBER or rng.random() < _NEAR):
            return _one_of(near, rng)
        return invented if kind == NUMBER else _one_of(others, rng)  # a compiler may want one of its form

    def _reworded(self, text: bytes, rng: random.Random) -> bytes:
        """The text with one of its words become another that the tests have; nothing where none was found.

        The result stands in no text of theirs: what one asks for, an answer may show beside the other.
        """
        found = list(_WORD.finditer(text)) if len(text.split()) > 1 else []
        own = {each[0] for each in found}
        for each in rng.choices(found, k=_FEW_TRIES) if found else ():
            word = rng.choice(self._words.get(_word_form(each[0])) or [each[0]])
            made = text[: each.start()] + word + text[each.end() :]
            if word not in own and made not in self._phrases:
                return made
        return b""


def respelled(text: bytes) -> list[bytes]:
    """A text in the other case, with points for commas and the reverse, without punctuation and blanks."""
    found = (text.swapcase(), text.translate(_POINTS), _NO_WORD.sub(b"", text))
    return [each for each in dict.fromkeys(found) if each not in {text, b""}]


def _spellings(path: str, place: Alteration, text: bytes) -> list[bytes]:
    """A text in spellings that honest answers do not take for it; what is looked for in the other case."""
    language = language_of(path)
    is_fixed = language is not None and not language.own_equality and place.kind in {TEXT, WITHIN}
    found = respelled(text) if is_fixed else []
    return [each for each in found if place.kind == TEXT or each == text.swapcase()]


def _near(path: str, place: Alteration, text: bytes) -> Iterator[_Group]:
    """Groups of constants of the same form, the nearest first: asked of the same, of the file, of all."""
    form = _form(text)
    yield path, place.kind, form, place.asked
    yield path, place.kind, form
    yield place.kind, form


def _of_kind(path: str, place: Alteration) -> Iterator[_Group]:
    """Groups of constants of the same kind: of the file, of the problem."""
    yield path, place.kind
    yield (place.kind,)


def _drawn_in(other: bytes, rng: random.Random) -> bytes:
    """What may stand in a place, with its digits drawn."""
    return re.sub(DRAWN, lambda _: b"%d" % rng.randrange(10, 100), other)


def _is_made_of(other: bytes, text: bytes) -> bool:
    """Whether a text is what may stand in a place, with some digits or other."""
    parts = other.split(DRAWN)
    pattern = rb"\d\d".join(map(re.escape, parts))
    return re.fullmatch(pattern, text) is not None if len(parts) > 1 else other == text


def _one_of(known: Counter[bytes], rng: random.Random) -> bytes:
    return rng.choices(list(known), list(known.values()))[0]


def _form(text: bytes) -> tuple[bytes, int]:
    """What two constants have in common that look alike: kinds of characters in a row, and about how many."""
    shape = re.sub(rb"[0-9]+", b"0", re.sub(rb"[^\W\d_]+", b"a", text))
    return shape, len(text).bit_length()


def _word_form(word: bytes) -> _Group:
    """What two words have in common that look alike."""
    return len(word).bit_length(), word[:1].isupper()


def _like(text: bytes, kind: str, rng: random.Random) -> bytes:
    """A constant that differs in little from this one; itself where there is none."""
    digits = [at for at, each in enumerate(text) if chr(each).isdigit()]
    if kind == WITHIN and digits and rng.random() < _DIGITS:
        return _drawn_in(text[: digits[0]] + DRAWN + text[digits[0] :], rng)
    if kind == NUMBER or (kind == TEXT and digits):
        at = rng.choice(digits[-2:] if rng.random() < _LAST else digits)
        others = [each for each in b"123456789" if each != text[at]]
        if kind == NUMBER and rng.random() < _NEXT:
            at = digits[-1]
            others = [each for each in b"123456789" if abs(each - text[at]) == 1]
        return text[:at] + bytes([rng.choice(others)]) + text[at + 1 :]
    letters = [
        at
        for at in range(1, len(text))
        if text[at - 1 : at + 1].isalpha() and text[at - 1 : at].lower() != text[at : at + 1].lower()
    ]
    if kind not in {TEXT, SYMBOL, WITHIN, *KEYS} or not letters:
        return text if kind != TEXT else text + b"s"
    at = rng.choice(letters)  # two letters change places
    return text[: at - 1] + text[at : at + 1] + text[at - 1 : at] + text[at + 1 :]
