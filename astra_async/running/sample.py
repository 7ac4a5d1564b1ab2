"""Process one sample, from its key to its final line.

    problem -> prompt -> completion -> solution -> integrated project -> test report -> result line

Each stage acquires its slot when it needs it: a request slot in the pool, a parsing slot, a test permit, and
a container slot in the sandbox. No slot is held while a retry waits. A waiting sample never holds a slot that
samples of other models need.

A follow-up turn takes the same steps with its own key (`TurnKey`). `turns` computes its conversation and the
files of earlier answers.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.answers.lenient import read_answer
from astra_async.errors import EngineUnavailable, ExpectationError, ImageError, NodesLost, SandboxError
from astra_async.harbor.verified import read_verified
from astra_async.log import now_utc
from astra_async.overlay import anchored, integrate
from astra_async.running.evidence import evidence_of
from astra_async.running.final_line import FinalLine
from astra_async.running.turns import TurnPlan, characters_before, conversation, standing_files
from astra_async.surrogates import without_surrogates
from astra_async.testing.verdict import Submission
from astra_async.types import Completion, ModelRequest, Result, Solution, TurnKey, Unusable, is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.answers.lenient import LenientParser
    from astra_async.asking.feedback import Feedback
    from astra_async.options import KeepOutput
    from astra_async.prepare import Prepared
    from astra_async.running.admission import Passage
    from astra_async.running.agent_asking import AgentAsking
    from astra_async.running.directory import RunDirectory
    from astra_async.running.grading import Grading
    from astra_async.running.model_pools import ModelPool
    from astra_async.testing.verdict import Examined
    from astra_async.types import AnswerKey, Exchange, Integrated

# Larger solutions are integrated in a thread: 20 us for each file, up to 1 us for each character.
_MANY_FILES, _MANY_CHARACTERS = 500, 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Parts and settings for requesting answers.

    Attributes:
        pools: pool by model name.
        seed: seed of the first sample; sample k uses seed + k. None sends no seed.
        caching: models whose requests are marked for the prompt cache.
        simulated: models with a simulated server; their requests name the sample in a header.
        agents: runs the agents, or None without agents.
    """

    pools: Mapping[str, ModelPool]
    seed: int | None = None
    caching: frozenset[str] = frozenset()
    simulated: frozenset[str] = frozenset()
    agents: AgentAsking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Parts and settings for processing samples.

    Attributes:
        grading: parts that grade answers; if None, answers are only recorded.
        on_answer: called with (key, completion, prompt hash) after each recorded answer, except for
            follow-up turns.
    """

    directory: RunDirectory
    asking: Asking
    grading: Grading | None = None
    turns: TurnPlan = field(default_factory=TurnPlan)
    on_answer: Callable[[AnswerKey, Completion, str], None] = lambda *_: None


async def run_sample(key: AnswerKey, prepared: Prepared, setup: Setup, passage: Passage) -> Result | None:
    """Request, record and grade the answer of a sample or follow-up turn, and record its final line.

    Returns None without `setup.grading`. A recorded answer is never requested again. After a SandboxError the
    grading is retried after each delay in `grading.retry_delays_s`. Raises ProviderError, ProjectError,
    SandboxError, StorageError or Stopped.
    """
    if key not in setup.directory.answered:
        await ask(key, prepared, setup)
        passage.answered()
    if setup.grading is None:
        return None
    for delay_s in setup.grading.retry_delays_s:
        try:
            return await grade_sample(key, prepared, setup.directory, setup.grading, passage=passage)
        except (ImageError, EngineUnavailable, NodesLost):
            raise  # a retry cannot help; the sandbox has already waited for Docker
        except SandboxError as error:
            setup.directory.record_event("sandbox_retry", key, detail=str(error), seconds=delay_s)
        await passage.pause(delay_s)
    return await grade_sample(key, prepared, setup.directory, setup.grading, passage=passage)


async def ask(key: AnswerKey, prepared: Prepared, setup: Setup) -> None:
    """Request the answer of a sample or follow-up turn, and record it."""
    asking, prompt = setup.asking, prepared.prompts[key.format]
    earlier: tuple[Exchange, ...] = ()
    feedback: Feedback | None = None
    if isinstance(key, TurnKey) and setup.grading:
        mode = setup.turns.feedback[key.problem_id]
        earlier, feedback = await conversation(key, prepared, setup.directory, setup.grading, mode)
    started_at = now_utc()
    named = f"{asking.seed or 0}/{key.format}/{key.problem_id}/{key.sample}"
    named += f"@{key.turn}" if key.turn else ""
    request = ModelRequest(
        key=key,
        prompt=prompt.text,
        prompt_sha256=prompt.sha256,
        earlier=earlier,
        seed=None if asking.seed is None else asking.seed + key.sample,
        sample_header=named if key.model in asking.simulated else None,
        cache=key.model in asking.caching,
        goes_on=key.turn < setup.turns.most,
    )
    pool = asking.pools[key.model]
    if asking.agents and setup.grading and is_agent(key.format):
        image = setup.grading.images[key.problem_id]
        completion = await asking.agents.ask(request, prepared, image, pool)
    else:
        completion = await pool.call(request)
    answer = _recordable(completion)
    setup.directory.record_completion(key, answer, prompt.sha256, started_at, feedback=feedback)
    if not key.turn:
        setup.on_answer(key, answer, prompt.sha256)


async def grade_sample(
    key: AnswerKey, prepared: Prepared, directory: RunDirectory, grading: Grading, *, passage: Passage
) -> Result:
    """Grade the recorded answer and record its final line. A task's answer is the verifier's outcome."""
    if prepared.task:
        completion, started_at = directory.completion(key)
        line = FinalLine(key, completion, started_at, prepared.prompts[key.format], 0)
        result = line.verified(read_verified(completion.text))
        directory.record_result(result)
        return result
    image = grading.images[key.problem_id]
    expected = await grading.expectations.of(prepared, image)
    directory.counted.check(key.problem_id, expected.tests, directory.path)
    prepared = await grading.expectations.fitted(prepared, image)
    async with AsyncExitStack() as reading:
        await reading.enter_async_context(passage.reading())
        completion, started_at = directory.completion(key)
        prompt, before = prepared.prompts[key.format], characters_before(key, directory)
        provisional = bool(expected.provisional)
        line = FinalLine(key, completion, started_at, prompt, before, provisional)
        standing = await standing_files(key, prepared, directory, grading.lenient)
        outcome = await _changes(line, prepared, grading.lenient, standing)
        if isinstance(outcome, Unusable):
            result = line.without_solution(outcome, expected.tests)
            directory.record_result(result)
            return result
        solution, integrated = outcome
        earlier = grading.earlier
        # With --reuse-identical: the final line of a sample with the same solution, if there is one.
        same = earlier.equal(key, integrated.sha256, reading.aclose) if earlier else nullcontext()
        async with same as equal:
            if equal is not None:
                result = line.reused(solution, integrated, equal)
            else:
                async with passage.testing():
                    await reading.aclose()  # as late as this, to limit parsed answers without a permit
                    entry = Submission(prepared=prepared, image=image, integrated=integrated)
                    examiner = grading.examiner(key)
                    examined = await examiner.examine(entry, expected.tests)
                _compare_with_expectations(key, examined, directory, grading)
                result = await _scored(line, outcome, examined, directory, grading.keep_output)
            directory.record_result(result)
    return result


def _compare_with_expectations(
    key: AnswerKey, examined: Examined, directory: RunDirectory, grading: Grading
) -> None:
    """Record the first sample of a problem that contradicts its expected tests.

    With `strict_tests`, raise ExpectationError for this sample and all later ones of the problem.
    """
    if first := grading.expectations.contradiction(key.problem_id, examined.tested, examined.verdict):
        directory.record_event("contradicted", key, detail=first)
    why = grading.expectations.contradicted.get(key.problem_id)
    if why and grading.strict_tests:
        raise ExpectationError(
            f"a sample contradicts its expected tests ({why}); correct its reference, test command or"
            " column `tests`, then run: astra regrade",
            problem_id=key.problem_id,
        )


async def _scored(
    line: FinalLine,
    outcome: tuple[Solution, Integrated],
    examined: Examined,
    directory: RunDirectory,
    keep_output: KeepOutput,
) -> Result:
    """Record the output if `keep_output` selects it, and return the final line."""
    failed = examined.failure is not None
    evidence = await evidence_of(examined, with_output=failed or keep_output == "all")
    result = line.scored(*outcome, examined, evidence)
    if keep_output == "all" or (keep_output == "failed" and failed):
        directory.record_output(result, evidence)
    return result


async def _changes(
    line: FinalLine, prepared: Prepared, lenient: LenientParser, standing: Mapping[str, str]
) -> tuple[Solution, Integrated] | Unusable:
    """Parse the answer and apply it to the project, together with the `standing` files of earlier turns.

    Returns Unusable if the answer contains no usable solution.
    """
    completion = line.completion
    solution = await read_answer(completion.text, line.key.format, completion.finish_reason, lenient)
    if isinstance(solution, Unusable):
        return solution
    characters = sum(map(len, solution.files.values()))
    if len(solution.files) + len(standing) > _MANY_FILES or characters > _MANY_CHARACTERS:
        return await asyncio.to_thread(_integrated, prepared, solution, standing)
    return _integrated(prepared, solution, standing)


def _integrated(
    prepared: Prepared, solution: Solution, standing: Mapping[str, str]
) -> tuple[Solution, Integrated] | Unusable:
    solution = anchored(solution, prepared.project)
    whole = replace(solution, files={**standing, **solution.files}) if standing else solution
    integrated = integrate(prepared.project, whole, prepared.policy)
    return integrated if isinstance(integrated, Unusable) else (solution, integrated)


def _recordable(completion: Completion) -> Completion:
    """Replace lone surrogates in the completion, because they cannot be encoded as UTF-8."""
    text = without_surrogates(completion.text)
    if text is completion.text:
        return completion
    return replace(completion, text=text, repairs=(*dict.fromkeys((*completion.repairs, "surrogate")),))
