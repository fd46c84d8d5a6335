"""Searches: ask and tell, schedules, and the driver that all who run trainings share.

Public: ``Search``, and for those who run trainings themselves the ``Driver`` with its ``Schedule``,
``Policies``, ``StoppingRule`` and deciders.
"""

from nasbo.search.driver import Decided, Decider, Driver, LocalDecider, Next, Policies
from nasbo.search.schedule import Schedule
from nasbo.search.search import Search
from nasbo.search.stopping import StoppingRule, Verdict

__all__ = [
    "Decided",
    "Decider",
    "Driver",
    "LocalDecider",
    "Next",
    "Policies",
    "Schedule",
    "Search",
    "StoppingRule",
    "Verdict",
]
