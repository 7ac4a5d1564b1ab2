"""The simulated provider server: a real HTTP server on 127.0.0.1."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from aiohttp import web

from astra_async.bundled import load_answers
from astra_async.errors import ConfigError
from astra_async.simulate.batches.anthropic_batches import AnthropicBatchRoutes
from astra_async.simulate.batches.batch_store import BatchStore
from astra_async.simulate.batches.bedrock_batches import BedrockBatchRoutes
from astra_async.simulate.batches.gemini_batches import GeminiBatchRoutes
from astra_async.simulate.batches.openai_batches import AzureBatchRoutes, OpenAIBatchRoutes
from astra_async.simulate.draws import find_bundled_problem
from astra_async.simulate.limits import Clocks
from astra_async.simulate.profiles import PROFILES
from astra_async.simulate.service import Counters, Service
from astra_async.simulate.wires.chat import AzureChatCompletions, ChatCompletions, Responses
from astra_async.simulate.wires.converse_stream import Converse, Messages
from astra_async.simulate.wires.generate_content import GenerateContent
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.bundled import BundledAnswers
    from astra_async.simulate.wires.wire import Wire

HOST = "127.0.0.1"
_LARGEST_REQUEST_BYTES = 256 * 1024**2
_BACKLOG = 1024


class SimulatedServer:
    """A running server; created by `start`, ended by `stop`. `batches` has uploaded files and batches."""

    def __init__(self, runner: web.AppRunner, service: Service, batches: BatchStore, port: int) -> None:
        self._runner = runner
        self.batches = batches
        self.counters: Counters = service.counters
        self.port = port

    @classmethod
    async def start(
        cls,
        *,
        port: int = 0,
        settings: SimulationSettings | None = None,
        answers: Callable[[str], BundledAnswers | None] = load_answers,
        find_problem: Callable[[str], str | None] = find_bundled_problem,
        clocks: Clocks | None = None,
    ) -> SimulatedServer:
        """Start the server on 127.0.0.1; port 0 selects a free port.

        `answers` returns the solutions of a problem by id, None for an unknown one. `find_problem` finds the
        problem in a prompt, for clients that do not name the sample.

        Raises:
            ConfigError: the port is in use or not allowed.
        """
        service = Service(
            settings or SimulationSettings(),
            answers=answers,
            find_problem=find_problem,
            clocks=clocks or Clocks(),
        )
        # A handler is cancelled when its client disconnects; streams are cut when the server stops.
        batches = BatchStore(service.settings, service.clocks)
        runner = web.AppRunner(
            _application(service, batches), access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, port, backlog=_BACKLOG).start()
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            message = f"simulated server: cannot listen on {HOST}:{port} ({error}); choose another port"
            raise ConfigError(message) from error
        return cls(runner, service, batches, runner.addresses[0][1])

    async def stop(self) -> None:
        """Close the port and all connections."""
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """Base URL for `simulated/NAME` and all other providers; all wire formats are below it."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """URL of the server without a path; the wire formats are also available here."""
        return f"http://{HOST}:{self.port}"


def _application(service: Service, batches: BatchStore) -> web.Application:
    application = web.Application(client_max_size=_LARGEST_REQUEST_BYTES)
    # Every path works with and without /v1, so that one base URL serves all providers of a run.
    for prefix in ("", "/v1"):
        application.router.add_get(f"{prefix}/models", _models)
        for path, wire in _ROUTES:
            application.router.add_post(prefix + path, functools.partial(service.handle, wire))
        for made in (AnthropicBatchRoutes, GeminiBatchRoutes, BedrockBatchRoutes, OpenAIBatchRoutes):
            made(batches, service).add_to(application.router, prefix)
        AzureBatchRoutes(batches, service).add_to(application.router, f"{prefix}/openai/v1")
    return application


async def _models(_request: web.Request) -> web.Response:
    created = int(time.time())
    models = [
        {"id": name, "object": "model", "created": created, "owned_by": "astra-simulation"}
        for name in PROFILES
    ]
    return web.json_response({"object": "list", "data": models})


_ROUTES: tuple[tuple[str, Wire], ...] = (
    ("/chat/completions", ChatCompletions()),
    ("/openai/deployments/{model}/chat/completions", AzureChatCompletions()),
    ("/responses", Responses()),
    ("/v1/messages", Messages()),
    ("/{version:v1|v1beta}/models/{model:[^/:]+}:streamGenerateContent", GenerateContent(stream=True)),
    ("/{version:v1|v1beta}/models/{model:[^/:]+}:generateContent", GenerateContent(stream=False)),
    ("/model/{model}/converse-stream", Converse(stream=True)),
    ("/model/{model}/converse", Converse(stream=False)),
)
