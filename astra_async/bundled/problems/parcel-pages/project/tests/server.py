"""The site over loopback, with the shipments that a test wants."""

import functools
import json
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "site"
DELAY_S = 0.4


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/data/shipments.json":
            self.send_shipments()
        else:
            super().do_GET()

    def send_shipments(self):
        time.sleep(self.server.delay_s)
        shipments = self.server.shipments
        body = json.dumps(shipments).encode()
        self.send_response(500 if shipments is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Site:
    """Serves until it is closed, data after a delay; `shipments` None stands for a server that is broken."""

    def __init__(self, shipments, delay_s=DELAY_S):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
        self._server.shipments = shipments
        self._server.delay_s = delay_s
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
