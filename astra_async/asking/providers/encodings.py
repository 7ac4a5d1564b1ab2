"""Bodies that come compressed although it was not asked for: gzip and deflate are read, all else is named.

RFC 9110, section 8.4. One piece of a body never grows by more than `_MOST_BYTES` at once: whoever reads an
endless one counts as it comes.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    import aiohttp

_MOST_BYTES = 2**18
_EITHER = 32 + zlib.MAX_WBITS  # zlib's own header, or gzip's
_ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})


class UnknownEncoding(Exception):  # noqa: N818 - names what was seen
    """The body is encoded in a way that was not asked for and cannot be read."""


class DamagedEncoding(Exception):  # noqa: N818 - names what was seen
    """The body is not what its encoding says."""


class Decoder:
    """Turns the pieces of one body into what they stand for.

    Raises:
        UnknownEncoding: it is neither plain nor compressed by zlib.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        encoding = headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ZLIB | _PLAIN:
            raise UnknownEncoding(
                f"the answer comes encoded as {one_line(encoding, length=40)!r}, which was not asked for"
                " (Accept-Encoding: identity): turn that off at the server or at the proxy before it"
            )
        self._zlib = zlib.decompressobj(_EITHER) if encoding in _ZLIB else None
        self._is_deflate = encoding == "deflate"

    def pieces(self, chunk: bytes) -> Iterable[bytes]:
        """What a chunk holds, in pieces of bounded size.

        Raises:
            DamagedEncoding: it is not what the header says.
        """
        if self._zlib is None:
            return (chunk,)
        if self._is_deflate and chunk:
            self._is_deflate = False
            if chunk[0] & 15 != zlib.DEFLATED:  # some servers leave zlib's header out
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
        return _inflated(chunk, self._zlib)


def _inflated(chunk: bytes, stream: zlib._Decompress) -> Iterator[bytes]:
    try:
        while chunk:
            yield stream.decompress(chunk, _MOST_BYTES)
            chunk = stream.unconsumed_tail
    except zlib.error as error:
        raise DamagedEncoding(f"its compression is damaged ({error})") from error


async def pieces_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of a response as it comes. Raises what `Decoder` does, and aiohttp."""
    decoder = Decoder(response.headers)
    async for chunk in response.content.iter_any():
        for piece in decoder.pieces(chunk):
            yield piece
