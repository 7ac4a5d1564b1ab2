"""Runs `astra`, and kills it with SIGKILL at the N-th line that it writes of a log: before it or after it.

    python killed_at.py LOG before|after N run ...

LOG is the beginning of the lines that count.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

begins, moment, number = sys.argv[1].encode(), sys.argv[2], int(sys.argv[3])
sys.argv = ["astra", *sys.argv[4:]]
really = os.write
seen = 0


def write(descriptor: int, data: Any, /) -> int:
    global seen  # noqa: PLW0603 - it stands in for a function of the system
    seen += bytes(data).startswith(begins)
    is_it = seen == number and bytes(data).startswith(begins)
    if is_it and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    written = really(descriptor, data)
    if is_it:
        os.kill(os.getpid(), signal.SIGKILL)
    return written


os.write = write

from astra_async.cli import main  # noqa: E402

main()
