"""Sentences of a report: which model is better, with interval, cost and consistency.

A sentence claims a difference or an equivalence only if `pairwise` concludes it. Otherwise the sentence gives
the reason.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from astra_async.listing import counted
from astra_async.report.common_problems import common_places
from astra_async.report.costs import cost_is_estimated, mean_cost_usd, means_ratio
from astra_async.report.entries import format_name, ranked
from astra_async.report.pairwise import EQUIVALENCE_MARGIN, RARE_DIFFERENCES, by_format
from astra_async.report.table import shown, visible
from astra_async.stats.intervals import total_interval
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.common_problems import Metric
    from astra_async.report.entries import Entry, Floats
    from astra_async.report.load import Run
    from astra_async.report.pairwise import Concluded, Found, Pair, Standing

_MOST_NAMED = 4
_EQUAL = 1e-12  # a smaller difference is a rounding error
_ALIKE = 0.05  # on the log scale: an interval of a ratio within this distance of 1 means equal costs or times
SO_FAR = "So far, with samples missing: "
_EXCLUDED = (
    f"a difference of {100 * EQUIVALENCE_MARGIN:g} points or more in mean score can be excluded at 95 %"
)
_STANDINGS: dict[Standing, str] = {  # conclusion on the best model against each of the named models
    "worse": "{rest} {are} better than {best} on the problems that both have.",
    "better": "{best} is better than {rest}.",
    "lower": (
        "The mean score of {rest} is above that of {best} on the problems that both have."
        f" {RARE_DIFFERENCES}"
    ),
    "higher": f"The mean score of {{best}} is above that of {{rest}}. {RARE_DIFFERENCES}",
    "equivalent": f"{{rest}} {{are}} equivalent to {{best}}: {_EXCLUDED}.",
    "inconclusive": "{rest} {are} not separable from {best} by mean score.",
    "incomparable": "{rest} {are} not compared with {best}, because no problem has results of both.",
}


def conclusions(entries: Sequence[Entry], pairs: Found, formats: Found, agents: Found) -> tuple[str, ...]:
    """Return the conclusions of a report, a few for each answer format.

    `pairs`, `formats` and `agents` are the concluded pairs of models, of answer formats and with agents.
    """
    begun = [entry for entry in entries if entry.summary.valid]
    silent = [entry.name for entry in entries if not entry.summary.valid]
    about = [f"No sample has a result yet for {_named(silent)}."] if silent else []
    return tuple(map(visible, (*_conclusions(begun, pairs, formats), *_agents(agents), *about)))


def paired_sentence(pair: Pair, concluded: Mapping[Metric, Concluded]) -> str:
    """Return the conclusion on a pair: sentences on mean score, cost, model time and consistency."""
    score = concluded["mean_score"]
    turned = (score.comparison.difference or 0.0) < 0  # the model with the higher mean score is named first
    names = (pair.b_name, pair.a_name) if turned else (pair.a_name, pair.b_name)
    entries = (pair.b, pair.a) if turned else (pair.a, pair.b)
    sentences = [
        _correctness(score, names, turned=turned),
        expense(entries, names),
        _consistency(concluded["sd"], names, turned=turned),
    ]
    where, text = _where(pair), " ".join(filter(None, sentences))
    return visible(where.capitalize() + text if pair.complete else SO_FAR + where + text)


def _conclusions(entries: Sequence[Entry], pairs: Found, formats: Found) -> Iterator[str]:
    several = len({entry.format for entry in entries}) > 1
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        best, *rest = ranked(entries, answer_format)
        prefix = f"{format_name(answer_format)}: " if several else ""
        if not rest:
            yield prefix + _alone(best)
            continue
        of_best = [found for found in pairs if found[0].a is best and found[0].b.summary.valid]
        yield from (prefix + paired_sentence(*found) for found in of_best if found[0].b is rest[0])
        yield from _others(prefix, best.label, [found for found in of_best if found[0].b is not rest[0]])
    if formats:
        yield _formats(formats)


def _agents(agents: Found) -> Iterator[str]:
    """Yield the conclusions on agents.

    Each model's best agent is compared with its best single-answer entry, and the best agent of all with
    agents of other models.
    """
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
    bounds = f" (95 % interval {shown(found, 'percent')} for new problems like these)" if found else ""
    cost = mean_cost_usd(entry)
    price = f" A sample costs {_price(entry, cost)}." if cost else ""
    state = "" if entry.complete else SO_FAR
    passed = shown(entry.summary.pass_at_1, "percent")
    return (
        f"{state}{entry.label} has a mean score of {shown(score, 'percent')} %{bounds}."
        f" Its pass@1 is {passed} %.{price}"
    )


def _others(prefix: str, best: str, found: Found) -> Iterator[str]:
    """Yield the conclusions on the third and later models, compared with the best."""
    rest = [(pair, concluded["mean_score"].standing) for pair, concluded in found]
    for standing, sentence in _STANDINGS.items():
        for complete in (True, False):
            labels = [pair.b.label for pair, each in rest if (each, pair.complete) == (standing, complete)]
            if labels:
                are = "is" if len(labels) == 1 else "are"
                text = sentence.format(best=best, rest=_named(labels), are=are)
                yield f"{prefix}{'' if complete else SO_FAR}{text}"


def _formats(formats: Found) -> str:
    found = [concluded["mean_score"].conclusion for _, concluded in formats]
    models = counted(len(found), "model")
    better, worse = found.count("better"), found.count("worse")
    if not better and not worse:
        return f"No difference in mean score between XML and JSON is shown ({models})."
    return (
        f"The mean score with XML is significantly higher than with JSON for {better} of {models} and"
        f" significantly lower for {worse}."
    )


def _correctness(score: Concluded, names: tuple[str, str], *, turned: bool) -> str:
    c, (winner, other) = score.comparison, names
    if c.difference is None or c.difference_interval is None:
        return f"{winner} and {other} cannot be compared: {score.why or 'too few common problems'}."
    low, high = (-c.difference_interval[1], -c.difference_interval[0]) if turned else c.difference_interval
    points = shown(abs(c.difference), "percent")
    bounds = f"95 % interval {shown((low, high), 'points')} for new problems like these"
    if score.conclusion == "equivalent":
        return f"{winner} and {other} are equivalent: {_EXCLUDED}."
    above = f"{winner}'s mean score is {points} points above {other}'s ({bounds})."
    if score.conclusion != "inconclusive":
        better = f"{winner} is better than {other}: its mean score is {points} points higher ({bounds})."
        return better if low > 0 else f"{above} {RARE_DIFFERENCES}"
    if abs(c.difference) < _EQUAL:
        why = score.why or "a larger difference cannot be excluded"
        return (
            f"{winner} and {other} have the same mean score ({bounds})."
            f" This does not show that they are equivalent: {why}."
        )
    why = score.why or "the difference is not significant at 5 %"
    return f"{above} This does not show that {winner} is better: {why}."


def _where(pair: Pair) -> str:
    """Return a prefix with the number of compared problems; "" if both models have results of no others.

    On a part of its problems, a model's mean score differs from the one in the leaderboard.
    """
    common = len(common_places(pair.a, pair.b)[0])
    begun = set().union(*(each.begun(np.array(each.problem_ids)).tolist() for each in (pair.a, pair.b)))
    if common in (0, len(begun)):
        return ""
    return f"on the {counted(common, 'problem')} that both have{'' if pair.complete else ' begun'}, "


def expense(entries: tuple[Entry, Entry], names: tuple[str, str]) -> str:
    """Return the sentences on the ratios of costs and of model times on common problems."""
    return " ".join(filter(None, (_cost(entries, names), _time(entries, names))))


def _cost(entries: tuple[Entry, Entry], names: tuple[str, str]) -> str:
    """Return the sentence on the ratio of costs; "" if the ratio has no interval."""
    (first, second), (name, other) = entries, names
    found = means_ratio(first, second, lambda run, pair: run.pair_usd(pair))
    if found is None:
        return ""
    low, high = found.interval
    of = ", over the samples with a known cost" if found.is_partial else ""
    prices = f"{_price(first, found.ours)} a sample against {_price(second, found.theirs)}{of}"
    ratio = f"ratio {found.ratio:.3g}, 95 % interval [{low:.3g}, {high:.3g}]"
    if _is_alike(found.interval):
        claim = f"{name} and {other} cost the same within 5 %"
    elif low <= 1 <= high:
        claim = "No difference in cost is shown"
    else:
        claim = f"{name} costs {'more' if found.ratio > 1 else 'less'} than {other}"
    return f"{claim}: {prices} ({ratio})."


def _time(entries: tuple[Entry, Entry], names: tuple[str, str]) -> str:
    """Return the sentence on the ratio of model times; "" if no difference of more than 5 % is shown.

    The time is that of an agent's model requests, or of the final attempt of an answer.
    """
    found = means_ratio(*entries, _model_s)
    if found is None or found.interval[0] <= 1 <= found.interval[1] or _is_alike(found.interval):
        return ""
    low, high = found.interval
    times = " s a sample against ".join(shown(each, "seconds") for each in (found.ours, found.theirs))
    return (
        f"{names[0]} needs {'more' if found.ratio > 1 else 'less'} model time than {names[1]}: {times} s"
        f" (ratio {found.ratio:.3g}, 95 % interval [{low:.3g}, {high:.3g}])."
    )


def _model_s(run: Run, pair: int) -> Floats:
    seconds: Floats = run.pair_rows(pair)["model_s" if is_agent(run.pairs[pair][1]) else "latency_s"]
    return seconds


def _is_alike(interval: tuple[float, float]) -> bool:
    return math.exp(-_ALIKE) < interval[0] and interval[1] < math.exp(_ALIKE)


def _price(entry: Entry, cost: float) -> str:
    return f"{'about ' if cost_is_estimated(entry) else ''}${shown(cost, 'usd')}"


def _consistency(sd: Concluded, names: tuple[str, str], *, turned: bool) -> str:
    """Return the sentence on the difference in SD, as told for the names in their order."""
    c, (name, other) = sd.comparison, names
    if c.n == 0:
        return (
            "Consistency is not compared: both need the same number of samples, at least two of each problem."
        )
    if sd.conclusion == "inconclusive" or c.difference is None or c.difference_interval is None:
        return "No difference in consistency is shown."
    if sd.conclusion == "equivalent":
        return (
            f"{name} and {other} are equally consistent: a difference of {EQUIVALENCE_MARGIN:g} or more in SD"
            " can be excluded at 95 %."
        )
    low, high = c.difference_interval
    difference, bounds = (-c.difference, (-high, -low)) if turned else (c.difference, (low, high))
    by = f"{shown(difference, 'signed')} (95 % interval {shown(bounds, 'signed')})."
    if bounds[0] <= 0 <= bounds[1]:
        return f"{name}'s mean SD differs from {other}'s by {by} {RARE_DIFFERENCES}"
    is_less = "less" if difference > 0 else "more"
    return f"{name} is {is_less} consistent than {other}: its mean SD differs by {by}"


def _named(labels: Sequence[str]) -> str:
    shortened = list(labels[:_MOST_NAMED])
    if len(labels) > _MOST_NAMED:
        shortened.append(f"{len(labels) - _MOST_NAMED} more")
    return ", ".join(shortened[:-1]) + f" and {shortened[-1]}" if len(shortened) > 1 else shortened[0]
