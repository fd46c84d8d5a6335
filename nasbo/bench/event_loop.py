"""Measurement of how late Tune handles results during a slow fit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.random import RandomSearch
from nasbo.space import Space


class SlowMethod(Method):
    """Random search that busy-waits for a given time at each decision."""

    def __init__(self, space: Space, seed: int = 0, *, seconds: float = 10.0) -> None:
        super().__init__(space, seed)
        self._seconds = seconds

    def propose(self, task: Task) -> list[Suggestion]:
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            sum(range(10_000))
        return RandomSearch(self.space, self.seed).propose(task)


@dataclass(frozen=True)
class LoopDelay:
    """Delay of results during decisions."""

    n_results: int
    median_s: float
    worst_s: float
    fit_s: float


def measure_event_loop(fit_s: float = 10.0, period_s: float = 0.5) -> LoopDelay:
    """Run frequently reporting trials during long fits, on a local Ray."""
    import ray
    from ray import tune

    from nasbo.tune.searcher import NasboSearch

    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        ray.init(address="local", **quiet)

    class Watched(NasboSearch):
        delays: list[float] = []  # noqa: RUF012 - read after the run

        def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
            if self.driver.is_deciding:
                Watched.delays.append(time.time() - float(result["reported_at"]))
            super().on_trial_result(trial_id, result)

    def train(config: dict[str, Any]) -> None:
        end = time.time() + config["x"] * fit_s
        while time.time() < end:
            time.sleep(period_s)
            tune.report({"value": config["x"], "reported_at": time.time()})
        tune.report({"value": config["x"], "reported_at": time.time()})

    searcher = Watched(
        {"x": {"type": "float", "range": [0.3, 3]}},
        metric="value",
        mode="min",
        method="nasbo.bench.event_loop:SlowMethod",
        method_options={"seconds": fit_s},
        schedule="async",
    )
    tune.Tuner(
        tune.with_resources(train, {"CPU": 0.5}),
        tune_config=tune.TuneConfig(
            search_alg=searcher, num_samples=6, max_concurrent_trials=2, reuse_actors=True
        ),
        run_config=tune.RunConfig(verbose=0),
    ).fit()
    searcher.close()
    delays = sorted(Watched.delays)
    if not delays:
        raise RuntimeError("no result came while the method was thinking")
    return LoopDelay(len(delays), delays[len(delays) // 2], delays[-1], fit_s)
