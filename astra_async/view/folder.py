"""List of the run directories in a folder; the viewer of a run is started when its page is first opened."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiohttp import web

from astra_async.errors import AstraError
from astra_async.redaction import one_line
from astra_async.report.costs import total_usd
from astra_async.report.entries import entries_of, ranked
from astra_async.report.load import run_of
from astra_async.report.run_settings import read_settings
from astra_async.types.records import Flaw, read_record
from astra_async.view.application import as_json, checked, page
from astra_async.view.following import is_running, stamp_of
from astra_async.view.logs import Logs, Regrown
from astra_async.view.serving import Viewer, viewer_routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.view.access import Access
    from astra_async.view.following import Stamp

Record = dict[str, Any]
_FIGURES_FROM = ("run.json", "results.jsonl", "turn_results.jsonl", "live.json")
_UNREADABLE_NAME = "the name of the directory is not valid UTF-8; rename the directory to open it"


class Folder:
    """Server for the list of runs in a folder and for the viewer of each run."""

    def __init__(self, folder: Path, access: Access) -> None:
        self.folder = folder
        self.access = access
        self._viewers: dict[str, Viewer] = {}
        self._open = AsyncExitStack()
        self._listing = asyncio.Lock()
        self._listed: dict[Path, tuple[tuple[Stamp | None, ...], Record]] = {}
        self._growing: dict[Path, Logs] = {}  # of running runs, whose new lines are read on

    def application(self) -> web.Application:
        """Return the application with all routes, behind the access checks."""
        app = checked(self.access)
        app.cleanup_ctx.append(self._context)
        app.add_routes(
            [
                web.get("/", page("runs.html")),
                web.get("/page/{name:.+}", page()),
                web.get("/api/runs", self._runs),
                *viewer_routes("/run/{run:[^/]+}", self._viewer_of),
            ]
        )
        return app

    async def _context(self, _: web.Application) -> AsyncIterator[None]:
        async with self._open:
            yield

    async def _viewer_of(self, request: web.Request) -> Viewer:
        """Return the viewer of the run that the address names. Raises HTTPNotFound for any other name."""
        name = request.match_info["run"]
        if name not in self._viewers:
            found = {path.name: path for path in await asyncio.to_thread(runs_in, self.folder)}
            if name not in found:
                raise web.HTTPNotFound(text="no such run; see the list of all runs")
            # No await between the check and the assignment, so a run never has two viewers.
            viewer = self._viewers.setdefault(name, Viewer([found[name]], self.access))
            await self._open.enter_async_context(viewer)
        return self._viewers[name]

    async def _runs(self, _: web.Request) -> web.StreamResponse:
        """Return the rows of all runs; one listing is in progress at a time."""
        async with self._listing:
            runs = await asyncio.to_thread(self._list)
        return as_json({"folder": _as_text(str(self.folder)), "runs": runs})

    def _list(self) -> list[Record]:
        """Return all runs, the latest first. A run is read again only after a change of its files."""
        found = []
        for path in runs_in(self.folder):
            stamps = tuple(stamp_of(path / name) for name in _FIGURES_FROM)
            before, record = self._listed.get(path, (None, {}))
            # A killed run keeps its files, so the state of a running run is always checked again.
            if before != stamps or record.get("state") == "running":
                record = listed(path, self._growing)
                self._listed[path] = stamps, record
            found.append(record)
        return sorted(found, key=lambda record: str(record.get("created_at", "")), reverse=True)


def runs_in(folder: Path) -> list[Path]:
    """Return the run directories directly in a folder, by name; [] if the folder cannot be read."""
    with suppress(OSError):
        # os.path.isfile returns False for a directory without read permission, which must not hide others.
        return sorted(path for path in folder.iterdir() if os.path.isfile(path / "run.json"))  # noqa: PTH113
    return []


def listed(directory: Path, growing: dict[Path, Logs]) -> Record:
    """Return a run's row in the list: `error` has the reason if the run cannot be read.

    `best` is the first entry of the leaderboard. `cost_usd` is the sum of the known costs of samples with a
    result, follow-up turns included, or None. The directory is not changed. `growing` keeps a running run's
    logs for the next call.
    """
    shown = _as_text(directory.name)
    if shown != directory.name:
        return {"name": shown, "address": None, "error": _UNREADABLE_NAME}
    row: Record = {"name": shown, "address": f"run/{quote(shown, safe='')}/", "error": None}
    try:
        return row | _figures(directory, growing)
    except (AstraError, OSError) as error:
        return row | {"error": one_line(str(error))}
    except Exception as error:  # noqa: BLE001 - one damaged run must not hide the other runs
        return row | {"error": one_line(f"unexpected {type(error).__name__}: {error}")}


def _as_text(path: str) -> str:
    """Return a path in valid UTF-8; other bytes are shown as hexadecimal escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _figures(directory: Path, growing: dict[Path, Logs]) -> Record:
    settings = read_settings(directory)
    logs = growing.pop(directory, None)
    if logs is None or logs.settings != settings:
        logs = Logs.of(directory, settings)
    try:
        logs.read_results()
    except Regrown:
        logs = Logs.of(directory, settings)
        logs.read_results()
    entries = entries_of([run_of(directory, settings, logs.columns, logs.turns["cost_usd"])])
    live = None
    with suppress(OSError, Flaw):
        live = read_record((directory / "live.json").read_bytes())
    valid, planned = (sum(getattr(entry.summary, name) for entry in entries) for name in ("valid", "planned"))
    is_finished = valid == planned and not logs.missing_turns().any()
    state = "running" if is_running(directory, live) else "finished" if is_finished else "stopped"
    if state == "running":
        growing[directory] = logs
    costs = [cost for entry in entries if (cost := total_usd(entry)) is not None]
    return {
        "created_at": settings.created_at,
        "state": state,
        "models": list(settings.models),
        "valid": valid,
        "planned": planned,
        "best": _best(ranked(entries)),
        "cost_usd": sum(costs) if costs else None,
    }


def _best(entries: list[Entry]) -> Record | None:
    known = [entry for entry in entries if entry.summary.mean_score is not None]
    if not known:
        return None
    best = known[0]
    return {"model": best.label, "score": best.summary.mean_score, "complete": best.complete}
