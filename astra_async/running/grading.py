"""Grading of solutions: open its parts, run the tests, and repeat a timeout once on an idle machine."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.images.base_image import ensure_base
from astra_async.images.failed_images import FailedImages
from astra_async.images.resolve import ProblemImages
from astra_async.running.model_pools import close_later
from astra_async.running.problem_set import cache_root
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.timeouts import TIMEOUT_REPEATED, Exclusive, Timeouts
from astra_async.testing.verdict import Examined, run_tests, verdict_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.answers.lenient import LenientParser
    from astra_async.cluster.head import ClusterSandbox
    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.options import KeepOutput
    from astra_async.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.testing.verdict import Submission, Tested
    from astra_async.types import AnswerKey, ExpectedTest, Limits, RunSandbox, Sandbox

    Say = Callable[[str], None]


GRADINGS_PER_PLACE = 2  # for each container slot: one in the container, one being prepared or evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpening:
    """Inputs for opening the parts of a run; opened parts are closed with `stack`, in reverse order."""

    config: RunConfig
    directory: RunDirectory
    recorded: Recorded
    stack: AsyncExitStack
    say: Say


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """Sandbox and images for running tests.

    Attributes:
        names: image name by problem, also for images that are not built yet.
        images: image name by problem, for existing images; grows while images are being built.
        failed: problems whose image could not be built so far, with the error.
        making: builder of the missing images, or None.
    """

    sandbox: RunSandbox
    names: Mapping[str, str]
    images: Mapping[str, str]
    failed: Mapping[str, AstraError]
    making: ProblemImages | None = None
    engine: Engine | None = None  # None on a cluster
    cluster: ClusterSandbox | None = None


async def open_tests(opening: RunOpening, prepared: Mapping[str, Prepared]) -> Tests:
    """Open the sandbox or cluster for the tests, and start to build or distribute the images."""
    config, stack, say, run_id = opening.config, opening.stack, opening.say, opening.directory.run_id
    failures = FailedImages(cache_root(), retry=config.retry_images)
    if config.cluster:
        from astra_async.cluster.head import ClusterSandbox

        cluster = await ClusterSandbox.open(
            config.cluster, run_id=run_id, limits=config.limits, sandboxes=config.sandboxes, say=say
        )
        close_later(stack, say, "the cluster", cluster.close)
        also: tuple[str, ...] = ()  # images that agents need in addition to the problem's image
        if config.agents and not config.answers_only_from_record:
            async with await Engine.open() as engine:
                also = (await ensure_base(engine, progress=lambda _: None),)
        there, failed, making = await cluster.provide(prepared, config.image, failures=failures, also=also)
        if making is None:
            return Tests(sandbox=cluster, names=there, images=there, failed=failed, cluster=cluster)
        close_later(stack, say, "the image builds", making.close)
        return replace(_tests(cluster, making), cluster=cluster)
    from astra_async.testing.sandbox.docker_sandbox import DockerSandbox

    sandbox = await DockerSandbox.open(run_id=run_id, slots=config.sandboxes)
    close_later(stack, say, "the sandbox", sandbox.close)
    images = await ProblemImages.open(sandbox.engine, prepared, config.image, say, failures=failures)
    close_later(stack, say, "the image builds", images.close)
    return replace(_tests(sandbox, images), engine=sandbox.engine)


def _tests(sandbox: RunSandbox, images: ProblemImages) -> Tests:
    return Tests(
        sandbox=sandbox,
        names={name: image for name, image in images.names.items() if name not in images.failed},
        images=images.ready,
        failed=dict(images.failed),
        making=images,
    )


async def image_ids(tests: Tests) -> dict[str, str]:
    """Return the content IDs of the existing images, by name."""
    return {image: await tests.sandbox.image_id(image) for image in set(tests.images.values())}


@asynccontextmanager
async def this_engine(tests: Tests) -> AsyncIterator[Engine]:
    """Open this machine's Docker Engine, even if tests run on a cluster."""
    if tests.engine:
        yield tests.engine
    else:
        async with await Engine.open() as engine:
            yield engine


