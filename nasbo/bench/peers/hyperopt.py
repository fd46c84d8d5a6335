"""TPE through the package hyperopt."""

from __future__ import annotations

import math
from typing import Any

from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.optional import import_optional
from nasbo.space import Config, Parameter, Space, Value
from nasbo.space.flat import FlatParameter, flat_name, flatten, to_flat
from nasbo.space.walk import Key

_TRIES = 20
_EDGE = 0.499
"""Integers are rounded draws: margin by which the range extends beyond both ends, so that the ends
are as likely as other values."""


class Hyperopt(Method):
    """TPE (Bergstra et al. 2011) in its authors' implementation, over nested ``hp.choice``.

    Each parameter is one node of hyperopt's graph, under all options in which it exists. The
    initial design replaces hyperopt's own random start. The trials are rebuilt from the history on
    every call. Running configs are known as running, which hyperopt treats as bad.

    Args:
        space: what to search.
        seed: of all random numbers.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._hyperopt = import_optional("hyperopt", "hyperopt", "bench")
        flat = flatten(space)
        self._parameters = {one.name: one.parameter for one in flat}
        self._domain = self._hyperopt.Domain(lambda config: 0.0, self._graph(flat))

    def propose(self, task: Task) -> list[Suggestion]:
        trials = self._trials(task)
        taken = task.taken.copy()
        chosen: list[Suggestion] = []
        for turn in range(_TRIES * task.n):
            (document,) = self._hyperopt.tpe.suggest(
                trials.new_trial_ids(1),
                self._domain,
                trials,
                (task.torch_seed + turn) % 2**31,
                n_startup_jobs=0,
                verbose=False,
            )
            config = self._config(document["misc"]["vals"])
            if config not in taken:
                taken.add(config)
                chosen.append(Suggestion(config))
            if len(chosen) == task.n:
                break
            # Marked as running, a repeated config steers hyperopt away from itself, too.
            self._insert(trials, config, None)
        return chosen

    def _trials(self, task: Task) -> Any:
        trials = self._hyperopt.Trials()
        for trial, score in task.rows:
            self._insert(trials, trial.config, -score)
        for config in task.pending:
            self._insert(trials, config, None)
        return trials

    def _insert(self, trials: Any, config: Config, loss: float | None) -> None:
        states = self._hyperopt
        flat = to_flat(self.space.subspace_of(config), config)
        known = {n: to_hyperopt(self._parameters[n], value) for n, value in flat.items()}
        (number,) = trials.new_trial_ids(1)
        names = self._domain.params
        misc = {
            "tid": number,
            "cmd": self._domain.cmd,
            "workdir": None,
            "idxs": {name: [number] if name in known else [] for name in names},
            "vals": {name: [known[name]] if name in known else [] for name in names},
        }
        result = {"status": states.STATUS_NEW}
        if loss is not None:
            result = {"status": states.STATUS_OK, "loss": loss}
        (document,) = trials.new_trial_docs([number], [None], [result], [misc])
        done, running = states.JOB_STATE_DONE, states.JOB_STATE_RUNNING
        document["state"] = running if loss is None else done
        trials.insert_trial_docs([document])
        trials.refresh()

    def _config(self, values: dict[str, list[float]]) -> Config:
        def decide(parameter: Parameter, key: Key) -> Value:
            (value,) = values[flat_name(parameter, key)]
            return from_hyperopt(parameter, float(value))

        return self.space.build_config(decide)

    def _graph(self, flat: list[FlatParameter]) -> dict[str, Any]:
        """Nodes by name. Children are built before their parents, which hold them as options."""
        nodes: dict[str, Any] = {}
        below: dict[str, list[FlatParameter]] = {}
        for one in reversed(flat):
            children = below.get(one.name, [])
            nodes[one.name] = self._node(one, children, nodes)
            below.setdefault(one.parent, []).append(one)
        return {one.name: nodes[one.name] for one in below.get("", [])}

    def _node(
        self, one: FlatParameter, children: list[FlatParameter], nodes: dict[str, Any]
    ) -> Any:
        hp, parameter = self._hyperopt.hp, one.parameter
        if parameter.is_structural or not parameter.is_ordered:
            options = [
                {"level": level}
                | {child.name: nodes[child.name] for child in children if level in child.levels}
                for level in range(parameter.n_levels)
            ]
            return hp.choice(one.name, options)
        low, high, log = parameter.flat_range
        if parameter.is_continuous:
            kind = hp.loguniform if log else hp.uniform
            scale = math.log if log else float
            return kind(one.name, scale(low), scale(high))
        low, high = int(low) - _EDGE, int(low) - _EDGE + parameter.n_levels - 1 + 2 * _EDGE
        if log:
            return hp.qloguniform(one.name, math.log(low), math.log(high), 1)
        return hp.quniform(one.name, low, high, 1)


def to_hyperopt(parameter: Parameter, number: int | float) -> int | float:
    """A flat value in hyperopt's form: the level of an ``hp.choice``, else the number."""
    is_choice = parameter.is_structural or not parameter.is_ordered
    return parameter.level_of(parameter.from_flat(number)) if is_choice else number


def from_hyperopt(parameter: Parameter, number: float) -> Value:
    """Inverse of ``to_hyperopt``: the parameter's value."""
    if parameter.is_structural or not parameter.is_ordered:
        return parameter.value_at(round(number))
    if parameter.is_continuous:
        return parameter.from_flat(number)
    low, high, _ = parameter.flat_range
    return parameter.from_flat(min(max(round(number), int(low)), int(high)))
