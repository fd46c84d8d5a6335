"""SMAC (random forest and EI) through the package ``smac``."""

from __future__ import annotations

import logging
import tempfile
import warnings
from typing import Any

import numpy as np

from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.optional import import_optional
from nasbo.methods.recombined import TRIES, ask_untried
from nasbo.space import Config, Space
from nasbo.space.flat import FlatParameter, flatten, from_flat, to_flat

_SEED_OF_TRIALS = 0
"""The seed that SMAC gives every trial of a deterministic scenario."""


class Smac(Method):
    """SMAC (Hutter et al. 2011) by the package ``smac``, with its settings for tuning.

    The tree becomes a ConfigSpace with conditions; inactive parameters get SMAC's own imputation.
    The run history is rebuilt on every call, with running configs marked as running, so that they
    are not suggested again. If SMAC suggests only configs outside the limits, their values are
    recombined.

    Args:
        space: what to search.
        seed: of all random numbers.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._smac = import_optional("smac", "smac", "smac")
        self._runs = import_optional("smac.runhistory", "smac", "smac")
        self._forests = import_optional("smac.model.random_forest", "smac", "smac")
        self._kinds = import_optional("ConfigSpace", "smac", "smac")

    def propose(self, task: Task) -> list[Suggestion]:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            # SMAC averages an empty list of durations for its log.
            warnings.simplefilter("ignore", RuntimeWarning)
            facade = self._facade(task, folder)

            def ask() -> Config:
                return from_flat(self.space, dict(facade.ask().config))

            return ask_untried(self.space, task, ask)

    def _facade(self, task: Task, folder: str) -> Any:
        smac, space = self._smac, self._config_space(task.torch_seed)
        n_known = len(task.rows) + len(task.pending)
        scenario = smac.Scenario(
            space,
            deterministic=True,
            n_trials=n_known + TRIES * task.n + 1,
            output_directory=folder,
            seed=task.torch_seed,
        )
        # No initial design: the results so far are told instead.
        logging.getLogger("smac").setLevel(logging.ERROR)
        kind = smac.HyperparameterOptimizationFacade
        facade = kind(
            scenario,
            target_function=None,
            model=self._forest(scenario, n_known),
            acquisition_maximizer=_in_order(kind.get_acquisition_maximizer(scenario)),
            initial_design=kind.get_initial_design(scenario, n_configs=0),
            intensifier=kind.get_intensifier(scenario, max_config_calls=1),
            logging_level=False,
            overwrite=True,
        )
        for trial, score in task.rows:
            value = self._runs.TrialValue(cost=-score)
            facade.tell(self._trial(space, trial.config), value, save=False)
        for config in task.pending:
            facade.runhistory.add_running_trial(self._trial(space, config))
        return facade

    def _forest(self, scenario: Any, n: int) -> Any:
        """SMAC's forest for tuning, with at most ``n`` leaves in each tree.

        By default it allocates a million leaves and starts threads for every prediction: the same
        trees, at several times the cost.
        """
        return self._forests.RandomForest(
            scenario.configspace,
            log_y=True,
            n_trees=10,
            ratio_features=1.0,
            min_samples_split=2,
            min_samples_leaf=1,
            max_leaf_nodes=max(2, n),
            n_jobs=1,
            seed=scenario.seed,
        )

    def _trial(self, space: Any, config: Config) -> Any:
        values = to_flat(self.space.subspace_of(config), config)
        known = self._kinds.Configuration(space, values=values)
        return self._runs.TrialInfo(known, seed=_SEED_OF_TRIALS)

    def _config_space(self, seed: int) -> Any:
        space = self._kinds.ConfigurationSpace(seed=seed)
        flat = {one.name: one for one in flatten(self.space)}
        made = {name: self._hyperparameter(one) for name, one in flat.items()}
        conditions = []
        for name, one in flat.items():
            # To SMAC a parent of one level is a constant: its children exist wherever it does.
            while one.parent and flat[one.parent].parameter.n_levels == 1:
                one = flat[one.parent]
            if one.parent:
                parent = flat[one.parent].parameter
                values = [parent.to_flat(parent.value_at(level)) for level in one.levels]
                conditions.append(self._kinds.InCondition(made[name], made[one.parent], values))
        space.add(*made.values(), *conditions)
        return space

    def _hyperparameter(self, flat: FlatParameter) -> Any:
        kinds, parameter = self._kinds, flat.parameter
        low, high, log = parameter.flat_range
        if parameter.is_continuous:
            return kinds.Float(flat.name, (low, high), log=log)
        if parameter.n_levels == 1:
            return kinds.Constant(flat.name, int(low))
        if not parameter.is_ordered:
            return kinds.Categorical(flat.name, list(range(parameter.n_levels)))
        return kinds.Integer(flat.name, (int(low), int(high)), log=log)


def _in_order(maximizer: Any) -> Any:
    """SMAC's maximiser with a deterministic order of its local searches.

    SMAC takes their starts from a set of configs, whose order depends on Python's hash seed.
    """
    local = maximizer._local_search
    starts = local._get_init_points_from_previous_configs

    def ordered(*given: Any) -> list[Any]:
        return sorted(starts(*given), key=lambda config: np.nan_to_num(config.get_array()).tolist())

    local._get_init_points_from_previous_configs = ordered
    return maximizer
