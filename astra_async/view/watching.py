"""A background task that reads the runs and sends changes to all open pages; idle without pages."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.log import encode
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from astra_async.view.board import Board, Bytes

    Page = asyncio.Queue[bytes]  # messages to send to the page

_INTERVAL_S = 0.5
_FRESH_S = 0.4  # a request does not read again after so recent a reading
_PATIENCE_S = 0.25  # longest time that a request waits for reading; later changes come by the stream
_MOST_CHANGES = 5_000  # with more changes, fetching everything is cheaper
_QUEUED = 8  # messages that a slow page may lag behind


class Watch:
    """Keeps a board up to date for requests and open pages.

    Invariant: at most one reading is in progress. Each `change` message contains the changes since the last
    one.
    """

    def __init__(self, board: Board, live: Callable[[], Any]) -> None:
        self.board = board
        self._live = live
        self._pages: set[Page] = set()
        self._looking = False
        self._looked_at = -_FRESH_S
        self._ticking: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._sent: tuple[int, tuple[int, ...], Bytes] | None = None
        self._sent_live = b""
        self._sent_errors: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        self._loading = asyncio.create_task(self._load())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._loading, self._ticking):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    @property
    def is_watched(self) -> bool:
        """Return True if any page has an open stream."""
        return bool(self._pages)

    async def fresh(self) -> None:
        """Update the board, for at most _PATIENCE_S seconds."""
        if not self._looking and time.monotonic() - self._looked_at > _FRESH_S:
            await self._look(_PATIENCE_S)

    def open(self) -> Page:
        """Register a new page; its first message makes it fetch everything."""
        page: Page = asyncio.Queue(_QUEUED)
        page.put_nowait(self._everything())
        self._pages.add(page)
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self._tick())
        return page

    def close(self, page: Page) -> None:
        """Unregister a page."""
        self._pages.discard(page)

    async def _load(self) -> None:
        while await self._look(_INTERVAL_S):
            self._send_updates()

    async def _tick(self) -> None:
        self._sent = None
        while self._pages:
            started = time.monotonic()
            if not self._looking:
                await self._look(_INTERVAL_S)
                try:
                    self._send_updates()
                except Exception as error:  # noqa: BLE001 - a failed message must not end the task
                    text = one_line(f"changes cannot be sent: {type(error).__name__}: {error}")
                    self._send(_event("gone", {"text": text}))
            await asyncio.sleep(max(0.0, started + _INTERVAL_S - time.monotonic()))

    async def _look(self, within_s: float) -> bool:
        """Read in slices that leave the event loop free; return True if there is more to read."""
        self._looking, until, more = True, time.monotonic() + within_s, True
        try:
            while more and time.monotonic() < until:
                more = sum(run.look() for run in self.board.runs) > 0
                await asyncio.sleep(0)
        finally:
            self._looking, self._looked_at = False, time.monotonic()
        return more

    def _send_updates(self) -> None:
        if not self._pages:
            return
        self._send_changes()
        self._send_errors()
        live = _event("live", self._live())
        if live != self._sent_live:
            self._sent_live = live
            self._send(live)

    def _send_changes(self) -> None:
        board, sent = self.board, self._sent
        if sent is not None and sent[0] == board.version:
            return
        cells = board.cells()
        self._sent = board.version, board.plan, cells
        if sent is None or sent[1] != board.plan or len(sent[2]) != len(cells):
            self._send(self._everything())
            return
        changed = np.flatnonzero(sent[2] != cells)
        if len(changed) > _MOST_CHANGES:
            self._send(self._everything())
        else:
            self._send(self._change([[int(place), int(cells[place])] for place in changed]))

    def _send_errors(self) -> None:
        trouble = tuple(run.trouble for run in self.board.runs)
        for text, before in zip(trouble, self._sent_errors or ("",) * len(trouble), strict=True):
            if text and text != before:
                self._send(_event("gone", {"text": text}))
        self._sent_errors = trouble

    def _send(self, message: bytes) -> None:
        """Send a message to all pages; a page that lags too far behind gets "fetch everything" instead."""
        for page in self._pages:
            if page.full():
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(self._everything())
            else:
                page.put_nowait(message)

    def _everything(self) -> bytes:
        return self._change(None)

    def _change(self, cells: list[list[int]] | None) -> bytes:
        return _event("change", {"version": self.board.version, "cells": cells, "state": self.board.state})


def _event(name: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(data))
