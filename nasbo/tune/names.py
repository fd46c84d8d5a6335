"""A sweep comes in; the names under which Ray's dashboard shows it go out.

What Ray's public interface allows, measured with Ray 2.60 (``cluster/README.md`` has the table):
the class name of an actor and its ``repr`` as it is when the actor starts. Neither of them, nor
the title of the process, can be changed later, so a reused actor does not follow its trial.
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
    """A function as the class of the actors that run trials.

    Args:
        function: of a config.
        sweep: becomes the class of the actors.
        trainer: becomes their label; Ray calls their tasks ``trainer.train``.
        resources: of one trial, by name.
    """
    needs = {name: amount for name, amount in resources.items() if amount}

    def default_resource_request(cls: type, config: dict[str, Any]) -> Any:
        return tune.PlacementGroupFactory([needs])

    inner: dict[str, Any] = {"default_resource_request": classmethod(default_resource_request)}
    return type(sweep, (wrap_function(function, name=trainer),), inner)


def named_actor(kind: type, sweep: str, name: str) -> type:
    """A class of actors that shows as the sweep, its tasks as ``name.method``."""
    return type(sweep or kind.__name__, (kind,), {"__repr__": lambda self: name})
