"""Short constructors of events for tests."""

from __future__ import annotations

from typing import Any

from nasbo.history import Ending
from nasbo.history.events import Ended, Event, Reported, Requeued, Started


def started(run: int, **fields: Any) -> Event:
    return Started(run=run, **fields)


def reported(run: int, step: int, value: float | None, **fields: Any) -> Event:
    return Reported(run=run, step=step, value=value, **fields)


def requeued(run: int, cause: str, **fields: Any) -> Event:
    return Requeued(run=run, ending=Ending.of(cause), **fields)


def finished(run: int, value: float, **fields: Any) -> Event:
    return Ended(run=run, ending=Ending.FINISHED, value=value, **fields)


def failed(run: int, cause: str, **fields: Any) -> Event:
    return Ended(run=run, ending=Ending.of(cause), **fields)
