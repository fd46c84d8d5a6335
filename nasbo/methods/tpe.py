"""Tree-structured Parzen estimators (TPE) through Optuna."""

from __future__ import annotations

import warnings
from typing import Any

from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.optional import import_optional
from nasbo.methods.options import check_switch
from nasbo.methods.recombined import ask_untried
from nasbo.space import Config, Parameter, Space, Value
from nasbo.space.flat import flat_name, flatten, to_flat
from nasbo.space.walk import Key


class Tpe(Method):
    """TPE (Bergstra et al. 2011) as Optuna has it, over the tree, parameter by parameter.

    The study is rebuilt from the history on every call. Running configs count as bad (constant
    liar). If TPE suggests only configs that are known or outside the limits, their values are
    recombined.

    Args:
        space: what to search.
        seed: of all random numbers.
        multivariate: whether the parameters of a config are modelled jointly, in groups that exist
            together, or each separately.
    """

    def __init__(self, space: Space, seed: int = 0, *, multivariate: bool = False) -> None:
        super().__init__(space, seed)
        check_switch("multivariate", multivariate)
        self.multivariate = multivariate
        self._optuna = import_optional("optuna", "tpe", "bench")
        self._distributions = {f.name: self._distribution(f.parameter) for f in flatten(space)}

    def propose(self, task: Task) -> list[Suggestion]:
        study = self._study(task)
        # A repeated config stays in the study as running, which steers the sampler away from it.
        return ask_untried(self.space, task, lambda: self._ask(study.ask()))

    def _study(self, task: Task) -> Any:
        optuna = self._optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=0,
                multivariate=self.multivariate,
                group=self.multivariate,
                constant_liar=True,
                seed=task.torch_seed,
            )
        study = optuna.create_study(sampler=sampler, direction="maximize")
        states = optuna.trial.TrialState
        for trial, score in task.rows:
            study.add_trial(self._frozen(trial.config, states.COMPLETE, score))
        for config in task.pending:
            study.add_trial(self._frozen(config, states.RUNNING, None))
        return study

    def _frozen(self, config: Config, state: Any, score: float | None) -> Any:
        params = to_flat(self.space.subspace_of(config), config)
        return self._optuna.trial.create_trial(
            state=state,
            value=score,
            params=params,
            distributions={name: self._distributions[name] for name in params},
        )

    def _ask(self, trial: Any) -> Config:
        def decide(parameter: Parameter, key: Key) -> Value:
            name = flat_name(parameter, key)
            low, high, log = parameter.flat_range
            if not parameter.is_ordered:
                number = trial.suggest_categorical(name, list(range(parameter.n_levels)))
            elif parameter.is_continuous:
                number = trial.suggest_float(name, low, high, log=log)
            else:
                number = trial.suggest_int(name, int(low), int(high), log=log)
            return parameter.from_flat(number)

        return self.space.build_config(decide)

    def _distribution(self, parameter: Parameter) -> Any:
        kinds, (low, high, log) = self._optuna.distributions, parameter.flat_range
        if not parameter.is_ordered:
            return kinds.CategoricalDistribution(list(range(parameter.n_levels)))
        if parameter.is_continuous:
            return kinds.FloatDistribution(low, high, log=log)
        return kinds.IntDistribution(int(low), int(high), log=log)
