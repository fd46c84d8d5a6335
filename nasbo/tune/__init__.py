"""The search on Ray: a searcher for ``tune.Tuner``, and sweeps that survive their driver."""

from nasbo.tune.searcher import NasboSearch

__all__ = ["NasboSearch"]
