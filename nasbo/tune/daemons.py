"""Process groups of Ray's daemons."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_started = {"is_starting": False, "is_registered": False}


def _leave_group() -> None:
    """Called in each forked process."""
    if _started["is_starting"]:
        with suppress(OSError):
            os.setpgid(0, 0)


@contextmanager
def apart() -> Iterator[None]:
    """Start processes in groups of their own, and end a start by SIGTERM as by Ctrl-C.

    ``timeout``, shells and schedulers send a signal to the whole group of a driver. Without its
    daemons, the driver could end no trial and would wait for them in vain. They end with the driver
    all the same: Ray binds their lives to its own.
    """
    if not _started["is_registered"]:
        os.register_at_fork(after_in_child=_leave_group)
        _started["is_registered"] = True
    _started["is_starting"] = True
    try:
        yield
    except SystemExit as error:  # Ray installs this handler of SIGTERM before it connects
        if error.code != signal.SIGTERM:
            raise
        raise KeyboardInterrupt from error
    finally:
        _started["is_starting"] = False
