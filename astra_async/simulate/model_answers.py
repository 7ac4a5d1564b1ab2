"""Answers of simulated models: a pure function of profile, sample, problem and earlier answers.

Answers are the bundled reference and faulty solutions of the problem. For other problems, a model answers in
prose without files. This counts as a format error, not as a wrong result, because the simulation knows
nothing about such problems.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from astra_async.asking.judge_prompt import ERROR_CLASSES, LEAST_QUOTED, parts_of, without_whitespace
from astra_async.simulate.draws import SampleName, digest, seeded
from astra_async.simulate.formatting import REPAIRABLE, UNREADABLE, flawed, introduced, well_formed
from astra_async.simulate.profiles import Profile, try_rate

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from astra_async.bundled import BundledAnswers, Faulty
    from astra_async.types import Format
    from astra_async.types.agents import ToolCall

CHARACTERS_PER_TOKEN = 3.6
ERROR_RATE = 0.15
INVENTED_RATE = 0.04
Finish = Literal["stop", "length", "refusal", "content_filter"]

# The other refusals have no text, because a content filter stopped them.
_SPOKEN_REFUSAL = 0.7
UNKNOWN = (
    "I would be glad to help with this project, but I am a simulated model: I know the bundled problems"
    " only, and this is none of them, so I cannot give any files."
)
_GIVEN_UP = "I have looked at the failing tests again and do not know what else to change."
REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I can't assist with changing this project.",
    "This request conflicts with my guidelines, so I have to decline it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAnswer:
    """One answer before encoding in a wire format.

    `solution` is `reference`, the name of a faulty solution, or None; `flaw` is the name of a format flaw or
    None. Both are for tests and statistics and are never sent.
    """

    text: str
    finish: Finish
    solution: str | None = None
    flaw: str | None = None
    reasoning_tokens: int = 0
    calls: tuple[ToolCall, ...] = ()

    @property
    def text_tokens(self) -> int:
        """Number of tokens of the visible text and of tool calls."""
        return tokens_in(self.text) + sum(tokens_in(call.arguments) for call in self.calls)


def tokens_in(text: str) -> int:
    """Estimate a text's tokens from its length; the simulation needs no tokenizer."""
    return max(1, math.ceil(len(text) / CHARACTERS_PER_TOKEN)) if text else 0


def draw_answer(
    profile: Profile, name: SampleName, solutions: BundledAnswers | None, earlier: Sequence[str] = ()
) -> SimulatedAnswer:
    """Return a model's answer to one sample; always equal for equal arguments.

    `earlier` has the model's earlier answers in a follow-up turn.
    """
    turn = (name.turn,) if name.turn else ()
    generator = seeded("answer", profile.name, name.seed, name.format, name.problem_id, name.sample, *turn)
    # Always drawn first, so that changing one rate does not change the other draws.
    refusal, cut, readable, thinking = (generator.random() for _ in range(4))
    reasoning = round(profile.reasoning_tokens * math.exp(0.5 * generator.gauss(0, 1)) * (0.5 + thinking))
    if refusal < profile.refusal:
        return _refusal(generator, reasoning)
    if solutions is None or not solutions.faulty:
        return SimulatedAnswer(text=UNKNOWN, finish="stop", reasoning_tokens=reasoning)
    if earlier and (again := _without_a_try(profile, solutions, earlier, generator, name.format)):
        return replace(again, reasoning_tokens=reasoning)
    solution, files = draw_solution(profile, name, solutions, generator)
    if earlier and profile.turns.brief:
        files = _changed(files, earlier)
    flaw = _draw_flaw(profile, name.format, readable, generator)
    if flaw:
        text = introduced(flawed(files, name.format, flaw), generator, prose=profile.prose)
    else:
        text = well_formed(files, name.format, generator, prose=profile.prose)
    if cut < profile.truncation:
        text = text[: int(len(text) * generator.uniform(0.3, 0.9))]
    return SimulatedAnswer(
        text=text,
        finish="length" if cut < profile.truncation else "stop",
        solution=solution,
        flaw=flaw,
        reasoning_tokens=reasoning,
    )


def draw_judgement(profile: Profile, prompt: str, solutions: BundledAnswers | None) -> SimulatedAnswer:
    """Return a model's answer as a judge of failed samples (`asking.judge_prompt`), with a known error rate.

    The true class is that of the bundled faulty solution whose files are in the judged answer; `logic` for
    any other answer. A judge errs with probability ERROR_RATE, uniformly among the other classes, and with
    probability INVENTED_RATE quotes a line that does not exist. Both draws depend only on the prompt.
    """
    parts = parts_of(prompt)
    generator = seeded("judge", profile.name, digest(prompt))
    error, invented, which = (generator.random() for _ in range(3))
    label = _true_class(parts["answer"], solutions)
    if error < ERROR_RATE:
        others = [name for name in ERROR_CLASSES if name != label]
        label = others[int(which * len(others))]
    quote = "nobody has ever written this line" if invented < INVENTED_RATE else _quote(parts)
    text = json.dumps({"class": label, "quotes": [quote], "why": "A simulated judge goes by a rule."})
    return SimulatedAnswer(text=text, finish="stop")


