"""DEHB (differential evolution in Hyperband) of the package DEHB, through ask and tell."""

from __future__ import annotations

import importlib
import math
import tempfile
from types import ModuleType
from typing import Any

from nasbo.bench.curves.clock import rungs_of
from nasbo.bench.curves.ledger import Ledger
from nasbo.bench.curves.members import Members
from nasbo.bench.problem import Problem
from nasbo.errors import NasboError
from nasbo.methods.smac import Smac

_INSTALL = "pip install --no-deps DEHB loguru"
"""Without dependencies: they include a NumPy before 2, which is not needed."""


def import_dehb() -> ModuleType:
    """The package; raises ``NasboError`` if it is not installed."""
    try:
        return importlib.import_module("dehb")
    except ModuleNotFoundError as error:
        raise NasboError(f"'dehb+hb' needs the package 'DEHB': {_INSTALL}") from error


class DehbSearch:
    """DEHB optimisation on one worker, with DEHB's defaults and our first rung as least fidelity.

    It draws its own initial populations. Its brackets are those of Hyperband; a config's training
    continues where it stopped.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self._dehb = import_dehb()
        self.ledger = Ledger(problem, budget, seed)
        self._problem, self._seed = problem, seed

    def run(self) -> dict[str, Any]:
        """Train until the budget is spent or the pool is used up; returns columns of a record."""
        members = Members(self._problem, self.ledger)
        with tempfile.TemporaryDirectory() as folder:
            search = self._search(folder)
            while not self.ledger.is_spent:
                job = search.ask()
                member = members.find(dict(job["config"]))
                if member is None:
                    break
                value = members.train(*member, round(job["fidelity"]))
                # Divergence is told as a very bad value.
                fitness = value if math.isfinite(value) else 1e12
                search.tell(job, {"fitness": fitness, "cost": 1.0})
        return {"rounds": [], "sources": [], "fallbacks": {}}

    def _search(self, folder: str) -> Any:
        rungs = rungs_of(self._problem)
        return self._dehb.DEHB(
            cs=Smac(self._problem.space)._config_space(self._seed),
            # Slightly below, as the number of rungs is rounded down.
            min_fidelity=rungs.full / rungs.eta ** (len(rungs.steps) - 1) * (1 - 1e-9),
            max_fidelity=rungs.full,
            eta=rungs.eta,
            n_workers=1,
            seed=self._seed,
            output_path=folder,
            log_level="ERROR",
            save_freq=None,
        )
