"""Tests that an answer could replace, because neither a rule nor the problem says which files are theirs.

The rules know the tests of some languages. Where those of another are written (`t/shop.t`, `shop_spec.lua`,
inside of a source), their names tell: `Shop adds two items` ends as a text does in the file that holds it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.overlay.merged_files import merge_of
from astra_async.overlay.suspicions import NOT_CODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.overlay.policy import PathPolicy
    from astra_async.types import ExpectedTest

_REMEDY = "name the files of its tests in readonly_paths (hackerrank.yml or the CSV's column)"
_WORD = re.compile(r"\w+")
_TELLING = 4  # characters; less (`2`, `1]`) stands anywhere
_MOST = 500  # tests that are looked for


def replaceable_tests(policy: PathPolicy, tests: Sequence[ExpectedTest]) -> list[str]:
    """A line that says why an answer could replace the tests, with the remedy; none where nothing tells so.

    `tests` are those that count, once they are known. A name may be put together while the tests run, and
    part of it may stand in a source by chance: half of them have to be in files that may be changed.
    """
    # The problem may name files that only its image holds, where the project is laid over it.
    named = policy.read_only.patterns or policy.hidden.patterns
    if not (named or policy.tests or policy.runner_files):
        return [f"no file of it is protected: an answer could replace its tests; {_REMEDY}"]
    may_change, protected = _texts(policy)
    changeable = "\0".join(may_change.values())
    places: Counter[str] = Counter()
    looked_for = tests[:_MOST]
    for test in looked_for:
        end = _longest_end(test.name, changeable)
        is_telling = len(end) >= _TELLING or end == test.name
        if is_telling and len(end) > len(_longest_end(test.name, protected)):
            places[next(path for path, text in may_change.items() if end in text)] += 1
    if not looked_for or 2 * places.total() < len(looked_for):
        return []
    files = ", ".join(path for path, _ in places.most_common(3))
    return [f"an answer could replace {places.total()} of {len(looked_for)} tests, in {files}; {_REMEDY}"]


def _texts(policy: PathPolicy) -> tuple[dict[str, str], str]:
    """The text of each file of code that an answer may change, and that of all protected files."""
    texts = policy.texts()
    may_change = {path for path in sorted(texts) if policy.refusal(path) is None}
    merges = {path: merge for path in may_change if (merge := merge_of(path, texts[path]))}
    parts = {path: merge.parted(texts[path]) for path, merge in merges.items()}
    changing = {path: parts[path][0] if path in parts else texts[path] for path in may_change}
    staying = [text for path, text in texts.items() if path not in may_change]
    return (
        {path: text for path, text in changing.items() if not path.lower().endswith(NOT_CODE)},
        "\0".join([*staying, *(kept for _, kept in parts.values())]),
    )


def _longest_end(name: str, text: str) -> str:
    """The most of a name's last words that stands in a text as it is; empty when none does."""
    longest = ""
    for word in reversed(list(_WORD.finditer(name))):
        end = name[word.start() :]
        if end not in text:
            break
        longest = end
    return longest
