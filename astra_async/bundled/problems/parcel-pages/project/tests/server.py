"""The site over loopback, with the shipments that a test wants."""

import functools
import json
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "site"
LOOKS = 8
LEAST_S = 0.2
MOST_S = 2.5


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/data/shipments.json":
            self.hold()
            shipments = self.server.shipments
            self.answer(500 if shipments is None else 200, json.dumps(shipments))
        elif self.path == "/pause":
            self.hold()
            self.answer(200, "{}")
        else:
            super().do_GET()

    def hold(self):
        """Waits until the driver was used a few times more.

        Whoever looks only once finds what was there before, however busy the machine is, and whoever goes
        on looking is not kept waiting for long.
        """
        start, looks = time.monotonic(), self.server.looks()
        while (waited := time.monotonic() - start) < MOST_S:
            if waited >= LEAST_S and self.server.looks() >= looks + LOOKS:
                break
            time.sleep(0.01)

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Site:
    """Serves until it is closed; `shipments` None stands for a server that is broken."""

    def __init__(self, shipments, looks):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
        self._server.shipments = shipments
        self._server.looks = looks
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
