"""What a container printed, in bounded memory: the head, the tail, and a count of what lay between."""

from __future__ import annotations

from copy import deepcopy

_STDOUT = 1
_LONGEST_LINE = 64 * 1024  # bytes that wait for the end of their line


class Clipped:
    """A byte stream of which the first and the last `limit // 2` bytes are kept."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:  # trimmed seldom, so that each byte is moved about once
            del self._tail[: -self._half]

    def text(self) -> str:
        """Head and tail as text, with a line between them that says how many bytes were left out."""
        tail = self._tail[-self._half :]
        left_out = self.total - len(self._head) - len(tail)
        if not left_out:
            return (self._head + tail).decode("utf-8", errors="replace")
        mark = f"\n[... {left_out} bytes of output left out ...]\n"
        return self._head.decode("utf-8", errors="replace") + mark + tail.decode("utf-8", errors="replace")


class Output:
    """Standard output and error line by line as they came, and standard output alone, each clipped.

    Docker tells both in pieces as the machine had time for them: a line of one that the other began in
    would belong to neither, and be another one in each run.
    """

    def __init__(self, limit: int) -> None:
        self.total = 0  # bytes
        self.stdout = Clipped(limit)
        self._lines = Clipped(limit)
        self._begun = {_STDOUT: bytearray()}  # by stream

    def feed(self, stream: int, data: bytes) -> None:
        """Take one frame of Docker's stream (1: standard output, 2: standard error, 3: the engine's own)."""
        self.total += len(data)
        if stream == _STDOUT:
            self.stdout.feed(data)
        begun = self._begun.setdefault(stream, bytearray())
        begun += data
        whole = begun.rfind(b"\n", len(begun) - len(data)) + 1
        if not whole and len(begun) > _LONGEST_LINE:
            whole = len(begun)
        self._lines.feed(bytes(begun[:whole]))
        del begun[:whole]

    def text(self) -> str:
        """All streams so far; of lines that have not ended yet, standard output's is told first."""
        lines = deepcopy(self._lines)
        lines.feed(b"\n".join(filter(None, self._begun.values())))
        return lines.text()
