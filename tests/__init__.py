"""Tests compute with one thread, as in ``make test``, so that processes agree bit by bit."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
