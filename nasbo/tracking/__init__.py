"""Sweeps in MLflow, Weights & Biases and TensorBoard: a follower of the journal that tells them.

Public: ``track``, what the command does; its ``Plan`` of how long to go on; ``open_destination``
for one of ``DESTINATIONS``.
"""

from nasbo.tracking.destination import DESTINATIONS, Wish, open_destination
from nasbo.tracking.follow import Plan, track

__all__ = ["DESTINATIONS", "Plan", "Wish", "open_destination", "track"]
