"""Retry policy: whether a run that broke off is begun again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from nasbo.history import Ending, Run

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True)
class RetryPolicy:
    """Begins runs again as their ending allows.

    What a machine did is no fault of the config: always. Out of memory: once, with smaller steps. A
    crash, a kill or a hang may be the config's fault: ``max_failures`` times in all. A crash that
    repeats with the same message, numbers aside, is the config's fault or the trainer's: once.
    """

    max_failures: int = 0

    def __call__(self, run: Run, ending: Ending, message: str) -> bool:
        before = Counter(dict(run.retries))
        n_before = before[str(ending)]
        if ending is Ending.CRASHED and n_before and _is_same(message, run.message):
            return False
        counted = sum(before[str(one)] for one in Ending if one.value.again == "counted")
        return ending.may_run_again(n_before, counted, self.max_failures)


def _is_same(message: str, before: str) -> bool:
    """Whether messages differ at most in addresses, sizes and other numbers."""
    return bool(message) and _NUMBER.sub("#", message) == _NUMBER.sub("#", before)
