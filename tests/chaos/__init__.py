"""Chaos tests: sweeps with injected faults."""

import os

# Searches are compared bit by bit, so set it even if `make` has not; read when numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
