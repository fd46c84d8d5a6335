"""Ray Tune integration: a searcher for ``tune.Tuner``, and sweeps that survive their driver.

Public: ``NasboSearch``, the searcher; ``run_sweep`` with its ``Observers`` and its ``Outcome``.
"""

from nasbo.tune.observers import Observers
from nasbo.tune.run import Outcome, run_sweep
from nasbo.tune.searcher import NasboSearch

__all__ = ["NasboSearch", "Observers", "Outcome", "run_sweep"]
