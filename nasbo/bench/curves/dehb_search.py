"""DEHB (differential evolution in Hyperband) by its own package, through its ask and tell."""

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
"""With its dependencies it asks for a NumPy before 2, which it does not need."""


def import_dehb() -> ModuleType:
    """The package; raises ``NasboError`` where it is not installed."""
    try:
        return importlib.import_module("dehb")
    except ModuleNotFoundError as error:
        raise NasboError(f"'dehb+hb' needs the package 'DEHB': {_INSTALL}") from error


class DehbSearch:
    """One optimisation on one worker, with DEHB's defaults and our first rung as least fidelity.

    It draws its own initial populations. Its brackets are Hyperband's; a config goes on from where
    it stood.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self._dehb = import_dehb()
        self.ledger = Ledger(problem, budget, seed)
        self._problem, self._seed = problem, seed

    def run(self) -> dict[str, Any]:
        """Train until the budget is spent or the pool is used up; columns of a cell's record."""
        members = Members(self._problem, self.ledger)
        with tempfile.TemporaryDirectory() as folder:
            search = self._search(folder)
            while not self.ledger.is_spent:
                job = search.ask()
                member = members.find(dict(job["config"]))
                if member is None:
                    break
                value = members.train(*member, round(job["fidelity"]))
                # What has diverged counts as the worst that there is.
                fitness = value if math.isfinite(value) else 1e12
                search.tell(job, {"fitness": fitness, "cost": 1.0})
        return {"rounds": [], "sources": [], "fallbacks": {}}

    def _search(self, folder: str) -> Any:
        rungs = rungs_of(self._problem)
        return self._dehb.DEHB(
            cs=Smac(self._problem.space)._config_space(self._seed),
            # A little below, as the number of rungs is rounded down.
            min_fidelity=rungs.full / rungs.eta ** (len(rungs.steps) - 1) * (1 - 1e-9),
            max_fidelity=rungs.full,
            eta=rungs.eta,
            n_workers=1,
            seed=self._seed,
            output_path=folder,
            log_level="ERROR",
            save_freq=None,
        )
