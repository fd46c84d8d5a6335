"""Registry of acquisition functions by name, and the choice of configs that maximise them."""

from nasbo.acquisition.base import Acquisition, Pointwise, Score
from nasbo.acquisition.bounds import UCB, AddTreeUCB
from nasbo.acquisition.choose import MAX_VISITED_SUBSPACES, Avoided, Chooser, Found
from nasbo.acquisition.improvement import LogEI, LogPI, SampledLogEI
from nasbo.acquisition.promise import ByPromise
from nasbo.acquisition.thompson import Thompson

ACQUISITIONS: dict[str, type[Acquisition]] = {
    "log_ei": LogEI,
    "sampled_log_ei": SampledLogEI,
    "log_pi": LogPI,
    "ucb": UCB,
    "thompson": Thompson,
}
"""Acquisitions that can be chosen by name: each class is called without arguments."""

__all__ = [
    "ACQUISITIONS",
    "MAX_VISITED_SUBSPACES",
    "UCB",
    "Acquisition",
    "AddTreeUCB",
    "Avoided",
    "ByPromise",
    "Chooser",
    "Found",
    "LogEI",
    "LogPI",
    "Pointwise",
    "SampledLogEI",
    "Score",
    "Thompson",
]
