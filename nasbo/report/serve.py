"""Live report of a sweep, served on this machine's loopback."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from nasbo.errors import NasboError
from nasbo.history import By
from nasbo.report.page import to_html
from nasbo.report.study import open_study
from nasbo.report.write import make_page
from nasbo.sweeps.folder import SweepFolder

HOST = "127.0.0.1"


class LivePage:
    """The report of a folder, regenerated on request when the journal has grown."""

    def __init__(self, folder: Path, by: By = "estimate") -> None:
        self.sweep, self._by = SweepFolder(folder), by
        self._lock = threading.Lock()
        self._made = ("", "")

    def version(self) -> str:
        """A text that changes with the journal, and when the sweep starts or stops."""
        journal = self.sweep.refresh().journal_file
        size = journal.stat().st_size if journal.exists() else 0
        return f"{size}-{int(self.sweep.is_running)}"

    def html(self) -> str:
        with self._lock:
            version = self.version()
            if self._made[0] != version:
                page = make_page(open_study(self.sweep.path, self._by))
                self._made = (version, to_html(page, live_version=version))
            return self._made[1]


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer

    def do_GET(self) -> None:
        """Serve the page or its version, and nothing else."""
        if not self._is_local():
            self.send_error(HTTPStatus.FORBIDDEN, "only by the name of this machine's loopback")
            return
        live = self.server.live
        answers: dict[str, tuple[str, Callable[[], str]]] = {
            "/": ("text/html", live.html),
            "/version": ("text/plain", live.version),
        }
        answer = answers.get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._answer(*answer)

    def _answer(self, kind: str, make: Callable[[], str]) -> None:
        try:
            body = make().encode()
        except NasboError as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(error))
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _is_local(self) -> bool:
        """Check the Host header: no other site may reach the server through DNS rebinding."""
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return name in (HOST, "localhost")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: requests come every two seconds."""


class ReportServer(ThreadingHTTPServer):
    """HTTP server of one folder's report; ``port`` 0 means a free one."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0, by: By = "estimate") -> None:
        self.live = LivePage(folder, by)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise NasboError(f"port {port} of {HOST} cannot be had: {error}") from error

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"


def serve_report(
    folder: Path, port: int, tell: Callable[[str], object], by: By = "estimate"
) -> None:
    """Serve until Ctrl-C."""
    with ReportServer(folder, port, by) as server:
        number = server.server_address[1]
        tell(f"report of {server.live.sweep.name}: {server.url} (Ctrl-C ends)")
        tell(f"from elsewhere: ssh -L {number}:{HOST}:{number} THIS_MACHINE")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell("ended")


@contextmanager
def served_report(folder: Path, port: int) -> Iterator[str]:
    """Serve in a separate process, so that drawing takes no time from a sweep in this one.

    Args:
        folder: of the sweep.
        port: of the loopback; 0 means a free one.

    Yields:
        The report's address. The process ends with the block, or with this process.

    Raises:
        NasboError: the port is not available.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the sweep
    )
    with process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise NasboError(f"the live report cannot be served on port {port}")
        try:
            yield url
        finally:
            process.terminate()


def _serve_for_parent() -> None:
    """Serve until the standard input is closed, which happens however the parent process ends."""
    folder, port = sys.argv[1:]
    with ReportServer(Path(folder), int(port)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    try:
        _serve_for_parent()
    except NasboError as error:
        sys.exit(f"nasbo: {error}")
