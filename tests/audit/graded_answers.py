"""Grades an answer's files the whole real way: answer text, solution, integration, container, record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, Self

from shops import SHOPS, Shop

from astra_async.answers import parse_strictly
from astra_async.answers.lenient import LenientParser
from astra_async.audit.auditor import Auditor, RecordedSolution, Suites, passed_names
from astra_async.bundled import bundled_problems_csv, image_set_of, image_sets
from astra_async.errors import ContainerLost
from astra_async.fingerprint import fingerprint
from astra_async.images.build import ensure_image_set
from astra_async.overlay import anchored, integrate
from astra_async.prepare import Prepared, prepare
from astra_async.problems import load_problems
from astra_async.problems.fetch import Store
from astra_async.report.audited import AuditLine, SolutionKey
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.sample import grade_sample
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.types import Integrated, Limits, Problem, Project, ProjectFile, Result, SampleKey, Solution
from fakes import MemorySource, Unhindered, completion
from machine import slowness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Await = Callable[[Awaitable[Any]], Any]  # runs a coroutine in the session's loop
_TIMEOUT_S = 100.0  # on a quiet machine, beside three others
_ATTEMPTS = 3
_AT_ONCE = 4


def generous() -> Limits:
    """What no test needs that ends at all."""
    return Limits(timeout_s=_TIMEOUT_S * slowness())


def answer(files: Mapping[str, str]) -> str:
    """The files as a model would send them."""
    given = "".join(
        f'<file path="{path}"><![CDATA[{text.replace("]]>", "]]]]><![CDATA[>")}]]></file>\n'
        for path, text in files.items()
    )
    return f"<solution>\n{given}</solution>"


def project_of(shop: Shop) -> Project:
    texts = {**shop.files, shop.main: shop.untouched}
    files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in sorted(texts.items()))
    return Project(files=files, sha256=fingerprint(texts))


def problem_of(name: str, shop: Shop) -> Problem:
    return Problem(
        id=name,
        statement="Finish the shop.",
        project=name,
        reference=name,
        test_command=shop.command,
        result_files=(shop.report,),
    )


async def _shop(name: str) -> Prepared:
    shop = SHOPS[name]
    source = MemorySource({name: project_of(shop)}, {name: Solution(files={shop.main: shop.right})})
    return await prepare(problem_of(name, shop), source, ("xml",))


class Case(Protocol):
    """An answer to grade. `framework` is the name of a shop or of a bundled problem."""

    @property
    def framework(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def answer(self) -> dict[str, str]: ...


@dataclass
class Grader:
    """An open sandbox, a run directory, and each framework's problem made ready once."""

    sandbox: DockerSandbox
    directory: RunDirectory
    images: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)
    samples: count[int] = field(default_factory=count)
    suites: dict[str, Suites] = field(default_factory=dict)
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    tasks: dict[tuple[str, str], asyncio.Task[Result]] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @classmethod
    async def open(cls, path: Path) -> Self:
        sandbox = await DockerSandbox.open(run_id="audit-tests", slots=_AT_ONCE)
        return cls(sandbox, RunDirectory.open(path))

    def begin(self, cases: Iterable[Case]) -> None:
        """Grade all cases that are not under way yet, so many at once as the sandbox has slots."""
        for case in cases:
            if (case.framework, case.name) not in self.tasks:
                self.tasks[case.framework, case.name] = self.loop.create_task(self._in_turn(case))

    async def _in_turn(self, case: Case) -> Result:
        async with self.at_once:
            return await self.grade(case.framework, case.answer, self.grading())

    async def result(self, case: Case) -> Result:
        return await self.tasks[case.framework, case.name]

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self.directory.close()
        await self.sandbox.close()

    async def ready(self, name: str) -> Prepared:
        async with self.making:
            return await self._ready(name)

    async def _ready(self, name: str) -> Prepared:
        if name not in self.prepared:
            image_set = SHOPS[name].image_set if name in SHOPS else image_set_of(name)
            self.images[name] = await ensure_image_set(
                self.sandbox.engine, image_sets()[image_set or ""], progress=print
            )
            self.prepared[name] = await (_shop(name) if name in SHOPS else self._bundled(name))
        return self.prepared[name]

    async def _bundled(self, name: str) -> Prepared:
        problems = {each.id: each for each in load_problems(bundled_problems_csv()).problems}
        store = Store(self.directory.path / "projects")
        try:
            return await prepare(problems[name], store, ("xml",))
        finally:
            await store.close()

    def grading(self, *, limits: Limits | None = None) -> Grading:
        limits = limits or generous()
        cache = self.directory.path / "cache"
        learned = Expectations(
            self.directory.path / "expected.json",
            cache,
            self.sandbox,
            generous(),
            installed=InstalledModules(cache, self.sandbox, generous()),
        )
        return Grading(
            sandbox=self.sandbox,
            images=self.images,
            expectations=learned,
            lenient=LenientParser(),
            limits=limits,
        )

    async def audit(self, case: Case, result: Result) -> AuditLine:
        """Audit the solution of a graded case."""
        prepared, image = await self.ready(case.framework), self.images[case.framework]
        learned = self.grading().expectations
        auditor = Auditor(sandbox=self.sandbox, limits=generous(), expectations=learned)
        prepared = await learned.fitted(prepared, image)
        async with self.making:
            if case.framework not in self.suites:
                self.suites[case.framework] = await auditor.suites(prepared, image)
        read = parse_strictly(answer(case.answer), "xml", "stop")
        assert isinstance(read, Solution)
        integrated = integrate(prepared.project, anchored(read, prepared.project), prepared.policy)
        files = integrated.files if isinstance(integrated, Integrated) else {}
        solution = RecordedSolution(
            key=SolutionKey(case.framework, result.solution_sha256),
            passed=frozenset(passed_names(result.tests)),
            answer=(0, 0),
        )
        return await auditor.examine(prepared, image, self.suites[case.framework], solution, files)

    async def grade(self, name: str, files: Mapping[str, str], grading: Grading) -> Result:
        prepared = await self.ready(name)
        key = SampleKey("attacker", "xml", name, next(self.samples))
        self.directory.record_completion(key, completion(answer(files)), prepared.prompts["xml"].sha256)
        for _ in range(_ATTEMPTS - 1):
            try:
                return await grade_sample(key, prepared, self.directory, grading, passage=Unhindered())
            except ContainerLost:
                continue  # other tests restart the engine; a run repeats such samples too
        return await grade_sample(key, prepared, self.directory, grading, passage=Unhindered())
