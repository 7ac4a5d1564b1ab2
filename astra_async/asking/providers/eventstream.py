"""application/vnd.amazon.eventstream over raw bytes: frames cut into events, as `sse` cuts text.

A frame is its length and that of its headers (32 bits each, big-endian), the CRC-32 of both, headers, a
payload, and the CRC-32 of all before. A header is a length and a name, a type, a value
(https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html). An event comes out as JSON
with its name round its payload: `{"messageStop": {...}}`. What does not begin like a frame is text: the
whole answer of a model that cannot stream, or a web page.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

import orjson

from astra_async.asking.providers.answer import Unreadable
from astra_async.asking.providers.sse import SseSplitter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_SIZE = struct.Struct(">H")
_LEAST_BYTES = _PRELUDE.size + _CRC.size
_MOST_BYTES = 2**25  # the encoding's own limit is 24 MB of payload and 128 KB of headers
_FIRST_BYTES = b"\x00\x01"  # of a length below that
_STRING = 7
_SIZED = frozenset({6, _STRING})
_BYTES_OF_TYPE = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class EventStreamSplitter:
    """Cuts frames into the JSON of their events, whatever the chunks."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._text: SseSplitter | None = None
        self._has_begun = False

    @property
    def is_page(self) -> bool:
        """As SseSplitter's."""
        return self._text is not None and self._text.is_page

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Events that this chunk completes, in order; to be read to their end before the next chunk.

        Raises:
            Unreadable: on the way, when a frame is broken; the events before it are out.
            EventTooLarge: see SseSplitter.
        """
        if not self._has_begun and chunk:
            self._has_begun = True
            self._text = None if chunk[0] in _FIRST_BYTES else SseSplitter()
        return self._frames(chunk) if self._text is None else self._text.feed(chunk)

    def finish(self) -> Iterable[bytes]:
        """What is left at the end of the stream; half a frame is nothing."""
        return () if self._text is None else self._text.finish()

    def _frames(self, chunk: bytes) -> Iterator[bytes]:
        held = self._held
        held += chunk
        start = 0
        try:
            while (length := _length_at(held, start)) and len(held) - start >= length:
                frame = bytes(memoryview(held)[start : start + length])
                start += length
                yield _event(frame)
        finally:
            del held[:start]


Splitter = SseSplitter | EventStreamSplitter


def _length_at(held: bytearray, start: int) -> int:
    """The length of the frame that begins there; 0 while that has not arrived."""
    if len(held) - start < _PRELUDE.size:
        return 0
    length, of_headers, checksum = _PRELUDE.unpack_from(held, start)
    if checksum != crc32(held[start : start + 8]) or not _LEAST_BYTES + of_headers <= length <= _MOST_BYTES:
        raise Unreadable("no frame of an event stream", bytes(held[start : start + _PRELUDE.size]))
    return int(length)


def _event(frame: bytes) -> bytes:
    end = len(frame) - _CRC.size
    if _CRC.unpack_from(frame, end)[0] != crc32(memoryview(frame)[:end]):
        raise Unreadable("damaged: its checksum is wrong", frame)
    headers_end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    try:
        named = _headers(frame, _PRELUDE.size, headers_end)
    except (LookupError, struct.error, UnicodeDecodeError) as error:
        raise Unreadable("without headers that can be read", frame) from error
    if named.get(":message-type") == "error":
        body = {"code": named.get(":error-code"), "message": named.get(":error-message")}
        return orjson.dumps({"error": body})
    name = named.get(":event-type") or named.get(":exception-type") or ""
    return b"{%b:%b}" % (orjson.dumps(name), frame[headers_end:end] or b"{}")


def _headers(frame: bytes, at: int, end: int) -> dict[str, str]:
    """The headers that are text."""
    named: dict[str, str] = {}
    while at < end:
        name_end = at + 1 + frame[at]
        name, kind = frame[at + 1 : name_end], frame[name_end]
        at = name_end + 1
        if kind in _SIZED:
            size = _SIZE.unpack_from(frame, at)[0]
            at += _SIZE.size
        else:
            size = _BYTES_OF_TYPE[kind]
        if kind == _STRING:
            named[name.decode()] = frame[at : at + size].decode()
        at += size
    return named
