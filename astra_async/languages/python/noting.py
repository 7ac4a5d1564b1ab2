"""What unittest's assertions compare, noted by the language itself. See `languages.altering`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.languages.altering import ALL_HELD

if TYPE_CHECKING:
    from astra_async.languages.altering import Written

_LAST, _TWO = "@name@[-1]", "@name@.pop(-2) {} @name@[-1]"
_COUNTED = (  # as often, and each in the other
    "(lambda one, two: len([*one]) == len([*two]) and not [each for each in one if each not in two])"
    "(@name@.pop(-2), @name@[-1])"
)
# What an assertion holds of: of its first argument, or of two.
_SAYS = {
    "assertTrue": _LAST, "assertFalse": f"not {_LAST}", "assertIsNone": f"{_LAST} is None",
    "assertIsNotNone": f"{_LAST} is not None",
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual",
         "assertSetEqual", "assertMultiLineEqual"), _TWO.format("=="),
    ),
    "assertNotEqual": _TWO.format("!="), "assertIs": _TWO.format("is"), "assertIsNot": _TWO.format("is not"),
    "assertIn": _TWO.format("in"), "assertNotIn": _TWO.format("not in"), "assertLess": _TWO.format("<"),
    "assertGreater": _TWO.format(">"), "assertLessEqual": _TWO.format("<="),
    "assertGreaterEqual": _TWO.format(">="), "assertCountEqual": _COUNTED,
}  # fmt: skip
_ALL_HOLDS = f"if False not in @name@: raise AssertionError('{ALL_HELD}')".encode()
PASSED = b"@name@.append(False)"  # behind what is to raise


def _patterns(says: str) -> tuple[bytes, ...]:
    last = f"(@name@.append(%b), @name@.append(not not ({says})), @name@.pop(-2))[2]".encode()
    return (b"(@name@.append(%b), @name@[-1])[1]", last) if "pop" in says else (last,)


HOLDS = {name: _patterns(says) for name, says in _SAYS.items()}


def around(source: bytes, statements: tuple[int, int], line: bytes) -> list[Written]:
    """What notes comparisons before and behind a test's statements; nothing without a line of their own."""
    begin, end, last = *statements, len(source)
    before, behind = b"@name@.clear()" + line, line + _ALL_HOLDS
    noting = [((begin, begin), before), ((last, last), b"\n@name@ = []\n"), ((end, end), behind)]
    return noting if line else []
