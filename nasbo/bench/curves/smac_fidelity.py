"""SMAC's multi-fidelity facade (Hyperband and a random forest), through ask and tell."""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from typing import Any

from nasbo.bench.cell import design_of
from nasbo.bench.curves.clock import rungs_of
from nasbo.bench.curves.ledger import Ledger
from nasbo.bench.curves.members import Members
from nasbo.bench.problem import Problem
from nasbo.methods.optional import import_optional
from nasbo.methods.smac import Smac, _in_order
from nasbo.space.flat import to_flat


class SmacSearch:
    """One SMAC optimisation on one worker; a config's training continues where it stopped."""

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self._smac = import_optional("smac", "smac", "smac")
        self._runs = import_optional("smac.runhistory", "smac", "smac")
        self._kinds = import_optional("ConfigSpace", "smac", "smac")
        self.ledger = Ledger(problem, budget, seed)
        self._problem, self._budget, self._seed = problem, budget, seed
        self._members = Members(problem, self.ledger)

    def run(self) -> dict[str, Any]:
        """Train until the budget is spent or the pool is used up; returns
        columns of a cell's record.
        """
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            facade = self._facade(folder)
            while not self.ledger.is_spent and self._one(facade):
                pass
        return {"rounds": [], "sources": [], "fallbacks": {}}

    def _one(self, facade: Any) -> bool:
        """Ask, train and tell once; false if SMAC had nothing to train."""
        info = facade.ask()
        if info is None or (member := self._members.find(dict(info.config))) is None:
            return False
        value = self._members.train(*member, round(info.budget))
        # Divergence is told as SMAC treats a crash: the worst cost.
        cost = value if math.isfinite(value) else float("inf")
        facade.tell(info, self._runs.TrialValue(cost=cost), save=False)
        return True

    def _facade(self, folder: str) -> Any:
        smac, rungs, method = self._smac, rungs_of(self._problem), Smac(self._problem.space)
        space = method._config_space(self._seed)
        n_rungs = len(rungs.steps) - 1
        scenario = smac.Scenario(
            space,
            deterministic=True,
            n_trials=self._budget * rungs.full,
            # Slightly below, as SMAC rounds the number of rungs down.
            min_budget=rungs.full / rungs.eta**n_rungs * (1 - 1e-9),
            max_budget=rungs.full,
            output_directory=folder,
            seed=self._seed,
        )
        logging.getLogger("smac").setLevel(logging.ERROR)
        kind = smac.MultiFidelityFacade
        return kind(
            scenario,
            target_function=None,
            model=method._forest(scenario, self._budget * rungs.full),
            acquisition_maximizer=_in_order(kind.get_acquisition_maximizer(scenario)),
            initial_design=kind.get_initial_design(
                scenario, n_configs=0, additional_configs=self._design(space)
            ),
            intensifier=kind.get_intensifier(scenario, eta=rungs.eta),
            logging_level=False,
            overwrite=True,
        )

    def _design(self, space: Any) -> list[Any]:
        own = self._problem.space
        configs = [one.config for one in design_of(self._problem, self._seed)]
        flat = [to_flat(own.subspace_of(config), config) for config in configs]
        return [self._kinds.Configuration(space, values=values) for values in flat]
