"""Board of verdicts: how a trial in a worker hears what the driver makes of its report.

A report returns only after the driver has handled it: what hangs on the board by then is the
answer. There is a board only where a rule gives verdicts that no worker can know beforehand.
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
    """Holds verdicts until they are taken; lives in a Ray actor."""

    def __init__(self) -> None:
        self._posted: dict[str, Verdict] = {}

    def post(self, trial_id: str, verdict: Verdict) -> None:
        """Hang up a verdict for a trial of Tune's: another attempt has another id."""
        self._posted[trial_id] = verdict

    def take(self, trial_id: str) -> Verdict:
        """Take down what hangs there for a trial; without anything it goes on."""
        return self._posted.pop(trial_id, Verdict.GO_ON)


class Board:
    """A handle of the board, for the driver and for workers.

    The actor reserves no CPU and stays on the driver's node. One that is lost comes back empty:
    trials go on, and later verdicts reach them.
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
        """Have a trial told not to go on."""
        try:
            ray.get(self._actor.post.remote(trial_id, verdict), timeout=PATIENCE_S)
        except ray.exceptions.RayError as error:
            logger.warning("trial %s goes on, the board cannot be reached: %s", trial_id, error)

    def take(self, trial_id: str) -> Verdict:
        """What a trial is told after its report."""
        try:
            verdict: Verdict = ray.get(self._actor.take.remote(trial_id), timeout=PATIENCE_S)
        except ray.exceptions.RayError:
            return Verdict.GO_ON
        return verdict

    def close(self) -> None:
        """End the actor."""
        if ray.is_initialized():
            ray.kill(self._actor)
