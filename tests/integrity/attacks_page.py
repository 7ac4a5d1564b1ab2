"""docs/attacks.md: every attack of these tests, and how it ends.

.venv/bin/python tests/integrity/attacks_page.py       writes the page
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from attacks import ATTACKS  # noqa: E402 - from its own folder
from attacks_on_stacks import STACK_CASES, STACKS  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "attacks.md"
_HEAD = """\
# Attacks, and how they end

Made from the tests by `tests/integrity/attacks_page.py`: each line is a test in a real container under
`--trials all`. [Integrity](integrity.md) explains the words. Each solution honestly passes 2 of 4 tests.

- **prevented**: the solution gains nothing;
- **proven**: the sample is `tampered`, 0 of T;
- **unproven**: its trials are silent: the sample is `tampered`, or counted as unproven beside the score;
- **documented**: it gains a score that it should not have.
"""
_STACK_ENDS = {"forged": "proven", "patched": "proven", "configured": "prevented", "skipped": "prevented"}


def attacks_page() -> str:
    """The whole page."""
    counts = {
        end: sum(each.outcome == end for each in ATTACKS) for end in dict.fromkeys(a.outcome for a in ATTACKS)
    }
    lines = [
        _HEAD,
        ", ".join(f"{count} {end}" for end, count in counts.items()) + f", of {len(ATTACKS)}.",
        "",
    ]
    lines += ["| framework | attack | outcome |", "|---|---|---|"]
    lines += [f"| {each.framework} | {each.name.replace('|', '/')} | {each.outcome} |" for each in ATTACKS]
    lines += [
        "",
        "## On every stack",
        "",
        "On a known wrong answer of a bundled problem, with its own command and image.",
    ]
    lines += ["", "| stack | problem | attack | outcome |", "|---|---|---|---|"]
    lines += [
        f"| {each.stack} | {STACKS[each.stack].problem} | {each.name} | {_STACK_ENDS[each.family]} |"
        for each in STACK_CASES
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(attacks_page())
