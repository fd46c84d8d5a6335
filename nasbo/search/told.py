"""Validation of settings, trial numbers, values and endings given by users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nasbo.errors import NasboError, nearest, shorten
from nasbo.history import Ending, Objectives, Run, Rungs, Trial
from nasbo.history.events import Settings
from nasbo.methods import METHODS, Method, make_method
from nasbo.methods.registry import known_methods
from nasbo.space import Space


def rungs_note(rungs: Rungs | Sequence[int] | None) -> dict[str, Any]:
    """The note about rungs in the first line of the journal."""
    if rungs is None:
        return {}
    rungs = rungs if isinstance(rungs, Rungs) else Rungs(tuple(rungs))
    return {"rungs": rungs.to_json()}


def method_of(
    name: str, space: Space, seed: int, options: Mapping[str, Any], own: Iterable[str]
) -> Method:
    """A search's method; an unknown option may be a mistyped argument of the search itself.

    Args:
        name: of the method.
        space: what it searches.
        seed: of its random numbers.
        options: of the method.
        own: arguments of the search.
    """
    check_method(name)
    try:
        return make_method(name, space, seed, **options)
    except NasboError as error:
        near = [nearest(option, own) for option in options]
        if "has no option" not in str(error) or not any(near):
            raise
        listed = ", ".join(own)
        raise NasboError(f"{error}; arguments of the search: {listed}{''.join(near)}") from error


def check_method(name: str) -> None:
    """Raise for an unknown method, with the nearest known name."""
    if ":" not in name and name not in METHODS and name not in (known := known_methods()):
        listed = ", ".join(sorted(known))
        raise NasboError(f"unknown method {name!r}{nearest(name, known)}; known: {listed}")


def check_equal(before: Settings, now: Settings) -> None:
    """Raise if a journal was started with another method, seed, options, rungs or features."""
    for name in ("method", "seed", "options"):
        held, own = getattr(before, name), getattr(now, name)
        if held != own:
            raise NasboError(f"the journal was begun with {name}={held!r}, not {own!r}")
    if before.goal != now.goal and max(len(before.goal), len(now.goal)) > 1:
        if str(before.goal) == str(now.goal):
            raise NasboError(
                f"other objectives of {now.goal} were known before the training when the journal "
                "was begun: give the same features"
            )
        raise NasboError(f"the journal was begun with objectives {before.goal}, not {now.goal}")
    for name in ("rungs", "features"):
        held, own = before.notes.get(name), now.notes.get(name)
        if held != own:
            raise NasboError(f"the journal was begun with {name}={held!r}, not {own!r}")


def check_rungs(objectives: Objectives, rungs: object) -> None:
    """Raise for rungs with several objectives: rungs rank by the first one alone."""
    if rungs is not None and len(objectives) > 1:
        raise NasboError(
            f"rungs rank trials by one objective, got {objectives}: search several without rungs"
        )


def number_of(trial: Trial | Run | int) -> int:
    """The number of a trial or a run; a number is returned as it is."""
    if isinstance(trial, Trial):
        return trial.id
    if not isinstance(trial, Run | int):
        raise NasboError(f"a trial or its number is needed, got {shorten(trial)}")
    return trial.number if isinstance(trial, Run) else trial


def value_of(value: Any) -> float:
    """A value as a float; numeric text is refused."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise NasboError(f"a value must be a number, got {shorten(value)}") from error


def finite_value_of(value: Any) -> float:
    """A value from elsewhere, which cannot have diverged."""
    number = value_of(value)
    if not math.isfinite(number):
        raise NasboError(f"an observed value must be finite, got {number}")
    return number


def ending_of(value: float | None, error: str | None) -> tuple[Ending, float | None]:
    """The ending of a run, and its value if finite."""
    ending = Ending.FINISHED if error is None else Ending.of(error)
    if value is None and error is None:
        raise NasboError("tell needs a value or an error")
    number = None if value is None else value_of(value)
    if number is not None and not math.isfinite(number):
        return (Ending.DIVERGED if error is None else ending), None
    return ending, number
