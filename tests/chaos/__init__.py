"""Sweeps that are broken on purpose."""

import os

# Searches are compared bit by bit, also where `make` has not set it; read when numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
