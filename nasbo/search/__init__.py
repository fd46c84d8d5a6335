"""Search without Ray: ask/tell interface, schedules, and the driver that all runners share.

Public: ``Search``, and for custom runners the ``Driver`` with its ``Schedule``, ``Policies``,
``StoppingRule`` and deciders.
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
