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
from nasbo.bench.problem import Config, Problem
from nasbo.history import config_key
from nasbo.methods.optional import import_optional
from nasbo.methods.smac import Smac, _in_order
from nasbo.space.flat import from_flat, to_flat


class SmacSearch:
    """One SMAC optimisation on one worker; a config's training continues where it stopped.

    On a pool, a suggestion is replaced by the nearest unused config. SMAC is told its value under
    the suggested config, the only one that its brackets know.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self._smac = import_optional("smac", "smac", "smac")
        self._runs = import_optional("smac.runhistory", "smac", "smac")
        self._kinds = import_optional("ConfigSpace", "smac", "smac")
        self.ledger = Ledger(problem, budget, seed)
        self._problem, self._budget, self._seed = problem, budget, seed
        self._members: dict[str, tuple[int, Config]] = {}
        self._reached: dict[int, tuple[int, float]] = {}
        self._used: set[str] = set()
        self._now = 0

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
        if info is None or (member := self._member(info.config)) is None:
            return False
        value = self._train(*member, round(info.budget))
        # Divergence is told as SMAC treats a crash: the worst cost.
        cost = value if math.isfinite(value) else float("inf")
        facade.tell(info, self._runs.TrialValue(cost=cost), save=False)
        return True

    def _member(self, proposed: Any) -> tuple[int, Config] | None:
        """Number and config that stand for a config of SMAC."""
        config = from_flat(self._problem.space, dict(proposed))
        key = config_key(config)
        if key not in self._members:
            snap = self._problem.snap
            member = config if snap is None else snap(config, self._used)
            if member is None:
                return None
            self._used.add(config_key(member))
            self._members[key] = (len(self._members), member)
        return self._members[key]

    def _train(self, number: int, config: Config, until: int) -> float:
        """Continue the training of a config up to a step; returns its value there."""
        start, value = self._reached.get(number, (0, math.nan))
        for step in range(start + 1, until + 1):
            if self.ledger.is_spent:
                break
            self._now += 1
            value = self.ledger.train(number, config, step, self._now)
            self._reached[number] = (step, value)
        self.ledger.end(number, self._reached[number][0], value, self._now)
        return value

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
