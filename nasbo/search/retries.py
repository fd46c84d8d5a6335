"""Retry policy for runs that broke off."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from nasbo.history import Ending, Run

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True)
class RetryPolicy:
    """How often a run is retried, by its ending (``nasbo.history.endings``).

    A run that was lost with its machine is always retried, one that ran out of memory once.
    Crashes, kills and timeouts are retried ``max_failures`` times in total, except for a second
    crash with the same message (ignoring numbers), which would only repeat itself.
    """

    max_failures: int = 0

    def __call__(self, run: Run, ending: Ending, message: str) -> bool:
        before = Counter(dict(run.retries))
        n_before = before[str(ending)]
        if ending is Ending.CRASHED and n_before and is_same_message(message, run.message):
            return False
        counted = sum(before[str(one)] for one in Ending if one.value.again == "counted")
        return ending.may_run_again(n_before, counted, self.max_failures)


def is_same_message(message: str, before: str) -> bool:
    """Whether messages differ only in addresses, sizes and other numbers."""
    return bool(message) and _NUMBER.sub("#", message) == _NUMBER.sub("#", before)
