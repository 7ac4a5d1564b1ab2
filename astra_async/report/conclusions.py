"""What a report says in sentences: which model is better, how sure that is, at what cost, how consistently.

A sentence never says more than the tables: a difference is one only where `pairwise` says so, and what
keeps it from being one is named.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from astra_async.report.costs import cost_is_estimated, cost_ratio, mean_cost_usd
from astra_async.report.entries import ranked
from astra_async.report.pairwise import EQUIVALENCE_MARGIN, by_format, changed_problems, common_places
from astra_async.report.table import shown, visible
from astra_async.stats.intervals import total_interval
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Concluded, Found, Metric, Pair, Standing

_MOST_NAMED = 4
_EQUAL = 1e-12  # apart by no more than rounding
_ALIKE = 0.05  # costs this close are called the same
SO_FAR = "So far, with samples missing: "
_STANDINGS: dict[Standing, str] = {  # of the best against the rest
    "worse": "{rest} {are} better than {best} on the problems that both have.",
    "better": "{best} is better than {rest}.",
    "equivalent": (
        f"Equivalent to {{best}}, within {100 * EQUIVALENCE_MARGIN:g} points of mean score: {{rest}}."
    ),
    "inconclusive": "Not separable from {best} by mean score: {rest}.",
    "incomparable": "Not compared with {best}, for want of a problem that is the same for both: {rest}.",
}


def conclusions(entries: Sequence[Entry], pairs: Found, formats: Found, agents: Found) -> tuple[str, ...]:
    """The report in a few sentences for each answer format; the others are all comparisons of their kind."""
    begun = [entry for entry in entries if entry.summary.valid]
    silent = [entry.name for entry in entries if not entry.summary.valid]
    about = [f"No sample has a result yet, so nothing can be said: {_named(silent)}."] if silent else []
    return tuple(map(visible, (*_conclusions(begun, pairs, formats), *_agents(agents), *about)))


def paired_sentence(pair: Pair, concluded: Mapping[Metric, Concluded]) -> str:
    """What is known of A against B, in one sentence: correctness, cost, consistency."""
    score = concluded["mean_score"]
    turned = (score.comparison.difference or 0.0) < 0  # the one that scores more is named first
    names = (pair.b_name, pair.a_name) if turned else (pair.a_name, pair.b_name)
    entries = (pair.b, pair.a) if turned else (pair.a, pair.b)
    parts = [
        _correctness(score, names, turned=turned),
        _cost(*entries),
        _consistency(concluded["sd"], turned),
    ]
    sentence = _where(pair) + "; ".join(filter(None, parts)) + "."
    return visible(sentence if pair.complete else SO_FAR + sentence)


def _conclusions(entries: Sequence[Entry], pairs: Found, formats: Found) -> Iterator[str]:
    several = len({entry.format for entry in entries}) > 1
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        best, *rest = ranked(entries, answer_format)
        named = answer_format if is_agent(answer_format) else answer_format.upper()
        prefix = f"{named}: " if several else ""
        if not rest:
            yield prefix + _alone(best)
            continue
        of_best = [found for found in pairs if found[0].a is best]
        yield from (prefix + paired_sentence(*found) for found in of_best if found[0].b is rest[0])
        yield from _others(prefix, best.label, [found for found in of_best if found[0].b is not rest[0]])
    if formats:
        yield _formats(formats)


def _agents(agents: Found) -> Iterator[str]:
    """Each model's best agent against its best single answer, and the best of all with another model's."""
    stated = set()
    for pair, concluded in by_format(agents):
        agent, single = (pair.a, pair.b) if is_agent(pair.a.format) else (pair.b, pair.a)
        about = agent.label, single.label, is_agent(single.format)
        if about not in stated and not (pair.a.label == pair.b.label and is_agent(single.format)):
            stated.add(about)
            yield paired_sentence(pair, concluded)


def _alone(entry: Entry) -> str:
    begun = entry.valid > 0
    score, found = entry.summary.mean_score, total_interval(entry.means[begun], entry.families_of(begun))
    sure = f" {shown(found, 'percent')} on problems like these, at 95 %" if found else ""
    cost = mean_cost_usd(entry)
    price = f"; {_price(entry, cost)} a sample" if cost else ""
    state = "" if entry.complete else SO_FAR
    passed = shown(entry.summary.pass_at_1, "percent")
    return (
        f"{state}{entry.label} has a mean score of {shown(score, 'percent')} %{sure}, and {passed} % of its"
        f" samples pass all tests{price}."
    )


def _others(prefix: str, best: str, found: Found) -> Iterator[str]:
    """What became of the third and later models against the best."""
    rest = [(pair, concluded["mean_score"].standing) for pair, concluded in found]
    for standing, sentence in _STANDINGS.items():
        for complete in (True, False):
            labels = [pair.b.label for pair, each in rest if (each, pair.complete) == (standing, complete)]
            if labels:
                are = "is" if len(labels) == 1 else "are"
                text = sentence.format(best=best, rest=_named(labels), are=are)
                yield f"{prefix}{'' if complete else SO_FAR}{text}"


def _formats(formats: Found) -> str:
    conclusions = [concluded["mean_score"].conclusion for _, concluded in formats]
    models = "1 model" if len(conclusions) == 1 else f"{len(conclusions)} models"
    better, worse = conclusions.count("better"), conclusions.count("worse")
    if not better and not worse:
        return f"Asked for XML or for JSON: no difference in mean score is shown for any of {models}."
    return f"Asked for XML instead of JSON, {better} of {models} score better and {worse} worse."


def _correctness(score: Concluded, names: tuple[str, str], *, turned: bool) -> str:
    c, (winner, other) = score.comparison, names
    if c.difference is None or c.difference_interval is None or c.a_value is None or c.b_value is None:
        return f"{winner} and {other} cannot be compared: {score.why or 'too few common problems'}"
    low, high = (-c.difference_interval[1], -c.difference_interval[0]) if turned else c.difference_interval
    # the difference of what the tables show, so that nobody finds another one there
    points = abs(Decimal(shown(c.a_value, "percent")) - Decimal(shown(c.b_value, "percent")))
    by = f"{points} points of mean score {shown((low, high), 'points')}"
    if score.conclusion == "equivalent":
        margin = f"{100 * EQUIVALENCE_MARGIN:g} points or more"
        return f"{winner} and {other} are equivalent: a difference of {margin} of mean score can be excluded"
    if score.conclusion != "inconclusive":
        text = f"{winner} is better than {other} by {by} on problems like these, sure at 95 %"
        return text if low > 0 else f"{text} unless there are rare large losses that no problem has shown"
    why = f": {score.why}" if score.why else " on other problems like these"
    if points == 0:
        near = "the same mean score" if abs(c.difference) < _EQUAL else "mean scores within 0.1 points"
        return f"{winner} and {other} have {near}, which does not show that they are alike{why}"
    above = f"{winner}'s mean score is {points} points above {other}'s {shown((low, high), 'points')}"
    return f"{above}, which does not show that it is better{why}"


def _where(pair: Pair) -> str:
    """On which problems, if one of the two has others as well: its mean in other tables is another one."""
    ours, theirs = set(pair.a.problem_ids), set(pair.b.problem_ids)
    common = len((ours & theirs) - changed_problems(pair.a, pair.b).keys())
    if common in (0, len(ours | theirs)):
        return ""
    return f"On the {common} {'problem' if common == 1 else 'problems'} that both have, "


def _cost(first: Entry, second: Entry) -> str:
    """The ratio of the costs on common problems, with its interval; nothing without one."""
    found = cost_ratio(first, second, *common_places(first, second))
    if found is None:
        return ""
    low, high = found.interval
    of = ", of the samples whose cost is known" if found.is_partial else ""
    prices = f"({_price(first, found.ours)} a sample against {_price(second, found.theirs)}{of})"
    if math.exp(-_ALIKE) < low and high < math.exp(_ALIKE):
        return f"it costs the same {prices}"
    if low <= 1 <= high:
        return f"no difference in cost is shown {prices}"
    return f"it costs {found.ratio:.2g} times as much [{low:.2g}, {high:.2g}] {prices}"


def _price(entry: Entry, cost: float) -> str:
    return f"{'about ' if cost_is_estimated(entry) else ''}${shown(cost, 'usd')}"


def _consistency(sd: Concluded, turned: bool) -> str:  # noqa: FBT001 - one of two directions, within this file
    if sd.comparison.n == 0:
        return "consistency takes the same number of samples, at least two of each problem"
    if sd.conclusion == "inconclusive":
        return "no difference in consistency is shown"
    if sd.conclusion == "equivalent":
        return "they are equally consistent"
    return f"it is {'less' if (sd.conclusion == 'better') != turned else 'more'} consistent"


def _named(labels: Sequence[str]) -> str:
    shortened = list(labels[:_MOST_NAMED])
    if len(labels) > _MOST_NAMED:
        shortened.append(f"{len(labels) - _MOST_NAMED} more")
    return ", ".join(shortened[:-1]) + f" and {shortened[-1]}" if len(shortened) > 1 else shortened[0]