def open_grading(opening: RunOpening, tests: Tests, lenient: LenientParser) -> Grading:
    """Return the parts that grade answers: expected tests, repetition of timeouts, verdicts to reuse."""
    config, directory, recorded = opening.config, opening.directory, opening.recorded
    sandbox = tests.sandbox
    exclusive, run = Exclusive(sandbox, alone=sandbox.alone), directory.run
    # The number of samples of the whole run, including those that this invocation does not select.
    samples = len(run["models"]) * len(run["formats"]) * len(run["problems"]) * int(run["samples"])
    cache, limits = cache_root() / "expected", config.limits
    installed = InstalledModules(cache, exclusive, limits)
    learned = Expectations(directory.path / "expected.json", cache, exclusive, limits, installed=installed)
    return Grading(
        sandbox=exclusive,
        images=tests.images,
        making=tests.making,
        expectations=learned,
        lenient=lenient,
        limits=limits,
        at_once=GRADINGS_PER_PLACE * sandbox.slots,
        keep_output=config.keep_output,
        strict_tests=config.strict_tests,
        timeouts=Timeouts(exclusive, samples=samples, earlier=recorded.repeated),
        turn_timeouts=Timeouts(exclusive, samples=config.turns * samples, earlier=recorded.turns_repeated),
        earlier=EarlierVerdicts(directory, recorded.first) if config.reuse_identical else None,
    )


DISK_WATCHED = "the disk was watched, not bounded"  # note in final lines; see docs/sandbox.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Grader of solutions. Without `timeouts`, a test run that timed out is not repeated."""

    sandbox: Sandbox
    limits: Limits
    timeouts: Timeouts | None = None

    async def examine(self, entry: Submission, expected: Sequence[ExpectedTest]) -> Examined:
        """Run the tests and return the verdict. Raises SandboxError, ExpectationError."""
        tested, repairs = await self._tested(entry)
        verdict, failure, note = verdict_on(tested, expected)
        return Examined(
            tested=tested,
            verdict=verdict,
            failure=failure,
            note=note or (DISK_WATCHED if tested.execution.disk_watched else ""),
            suspicions=entry.integrated.suspicions,
            repairs=repairs,
        )

    async def _tested(self, entry: Submission) -> tuple[Tested, tuple[str, ...]]:
        """Run the tests, and run them again if a busy machine may have caused a timeout.

        Returns the scored run, and `timeout_repeated` if it is the second one.
        """
        what = entry.prepared, entry.image, entry.integrated.files, self.limits
        tested = await run_tests(self.sandbox, *what)
        execution = tested.execution
        if not execution.timed_out or self.timeouts is None:
            return tested, ()
        if not self.timeouts.take_repetition(
            *entry.solved, execution.duration_s, strained=execution.strained
        ):
            return tested, ()
        async with self.timeouts.exclusive.alone() as sandbox:
            return await run_tests(sandbox, *what), (TIMEOUT_REPEATED,)


# A restarted or overloaded engine is back within a minute or so.
SANDBOX_RETRY_DELAYS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The parts and settings that grade answers.

    `images` maps a problem's id to its image, for images that exist; `making` builds the others. At most
    `at_once` gradings run at a time. After a sandbox error a grading is repeated once for each of
    `retry_delays_s`. `timeouts` decides which time-outs are repeated; follow-up turns have their own
    allowance (`turn_timeouts`). `earlier` holds verdicts to reuse, `keep_output` selects the
    outputs to record. With `strict_tests`, the first sample that contradicts the expected tests of its
    problem and all later samples of this problem are not recorded.
    """

    sandbox: Sandbox
    images: Mapping[str, str]
    making: ProblemImages | None = None
    expectations: Expectations
    lenient: LenientParser
    limits: Limits
    at_once: int = 4
    retry_delays_s: tuple[float, ...] = SANDBOX_RETRY_DELAYS_S
    timeouts: Timeouts | None = None
    turn_timeouts: Timeouts | None = None
    earlier: EarlierVerdicts | None = None
    keep_output: KeepOutput = "failed"
    strict_tests: bool = False

    def examiner(self, key: AnswerKey) -> Examiner:
        """Return the examiner that grades this key."""
        timeouts = self.turn_timeouts if key.turn else self.timeouts
        return Examiner(sandbox=self.sandbox, limits=self.limits, timeouts=timeouts)
