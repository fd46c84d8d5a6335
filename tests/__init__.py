"""The tests compute with one thread, as ``make test`` does: processes agree to the bit then."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
