"""Names of a sweep's actors and tasks in Ray's dashboard.

Ray's public interface allows (measured with Ray 2.60; ``cluster/README.md`` has the table): the
class name of an actor, and its ``repr`` when it starts. Neither of them, nor the process title, can
be changed later, so a reused actor keeps the name of its first trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray import tune
from ray.tune.trainable import wrap_function


def named_trainable(
    function: Callable[[dict[str, Any]], None],
    sweep: str,
    trainer: str,
    resources: Mapping[str, float],
) -> type[tune.Trainable]:
    """Make a trainable class, for the actors that run trials, of a function.

    Args:
        function: of a config.
        sweep: class name of the actors.
        trainer: label of the actors; Ray shows their tasks as ``trainer.train``.
        resources: of one trial, by name.
    """
    needs = {name: amount for name, amount in resources.items() if amount}

    def default_resource_request(cls: type, config: dict[str, Any]) -> Any:
        return tune.PlacementGroupFactory([needs])

    inner: dict[str, Any] = {"default_resource_request": classmethod(default_resource_request)}
    return type(sweep, (wrap_function(function, name=trainer),), inner)


def named_actor(kind: type, sweep: str, name: str) -> type:
    """Actor class that is shown under the sweep's name, with tasks ``name.method``."""
    return type(sweep or kind.__name__, (kind,), {"__repr__": lambda self: name})
