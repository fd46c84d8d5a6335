"""Spaces of define-by-run objectives of Optuna, traced by running them."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from nasbo.errors import NasboError, SpaceError
from nasbo.interchange.distributions import PURPOSE, parameter_of
from nasbo.interchange.grow import Grown, grow
from nasbo.interchange.infer import infer
from nasbo.interchange.inner_names import inner_names
from nasbo.interchange.listing import Entry, within
from nasbo.interchange.packages import need
from nasbo.interchange.recording import Record, RecordingTrial
from nasbo.space import Parameter

FIRST_DRAWS = 200
MAX_DRAWS = 3_200
Objective = Callable[[Any], Any]


def trace(objective: Objective, source: str = "objective", max_draws: int = MAX_DRAWS) -> Grown:
    """The space of an objective that suggests its parameters as it runs.

    It is run with random values, the rarest ones first, 200 times and then twice as often until
    nothing new appears. An objective that reports a value is told to stop there.

    Args:
        objective: takes a trial of Optuna.
        source: what errors call it.
        max_draws: so often it is run at most.

    Raises:
        SpaceError: it suggests nothing, or what no config can hold.
    """
    record, failures = Record(np.random.default_rng(0)), Counter[str]()
    known: list[Entry] = []
    n_draws, is_settled = min(FIRST_DRAWS, max_draws), False
    while True:
        while len(record.configs) < n_draws:
            _run(objective, record, failures)
        if not record.distributions:
            told = f"; it raised {failures.most_common(1)[0][0]}" if failures else ""
            raise SpaceError(f"{source}: suggests no parameter{told}")
        found, losses = _entries(record, source)
        is_settled = found == known
        if is_settled or n_draws >= max_draws:
            break
        known, n_draws = found, min(2 * n_draws, max_draws)
    if not is_settled:
        losses.append(f"something new still appeared in the last of {n_draws} runs")
    losses += [f"{n} of {n_draws} runs broke off: {what}" for what, n in failures.most_common(3)]
    grown = grow(found, source)
    renamed = [f"{e.name!r} is {e.parameter.name!r}" for e in found if e.name != e.parameter.name]
    return Grown(grown.translation, (*losses, *grown.losses), (*renamed, *grown.notes))


def _run(objective: Objective, record: Record, failures: Counter[str]) -> None:
    pruned = need("optuna", PURPOSE, "optuna").TrialPruned
    trial = RecordingTrial(record, len(record.configs))
    try:
        objective(trial)
    except (NasboError, pruned) as error:
        if isinstance(error, NasboError):
            raise
    except Exception as error:  # what it needs beyond its parameters may be missing here
        failures[f"{type(error).__name__}: {error}"[:200]] += 1
    record.configs.append(trial.params)


def _entries(record: Record, source: str) -> tuple[list[Entry], list[str]]:
    """What the record so far says, and what a space cannot say of it."""
    parameters: dict[str, Parameter] = {}
    losses = [f"the range of {name!r} changes: it is all of them" for name in record.distributions
              if name in record.changing]  # fmt: skip
    for name, inner in inner_names(record.distributions).items():
        parameters[name], loss = parameter_of(inner, record.distributions[name])
        losses += [loss] if loss else []
    configs = [
        {name: code_of(parameters[name], value) for name, value in config.items()}
        for config in record.configs
    ]
    inferred = infer(configs, parameters)
    losses += [
        f"{name!r} exists in some runs only, and no parameter before it says in which: it exists "
        "in all of them"
        for name in inferred.unexplained
    ]
    entries = [Entry(name, one, inferred.exists[name]) for name, one in parameters.items()]
    return entries, losses


def code_of(parameter: Parameter, value: Any) -> float:
    """A value as conditions see it: its level, or itself."""
    known = within(parameter, value)
    return float(known) if parameter.is_continuous else parameter.level_of(known)  # type: ignore[arg-type]


def load_objective(path: str) -> Objective:
    """The function at ``module:function``, importable or in the working directory."""
    module, _, name = path.partition(":")
    if (root := os.getcwd()) not in sys.path:
        sys.path.insert(0, root)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a module of somebody else may raise anything
        raise SpaceError(f"{path}: {module!r} cannot be imported: {error}") from error
    function = getattr(found, name, None)
    if not callable(function):
        known = ", ".join(n for n, one in vars(found).items() if callable(one) and n[0] != "_")
        raise SpaceError(f"{path}: {module} has no function {name!r}; it has: {known or 'none'}")
    return function  # type: ignore[no-any-return]
