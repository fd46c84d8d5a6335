"""Object server on the loopback with a small part of S3 and GCS, correct or faulty."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NOT_IMPLEMENTED = b"<Error><Code>NotImplemented</Code><Message>A header</Message></Error>"


class ObjectServer(ThreadingHTTPServer):
    """Objects in memory.

    Args:
        manner: ``heeds`` conditions, ``ignores`` them, ``rejects`` their headers, or ``refuses``
            each conditional write.

    Attributes:
        signers: the access keys of the requests.
    """

    daemon_threads = True

    def __init__(self, manner: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.manner = manner
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.signers: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: ObjectServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self.server.objects.get(self.path)
        self._answer(200, *found) if found else self._answer(404)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        signature = self.headers.get("Authorization", "")
        self.server.signers.append(signature.partition("Credential=")[2].partition("/")[0])
        with self.server.lock:
            manner, found = self.server.manner, self.server.objects.get(self.path)
            if manner == "rejects":
                self._answer(501, NOT_IMPLEMENTED)
            elif manner == "refuses" or (manner == "heeds" and not self._holds(found)):
                self._answer(412)
            else:
                stored = (data, found[1] + 1 if found else 100)
                self.server.objects[self.path] = stored
                self._answer(200, b"", stored[1], _tag(data))

    def _holds(self, found: tuple[bytes, int] | None) -> bool:
        generation = self.headers.get("x-goog-if-generation-match")
        if generation is not None:
            return int(generation) == (found[1] if found else 0)
        if self.headers.get("If-None-Match") == "*":
            return found is None
        return found is not None and self.headers.get("If-Match") == _tag(found[0])

    def _answer(self, status: int, data: bytes = b"", generation: int = 0, tag: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag or _tag(data))
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'