def draw_solution(
    profile: Profile, name: SampleName, solutions: BundledAnswers, generator: random.Random
) -> tuple[str, Mapping[str, str]]:
    """Return the name and the files of the solution drawn for a sample."""
    problem_id = name.problem_id
    if generator.random() < try_rate(profile, problem_id, name.turn):
        return "reference", solutions.reference
    # Sorted, because the draw must not depend on the order of files on disk.
    faulty = sorted(_whole(solutions) if name.turn else solutions.faulty, key=lambda one: one.name)
    best = max(1, *(one.expected_passed for one in faulty))
    weights = [math.exp(profile.nearness * one.expected_passed / best) for one in faulty]
    usual = generator.random() < profile.habit
    source = seeded("habit", profile.name, problem_id) if usual else generator
    chosen = source.choices(faulty, weights)[0]
    return chosen.name, chosen.files


def limited(answer: SimulatedAnswer, max_tokens: int | None) -> SimulatedAnswer:
    """Truncate an answer to max_tokens; hidden reasoning counts, as with real providers."""
    if max_tokens is None or answer.reasoning_tokens + answer.text_tokens <= max_tokens:
        return answer
    reasoning = min(answer.reasoning_tokens, max_tokens)
    text = answer.text[: int((max_tokens - reasoning) * CHARACTERS_PER_TOKEN)]
    return replace(answer, text=text, finish="length", reasoning_tokens=reasoning, calls=())


def _refusal(generator: random.Random, reasoning: int) -> SimulatedAnswer:
    finish: Finish = "refusal" if generator.random() < _SPOKEN_REFUSAL else "content_filter"
    text = generator.choice(REFUSALS) if finish == "refusal" else ""
    return SimulatedAnswer(text=text, finish=finish, reasoning_tokens=reasoning)


def _without_a_try(
    profile: Profile, solutions: BundledAnswers, earlier: Sequence[str], generator: random.Random, fmt: Format
) -> SimulatedAnswer | None:
    """Return an answer to feedback that is not a new attempt, or None."""
    turns, drawn = profile.turns, generator.random()
    if drawn < turns.repeats:
        return SimulatedAnswer(text=earlier[-1], finish="stop")
    if drawn < turns.repeats + turns.oscillates:
        return SimulatedAnswer(text=earlier[-2:][0], finish="stop")
    if drawn < turns.repeats + turns.oscillates + turns.gives_up:
        return SimulatedAnswer(text=_GIVEN_UP, finish="stop")
    if drawn < 1 - turns.tries:
        worst = min(_whole(solutions), key=lambda one: (one.expected_passed, one.name))
        return SimulatedAnswer(
            text=well_formed(worst.files, fmt, generator, prose=0), finish="stop", solution=worst.name
        )
    return None


def _whole(solutions: BundledAnswers) -> list[Faulty]:
    """Return the faulty solutions that contain every file of the reference.

    Merged with an earlier answer they are equally wrong, because they replace all its files.
    """
    whole = [one for one in solutions.faulty if one.files.keys() >= solutions.reference.keys()]
    return whole or list(solutions.faulty)


def _changed(files: Mapping[str, str], earlier: Sequence[str]) -> Mapping[str, str]:
    """Return the files that differ from the last answer containing them; all files if none differs."""
    last = {path: next((text for text in reversed(earlier) if path in text), "") for path in files}
    return {path: content for path, content in files.items() if content not in last[path]} or files


def _draw_flaw(profile: Profile, fmt: Format, readable: float, generator: random.Random) -> str | None:
    if readable < profile.unreadable[fmt]:
        return generator.choice(tuple(UNREADABLE[fmt]))
    if readable < profile.unreadable[fmt] + profile.malformed[fmt]:
        return generator.choice(tuple(REPAIRABLE[fmt]))
    return None


def _true_class(answer: str, solutions: BundledAnswers | None) -> str:
    """Return the error class of the faulty solution in an answer."""
    given = without_whitespace(answer)
    for faulty in solutions.faulty if solutions else ():
        contents = [without_whitespace(content) for content in faulty.files.values()]
        if all(each in given or without_whitespace(json.dumps(each))[1:-1] in given for each in contents):
            return faulty.error_class
    return "logic"


def _quote(parts: dict[str, str]) -> str:
    """Return the first line of tests or answer that is long enough for a quotation."""
    lines = (line for name in ("tests", "output", "answer") for line in parts[name].splitlines()[1:])
    return next((line.strip() for line in lines if len(without_whitespace(line)) >= LEAST_QUOTED), "")
