"""Splitter of server-sent events over raw bytes, for every provider that streams text.

Follows the event stream grammar of the WHATWG HTML standard, section 9.2.6 (lines end with LF, CRLF or CR;
`:` begins a comment; one space after the colon is dropped; a blank line dispatches), with three additions:

- A line of bare JSON is an event. Gemini sends errors this way, servers that ignore `stream: true` send
  complete answers this way, and streams of JSON lines (also RFC 7464) consist of such lines.
- JSON in a field `error:` is an event (older llama.cpp).
- A `data:` line with a complete object ends its event if another `data:` line follows, because some servers
  omit the blank lines.
"""

from __future__ import annotations

import orjson

MAX_EVENT_BYTES = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_CLOSERS = {b"{": b"}", b"[": b"]"}
_BEFORE_JSON = b" \t\x1e"  # \x1e: the record separator before each JSON text in RFC 7464


class EventTooLarge(ValueError):  # noqa: N818 - names what was seen
    """An event or a line is longer than the splitter's limit."""


class SseSplitter:
    """Splitter of an event stream into the data of its events, for chunks of any size, in linear time.

    An event of more than `max_event_bytes` raises EventTooLarge instead of filling the memory. A body that
    begins with `<` is an HTML page (`is_page`). Only its `data:` lines are read.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.is_page = self._has_begun = False
        self._limit = max_event_bytes
        self._held: list[bytes] = []  # pieces of a line whose end has not arrived
        self._held_bytes = 0
        self._after_cr = False  # the last chunk ended with CR, so a LF at the start of the next belongs to it
        self._data: list[bytes] = []
        self._bare: list[bytes] = []
        self._size = 0  # bytes in _data or _bare

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that this chunk completes, in order.

        Raises:
            EventTooLarge: an event or a line is longer than the limit.
        """
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not end:
            self._hold(chunk)
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk[:end].splitlines()
        if self._held:
            self._held.append(lines[0])
            lines[0] = b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
        if end < len(chunk):
            self._hold(chunk[end:])
        return self._events(lines)

    def finish(self) -> list[bytes]:
        """Return the events left at the end of the stream. Some servers omit the last blank line."""
        line = b"".join(self._held)
        self._held.clear()
        events = self._events([line, b""] if line else [b""])
        if self._bare:
            events.append(self._end_bare())
        return events

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._held.append(piece)
            self._held_bytes += len(piece)
            self._check(self._held_bytes)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(f"an event is longer than {self._limit} bytes")

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":  # tested first because nearly every line is a data line
                if len(data) == 1 and _is_object(data[0]):
                    events.append(data.pop())
                data.append(line[6:] if line[5:6] == b" " else line[5:])
                if len(data) > 1:
                    self._size += len(line)
                    self._check(self._size)
            elif not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
                    self._size = 0
                elif self._bare:
                    events.append(self._end_bare())
            else:
                self._other(line, events)
        return events

    def _other(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(_BOM):
            events += self._events([line[len(_BOM) :]])
            return
        if not self._has_begun and line.strip():
            self._has_begun = True
            self.is_page = line.lstrip()[:1] == b"<"
        if self._bare:
            self._bare_line(line, events)
        elif self.is_page:
            return
        elif line[:6] == b"error:" and line[6:].lstrip()[:1] == b"{":
            self._bare_line(b'{"error":%b}' % line[6:].strip(), events)
        elif (bare := line.lstrip(_BEFORE_JSON))[:1] in _CLOSERS:
            self._bare_line(bare, events)
        elif line == b"data":
            self._data.append(b"")

    def _bare_line(self, line: bytes, events: list[bytes]) -> None:
        """Collect JSON without `data:`, on one line or pretty-printed over several lines."""
        first = not self._bare
        self._bare.append(line)
        self._size += len(line)
        self._check(self._size)
        if line.rstrip()[-1:] == _CLOSERS[self._bare[0][:1]] and (first or line[:1] in b"}]"):
            events.append(self._end_bare())

    def _end_bare(self) -> bytes:
        event = b"\n".join(self._bare)
        self._bare.clear()
        self._size = 0
        return event


def _is_object(line: bytes) -> bool:
    if line[:1] != b"{" or line.rstrip()[-1:] != b"}":
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
