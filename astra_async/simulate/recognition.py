"""Which bundled problem a prompt is about: the one whose statement it contains."""

from __future__ import annotations

import functools


def find_bundled_problem(prompt: str) -> str | None:
    """The id of the bundled problem whose statement stands in the prompt, or None."""
    squeezed = _squeezed(prompt)
    found = (problem_id for problem_id, statement in _statements() if statement in squeezed)
    return next(found, None)


@functools.cache
def _statements() -> tuple[tuple[str, str], ...]:
    from astra_async.bundled import problem_ids, read_statement

    return tuple((problem_id, _squeezed(read_statement(problem_id))) for problem_id in problem_ids())


def _squeezed(text: str) -> str:
    # A prompt may indent or wrap the statement differently.
    return " ".join(text.split())
