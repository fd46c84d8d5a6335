"""Board of verdicts: passes the driver's decisions to running trials.

A report returns only after the driver has handled it, so the verdict on it is on the board by then.
There is a board only if a stopping rule gives verdicts that a worker cannot know in advance.
"""

from __future__ import annotations

import logging
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nasbo.search import Verdict
from nasbo.tune.names import named_actor

logger = logging.getLogger(__name__)
PATIENCE_S = 10.0


class BoardActor:
    """Actor that holds verdicts until they are taken."""

    def __init__(self) -> None:
        self._posted: dict[str, Verdict] = {}

    def post(self, trial_id: str, verdict: Verdict) -> None:
        """Store a verdict for a Tune trial; another attempt has another id."""
        self._posted[trial_id] = verdict

    def take(self, trial_id: str) -> Verdict:
        """Remove and return the verdict for a trial; to go on if there is none."""
        return self._posted.pop(trial_id, Verdict.GO_ON)


class Board:
    """Handle of the board, for the driver and for workers.

    The actor reserves no CPU and runs on the driver's node. After a loss it restarts empty: trials
    go on, and later verdicts reach them.
    """

    def __init__(self, sweep: str) -> None:
        node = ray.get_runtime_context().get_node_id()
        kind = ray.remote(named_actor(BoardActor, sweep, "verdicts"))
        self._actor: Any = kind.options(
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
        ).remote()

    def post(self, trial_id: str, verdict: Verdict) -> None:
        """Post a verdict for a trial."""
        try:
            ray.get(self._actor.post.remote(trial_id, verdict), timeout=PATIENCE_S)
        except ray.exceptions.RayError as error:
            logger.warning("trial %s continues, the board cannot be reached: %s", trial_id, error)

    def take(self, trial_id: str) -> Verdict:
        """The verdict on a trial's report."""
        try:
            verdict: Verdict = ray.get(self._actor.take.remote(trial_id), timeout=PATIENCE_S)
        except ray.exceptions.RayError:
            return Verdict.GO_ON
        return verdict

    def close(self) -> None:
        """End the actor."""
        if ray.is_initialized():
            ray.kill(self._actor)
