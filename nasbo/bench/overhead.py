"""Measurement of nasbo's overhead per trial: trivial trials in a sweep and under Tune alone."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nasbo.space import Config, load_space
from nasbo.sweeps.folder import SPACE_FILE, create_folder
from nasbo.sweeps.settings import Sweep

SPACE = """\
kind:
  type: choice
  range: [a, b]
  submodule:
    a: {x: {type: float, range: [0, 1]}}
    b: {y: {type: float, range: [0, 1]}, n: {type: int, range: [1, 9]}}
"""
SLOTS = 2


@dataclass(frozen=True)
class Overhead:
    """Wall-clock seconds per trivial trial, and growth of the driver's memory."""

    n_trials: int
    bare_s: float
    nasbo_s: float
    growth_mb: float

    @property
    def ratio(self) -> float:
        return self.nasbo_s / self.bare_s


def trivial(config: Config) -> float:
    """Trainer that does nothing."""
    return float(config["x"] if config["kind"] == "a" else config["y"])


def measure_overhead(n_trials: int = 1000) -> Overhead:
    """Run trivial trials on two slots: half of them under Tune, all as a
    sweep, then the other half.

    The runs under Tune alone have a random searcher on the same space, reused actors and no
    loggers. What remains is the overhead of Tune itself, which every sweep has.
    """
    with local_ray(), tempfile.TemporaryDirectory(prefix="nasbo-overhead-") as root:
        half = max(n_trials // 2, 1)
        before = _run_bare(half, Path(root) / "bare1")
        start_mb = _resident_mb()
        nasbo_s = _run_sweep(n_trials, Path(root))
        growth_mb = _resident_mb() - start_mb
        after = _run_bare(half, Path(root) / "bare2")
    return Overhead(n_trials, (before + after) / (2 * half), nasbo_s / n_trials, growth_mb)


@contextmanager
def local_ray() -> Iterator[None]:
    """A quiet Ray on this machine with two CPUs, unless one is connected."""
    import ray

    from nasbo.tune.cluster import quieten

    quieten()
    is_ours = not ray.is_initialized()
    if is_ours:
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        ray.init(address="local", num_cpus=SLOTS, **quiet)
    try:
        yield
    finally:
        if is_ours:
            ray.shutdown()


def _run_bare(n_trials: int, folder: Path) -> float:
    """Seconds that the trials take under Tune alone."""
    from ray import tune
    from ray.tune.search import Searcher

    class RandomSearcher(Searcher):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(metric="value", mode="min")
            self._space, self._rng = load_space(yaml.safe_load(SPACE)), np.random.default_rng(0)

        def suggest(self, trial_id: str) -> dict[str, Any]:
            return self._space.sample(self._rng)

        def on_trial_complete(self, trial_id: str, *_: Any, **__: Any) -> None:
            return

    def train(config: dict[str, Any]) -> None:
        tune.report({"value": trivial(config)})

    tuner = tune.Tuner(
        tune.with_resources(train, {"CPU": 1}),
        tune_config=tune.TuneConfig(
            search_alg=RandomSearcher(),
            num_samples=n_trials,
            max_concurrent_trials=SLOTS,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(folder), verbose=0),
    )
    begin = time.perf_counter()
    tuner.fit()
    return time.perf_counter() - begin


def _run_sweep(n_trials: int, root: Path) -> float:
    """Seconds that the trials take as a sweep, including the journal."""
    from nasbo.tune.run import run_sweep

    folder, sweep = small_sweep(root, "nasbo.bench.overhead:trivial", n_trials)
    begin = time.perf_counter()
    outcome = run_sweep(folder, sweep, load_space(root / SPACE_FILE))
    seconds = time.perf_counter() - begin
    if outcome.history.n_ended != n_trials:
        raise RuntimeError(f"the sweep ended early: {outcome.reason}")
    return seconds


def small_sweep(root: Path, trainer: str, n_trials: int, **settings: Any) -> tuple[Path, Sweep]:
    """A new sweep of random configs on a small space, and its folder below ``root``."""
    file = root / SPACE_FILE
    file.write_text(SPACE, encoding="utf-8")
    sweep = Sweep(
        space=str(file),
        trainer=trainer,
        method="random",
        trials=n_trials,
        slots=SLOTS,
        working_folder=os.getcwd(),
        **settings,
    )
    folder = root / "sweep"
    create_folder(folder, sweep)
    return folder, sweep


def _resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
