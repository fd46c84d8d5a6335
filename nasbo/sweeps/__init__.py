"""Sweeps as objects, to be looked at in Python."""

from nasbo.sweeps.folder import SweepFolder, load_sweep

__all__ = ["SweepFolder", "load_sweep"]
