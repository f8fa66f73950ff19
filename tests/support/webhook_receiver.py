"""A webhook receiver as a process that imports nothing of the product, and answers as its paths say.

`python webhook_receiver.py LOG [CERTIFICATE KEY]` prints its address and writes a line of JSON for each request to LOG.
Paths: `/ok`, `/status/500`, `/flaky/2` (fails twice, then accepts), `/asks/1` (429 once, with that Retry-After),
`/moved` (a redirect to `/ok`), `/hang` (never answers), `/drop` (hangs up). The rest of a path means nothing.
"""

import json
import ssl
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOG = Path(sys.argv[1])
SEEN: Counter[str] = Counter()
WRITING = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    """Accepts POST requests."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        with WRITING:
            SEEN[self.path] += 1
            count = SEEN[self.path]
            with LOG.open("a") as file:
                file.write(json.dumps({"path": self.path, "headers": headers, "body": body}) + "\n")
        _, kind, *rest = self.path.partition("?")[0].split("/")
        number = int(rest[0]) if rest and rest[0].isdigit() else 0
        match kind:
            case "ok":
                self._say(204)
            case "status":
                self._say(number)
            case "flaky":
                self._say(500 if count <= number else 200)
            case "asks":
                self._say(200) if count > 1 else self._say(429, {"Retry-After": str(number)})
            case "moved":
                self._say(307, {"Location": "/ok"})
            case "hang":
                threading.Event().wait()
            case _:
                self.close_connection = True

    def _say(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name for it
        """No output: the log is ours."""


class Server(ThreadingHTTPServer):
    """Its threads end with it, including hanging ones."""

    daemon_threads = True


server = Server(("127.0.0.1", 0), Receiver)
scheme = "http"
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https"
sys.stdout.write(f"{scheme}://127.0.0.1:{server.server_address[1]}\n")
sys.stdout.flush()
server.serve_forever()
