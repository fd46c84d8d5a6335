"""moto's S3 server with atomic conditional writes, as S3 guarantees them.

moto looks at ``If-Match`` and stores in two steps, and serves requests side by side. Here they are
served one after the other. Runs in moto's own environment: ``python moto_server.py PORT``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any


def serve(port: int) -> None:
    """Serve on the loopback until this process is killed."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.server import MotoRequestHandler
    from werkzeug.serving import run_simple

    application, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def in_turn(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(application(environment, start))

    handler = MotoRequestHandler
    run_simple("127.0.0.1", port, in_turn, threaded=True, request_handler=handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
