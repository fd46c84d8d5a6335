"""Proxy that forwards requests to a server, and sometimes keeps the answer to itself."""

from __future__ import annotations

import random
import socket
import threading
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LossyProxy:
    """What is asked through it is done; every so many answers is lost on its way.

    Args:
        port: of the server, on the loopback.
        share: of the answers that are lost.
        seed: of the dice.

    Attributes:
        n_lost: how many answers to requests that changed something were lost.
    """

    def __init__(self, port: int, share: float, seed: int = 0) -> None:
        self.n_lost, self.n_changes = 0, 0
        self._dice, self._share, self._target = random.Random(seed), share, port
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def shutdown(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                server = HTTPConnection("127.0.0.1", proxy._target, timeout=60)
                server.request(self.command, self.path, body, dict(self.headers.items()))
                answer = server.getresponse()
                data = answer.read()
                if proxy._is_lost(self.path):
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.send_response(HTTPStatus(answer.status))
                self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                """Keep quiet."""

        return Handler

    def _is_lost(self, path: str) -> bool:
        is_change = any(word in path for word in ("create", "log-batch", "update", "delete"))
        is_lost = self._dice.random() < self._share
        self.n_changes += is_change
        self.n_lost += is_change and is_lost
        return is_lost
