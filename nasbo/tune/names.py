"""A sweep comes in; the names under which Ray's dashboard shows it go out.

What Ray's public interface allows, measured with Ray 2.60 (``cluster/README.md`` has the table):
the class name of an actor and its ``repr`` as it is when the actor starts. Neither of them, nor
the title of the process, can be changed later, so a reused actor does not follow its trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.trainable import wrap_function

from nasbo.sweep import Sweep


def sweep_name(folder: Path) -> str:
    """A sweep is called as its folder."""
    return folder.resolve().name


def job_metadata(folder: Path, sweep: Sweep, report_url: str = "") -> dict[str, str]:
    """What a sweep's job carries in Ray's list of jobs (``/api/jobs/``, ``ray job list``).

    Args:
        folder: of the sweep.
        sweep: its settings.
        report_url: of the live report, if it is served; else the command that serves it.
    """
    path = folder.resolve()
    return {
        "job_name": f"nasbo {path.name}",
        "sweep": path.name,
        "space": Path(sweep.space).stem,
        "method": sweep.method,
        "trainer": sweep.trainer,
        "folder": str(path),
        "report": report_url or f"nasbo report {path} --serve",
    }


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
