"""Sweeps as Python objects.

Public: ``load_sweep``, which returns a ``SweepFolder``; the settings ``Sweep``, created and checked
by ``make_sweep``; ``create_folder`` for a new one.
"""

from nasbo.sweeps.folder import SweepFolder, create_folder, load_sweep
from nasbo.sweeps.settings import Sweep, make_sweep

__all__ = ["Sweep", "SweepFolder", "create_folder", "load_sweep", "make_sweep"]
