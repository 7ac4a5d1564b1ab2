"""Files and functions that one sample passes through, and one 429 with its retry.

    scripts/bench/run path [--functions]

The bundled problem `task-api` is run once in this process, with a server of this file that first answers
429. A profiler counts this program's files and functions (module level and comprehensions aside): before the
first sample, from the sample's begin to its final line, and from the 429 to the second request.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

import astra_async
from astra_async.bundled import bundled_problems_csv
from astra_async.cli import main

ROOT = Path(astra_async.__file__).parent
PROBLEM = "task-api"
LIMITS = {"start": (110, None), "sample": (60, 350), "429": (12, 70)}
_SAMPLE = ("running/sample.py", "run_sample")
_RECORDED = "record_result"
_NOT_COUNTED = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
asked = 0  # requests that the server has had


def answer() -> str:
    """The reference's files as an XML answer."""
    reference = bundled_problems_csv().parent / "problems" / PROBLEM / "reference"
    files = "".join(
        f'<file path="{path.relative_to(reference)}"><![CDATA[{path.read_text()}]]></file>'
        for path in sorted(reference.rglob("*"))
        if path.is_file()
    )
    return f"<solution>{files}</solution>"


class Server(BaseHTTPRequestHandler):
    """One 429, then the same answer to every request, as a stream."""

    text = ""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        global asked  # noqa: PLW0603 - one server
        asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        if asked == 1:
            body = b'{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}'
            kind, status = "application/json", 429
        else:
            body, kind, status = self.stream(), "text/event-stream", 200
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("retry-after-ms", "50")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self) -> bytes:
        """The events of a whole answer."""
        usage = {"prompt_tokens": 2000, "completion_tokens": 500, "total_tokens": 2500}
        choices: list[dict[str, Any]] = [
            {"index": 0, "delta": {"content": self.text}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        ]
        events: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
        events.append({"choices": [], "usage": usage})
        lines = [json.dumps({"id": "1", "model": "m", **event}) for event in events]
        return "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Seen:
    """Code that was entered, by the stretch of the run in which it was."""

    def __init__(self) -> None:
        self.start: set[CodeType] = set()
        self.sample: set[CodeType] = set()
        self.rejection: set[CodeType] = set()
        self._stretch = self.start

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; `sys.setprofile` calls this."""
        code = frame.f_code
        if event == "return" and code.co_name == _RECORDED:
            self._stretch = set()
        if event != "call":
            return
        if not code.co_filename.startswith(str(ROOT)) or "simulate" in code.co_filename:
            return
        place = (code.co_filename[len(str(ROOT)) + 1 :], code.co_name)
        if place == _SAMPLE and self._stretch is self.start:
            self._stretch = self.sample
        self._stretch.add(code)
        if asked == 1 and self._stretch is self.sample:
            self.rejection.add(code)


def counted(codes: set[CodeType]) -> tuple[list[str], list[str]]:
    """Files and functions."""
    named = {code for code in codes if code.co_name not in _NOT_COUNTED}
    files = sorted({code.co_filename[len(str(ROOT)) + 1 :] for code in named})
    functions = sorted(f"{code.co_filename[len(str(ROOT)) + 1 :]}:{code.co_qualname}" for code in named)
    return files, functions


def run_once(folder: str) -> Seen:
    """Run the problem to its end under the profiler."""
    Server.text = answer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["OPENAI_API_KEY"] = "sk-none"
    seen = Seen()
    arguments = [
        *("astra", "run", "--problems", "bundled", "--only", PROBLEM, "--samples", "1"),
        *("--model", "openai/m", "--base-url", f"http://127.0.0.1:{server.server_port}/v1"),
        *("--out", f"{folder}/run"),
    ]
    sys.argv, given = arguments, sys.argv
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.argv = given
        server.shutdown()
    return seen


def measure() -> int:
    """Print the table; 1 if a limit is passed."""
    with tempfile.TemporaryDirectory() as folder:
        seen = run_once(folder)
    is_over = False
    print(f"{'stretch':10} {'files':>6} {'limit':>6} {'functions':>10} {'limit':>6}")
    for name, codes in (("start", seen.start), ("sample", seen.sample), ("429", seen.rejection)):
        files, functions = counted(codes)
        most_files, most_functions = LIMITS[name]
        is_over |= len(files) > most_files or len(functions) > (most_functions or len(functions))
        print(f"{name:10} {len(files):6} {most_files:6} {len(functions):10} {most_functions or '-':>6}")
        if "--functions" in sys.argv:
            print("\n".join(f"  {function}" for function in functions))
    return int(is_over)


if __name__ == "__main__":
    sys.exit(measure())
