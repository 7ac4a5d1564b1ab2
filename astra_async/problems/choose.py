"""Which problems a call runs, and the order in which samples are taken."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from astra_async.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from astra_async.types import Problem


def select(
    problems: Sequence[Problem],
    *,
    only: Sequence[str] = (),
    skill: str | None = None,
    limit: int | None = None,
) -> tuple[Problem, ...]:
    """Narrows problems by id, then by main or sub-skill, then to the first `limit`; keeps their order.

    Raises:
        UsageError: an id or a skill that no problem has (with close matches), or a limit below 1.
    """
    chosen = tuple(problems)
    if only:
        known = [problem.id for problem in problems]
        wanted = {_known(ident, known, "--only", "problem") for ident in only}
        chosen = tuple(problem for problem in chosen if problem.id in wanted)
    if skill is not None:
        chosen = _with_skill(chosen, skill)
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: at least 1 is needed")
    return chosen[:limit]


def passes(problem_ids: Sequence[str], samples: int, block: int) -> Iterator[tuple[str, int]]:
    """The (problem id, sample) pairs in the order they are asked, samples from 0.

    A pass takes `block` consecutive samples of every problem before the next pass begins: an
    interrupted run is a balanced run with fewer samples, and a block can share a prompt cache.
    """
    for start in range(0, samples, max(1, block)):
        for ident in problem_ids:
            for sample in range(start, min(start + max(1, block), samples)):
                yield ident, sample


def _with_skill(problems: Iterable[Problem], skill: str) -> tuple[Problem, ...]:
    held = [
        (problem, [name for name in (problem.main_skill, *problem.sub_skills) if name])
        for problem in problems
    ]
    names = list(dict.fromkeys(name for _, own in held for name in own))
    wanted = _known(skill, names, "--skill", "skill").casefold()
    return tuple(problem for problem, own in held if wanted in [name.casefold() for name in own])


def _known(given: str, known: Sequence[str], option: str, kind: str) -> str:
    if given in known:
        return given
    folded = {name.casefold(): name for name in reversed(known)}
    if given.casefold() in folded:
        return folded[given.casefold()]
    close = [folded[name] for name in get_close_matches(given.casefold(), folded, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known[:10]) or 'none'}"
    raise UsageError(f"{option} {given}: no such {kind}; {hint}")
