"""The tests; like ``make test`` they compute with one thread, so that processes agree to the bit."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
