"""What a simulated model says as a judge of failed samples: a rule whose rate of errors is known.

The truth is the class that the bundled faulty solution carries whose files stand in the judged answer; an
answer that is none of them is `logic`. A judge errs in ERROR_RATE of all samples, evenly among the other
classes, and in INVENTED_RATE quotes what nobody wrote. Both are drawn from the prompt alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from astra_async.asking.judge_prompt import LEAST_QUOTED, parts_of
from astra_async.simulate.draws import digest, seeded
from astra_async.simulate.model_answers import Answer

if TYPE_CHECKING:
    from astra_async.bundled import BundledAnswers
    from astra_async.simulate.profiles import Profile

ERROR_RATE = 0.15
INVENTED_RATE = 0.04
CLASSES = ("user_interface", "logic", "data_handling", "syntax")


def draw_judgement(profile: Profile, prompt: str, solutions: BundledAnswers | None) -> Answer:
    """The judge's answer to one prompt of `asking.judge_prompt`."""
    parts = parts_of(prompt)
    generator = seeded("judge", profile.name, digest(prompt))
    error, invented, which = (generator.random() for _ in range(3))
    label = true_class(parts["answer"], solutions)
    if error < ERROR_RATE:
        others = [name for name in CLASSES if name != label]
        label = others[int(which * len(others))]
    quote = "nobody has ever written this line" if invented < INVENTED_RATE else _quote(parts)
    text = json.dumps({"class": label, "quotes": [quote], "why": "A simulated judge goes by a rule."})
    return Answer(text=text, finish="stop")


def true_class(answer: str, solutions: BundledAnswers | None) -> str:
    """The class of the faulty solution that an answer gives."""
    squeezed = _squeezed(answer)
    for faulty in solutions.faulty if solutions else ():
        contents = [_squeezed(content) for content in faulty.files.values()]
        if all(each in squeezed or _squeezed(json.dumps(each))[1:-1] in squeezed for each in contents):
            return faulty.error_class
    return "logic"


def _quote(parts: dict[str, str]) -> str:
    """The first line of tests or answer that is long enough to be a quotation."""
    lines = (line for name in ("tests", "output", "answer") for line in parts[name].splitlines()[1:])
    return next((line.strip() for line in lines if len("".join(line.split())) >= LEAST_QUOTED), "")


def _squeezed(text: str) -> str:
    return "".join(text.split())
