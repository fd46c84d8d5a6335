"""Method in a Ray actor, so that Tune's event loop never waits for a fit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nasbo.features import Features
from nasbo.history import History, Mode
from nasbo.history.events import Event
from nasbo.methods import Suggestion, make_method
from nasbo.search import Search
from nasbo.space import Config, Space
from nasbo.tune.names import named_actor

logger = logging.getLogger(__name__)
MAX_LOSSES = 3
PATIENCE_S = 2.0


@dataclass(frozen=True)
class MethodRecipe:
    """Everything needed to build the method in another process."""

    space: Space
    mode: Mode
    method: str
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    sweep: str = ""
    gpus: float = 0
    threads: int = 1
    limits: Callable[[Config], bool] | None = None
    features: Features | None = None


class MethodActor:
    """Actor that holds the method and its own copy of the history."""

    def __init__(self, recipe: MethodRecipe) -> None:
        self.history = History(recipe.space, recipe.mode)
        self.method = make_method(recipe.method, recipe.space, recipe.seed, **recipe.options)
        self.method.limits, self.method.features = recipe.limits, recipe.features

    def suggest(self, events: Sequence[Event], n: int) -> tuple[list[Suggestion], float]:
        """Apply the events since the last call, then decide on ``n`` configs."""
        for item in events:
            self.history.apply(item)
        begin = time.perf_counter()
        return self.method.suggest(self.history, n), time.perf_counter() - begin


class RemoteMethod:
    """The driver's handle of the actor; a lost actor is restarted.

    The actor reserves no CPU, so it takes no slot, and runs on the driver's node.
    """

    def __init__(self, recipe: MethodRecipe) -> None:
        self.recipe = recipe
        self.n_losses = 0
        self._actor: Any = None
        self._sent = 0
        self._answer: Any = None
        self._question: tuple[list[Event], int] | None = None

    @property
    def is_busy(self) -> bool:
        return self._answer is not None

    def ask(self, events: list[Event], n: int) -> None:
        """Start deciding on ``n`` configs after ``events`` (the whole journal so far)."""
        if self._actor is None:
            self._actor, self._sent = _start(self.recipe), 0
        self._question = (events, n)
        self._answer = self._actor.suggest.remote(events[self._sent :], n)
        self._sent = len(events)

    def answer(self, timeout_s: float = 0.0) -> tuple[list[Suggestion], float] | None:
        """The decision, if it is ready within ``timeout_s``; else ``None``.

        Raises:
            RuntimeError: the actor was lost ``MAX_LOSSES`` times in a row.
        """
        if self._answer is None or not ray.wait([self._answer], timeout=timeout_s)[0]:
            return None
        try:
            decided: tuple[list[Suggestion], float] = ray.get(self._answer)
        except ray.exceptions.RayError:
            self._lose()
            return None
        self._answer, self.n_losses = None, 0
        return decided

    def close(self) -> None:
        """End the actor."""
        if self._actor is not None and ray.is_initialized():
            ray.kill(self._actor)
        self._actor, self._answer = None, None

    def _lose(self) -> None:
        self.n_losses += 1
        question = self._question
        self.close()
        if self.n_losses >= MAX_LOSSES or question is None:
            raise RuntimeError(f"the method's process was lost {self.n_losses} times")
        logger.warning("the method's process was lost; starting it again", exc_info=True)
        self.ask(*question)


class RemoteDecider:
    """Decider with a method in a Ray actor; random configs if that is lost for good.

    Args:
        recipe: returns the method's recipe when the actor is needed.
        fallback: returns suggestions for a number of configs and a reason.
    """

    def __init__(
        self,
        recipe: Callable[[], MethodRecipe],
        fallback: Callable[[int, str], list[Suggestion]],
    ) -> None:
        self._recipe, self._fallback = recipe, fallback
        self._remote: RemoteMethod | None = None
        self._n = 0

    @property
    def is_busy(self) -> bool:
        return self._remote is not None and self._remote.is_busy

    def begin(self, search: Search, n: int) -> None:
        """Start deciding on ``n`` configs."""
        self._remote, self._n = self._remote or RemoteMethod(self._recipe()), n
        self._remote.ask(list(search.events), n)

    def fetch(self, is_idle: bool) -> tuple[list[Suggestion], float] | None:
        """The decision, if it is ready.

        If nothing runs, wait for it: otherwise Tune would sleep for a second.
        """
        assert self._remote is not None
        try:
            return self._remote.answer(PATIENCE_S if is_idle else 0.0)
        except RuntimeError as error:
            logger.warning("%s; suggesting at random", error)
            return self._fallback(self._n, str(error)), 0.0

    def close(self) -> None:
        """End the actor."""
        if self._remote is not None:
            self._remote.close()
            self._remote = None


def _start(recipe: MethodRecipe) -> Any:
    node = ray.get_runtime_context().get_node_id()
    threads = {"OMP_NUM_THREADS": str(recipe.threads)}
    return (
        ray.remote(named_actor(MethodActor, recipe.sweep, recipe.method))
        .options(
            num_cpus=0,
            num_gpus=recipe.gpus,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
            runtime_env={"env_vars": threads},
        )
        .remote(recipe)
    )
