"""Sampler of Optuna that asks a method of nasbo."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import numpy as np

from nasbo.errors import NasboError
from nasbo.interchange.define_by_run import SeenSpace
from nasbo.interchange.replayed import SOURCE, Replay
from nasbo.methods.registry import check_method_options
from nasbo.search import Search

try:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ModuleNotFoundError as missing:
    hint = "pip install 'nasbo[optuna]'"
    raise NasboError(f"nasbo.optuna needs the package 'optuna': {hint}") from missing

__all__ = ["NasboSampler"]


class NasboSampler(BaseSampler):
    """Sampler that asks a method of nasbo, over the conditional space that a study shows.

    Which parameters exist under which values is inferred from the trials so far. What is known is
    chosen together, at the first suggestion of a trial; what is new is drawn at random once, and
    known from then on. Trials that run count as pending, pruned ones with their last value, and
    regions in which all trials fail are left out.

    Args:
        method: a name from ``nasbo.METHODS``.
        seed: the same seed and the same values give the same trials; ``None`` draws one.
        options: of the method, e.g. ``preset="paper"``.
    """

    def __init__(self, method: str = "attnbo", seed: int | None = None, **options: Any) -> None:
        check_method_options(method, options)
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            raise NasboError(f"seed must be an integer >= 0 or None, got {seed!r}")
        self._method, self._options = method, options
        self._seed = secrets.randbits(32) if seed is None else seed
        self._random = RandomSampler(self._seed % 2**32)
        self._study = ""
        self._replay: Replay | None = None
        self._explained: set[int] = set()
        self._proposed: dict[int, dict[str, Any]] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def reseed_rng(self) -> None:
        """Draw another seed: parallel workers must not choose the same."""
        self._seed = secrets.randbits(32)
        self._random.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters that trials have shown, with the widest of their ranges."""
        self._raise_error_if_multi_objective(study)
        with self._lock:
            replay = self._look(study)
        return {} if replay is None else replay.seen.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the next config; those that it does not have are left out."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            replay = self._look(study)
            found = {} if replay is None else self._ask(study, trial, replay)
            self._proposed[trial.number] = found
        return {name: value for name, value in found.items() if name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value, of a parameter that no trial has shown under the values so far."""
        self._raise_error_if_multi_objective(study)
        with self._lock:
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    def _look(self, study: Study) -> Replay | None:
        """The space of the study; inferred anew when a trial shows something new."""
        if study.study_name != self._study:
            self._study, self._replay = study.study_name, None
            self._explained, self._proposed = set(), {}
        trials = [one for one in study.get_trials(deepcopy=False) if _is_whole(one)]
        new = [one for one in trials if one.number not in self._explained]
        if self._replay is None or not all(map(self._replay.seen.explains, new)):
            seen = SeenSpace.of(trials)
            self._replay = None if seen is None else Replay(seen)
        self._explained.update(one.number for one in new)
        return self._replay

    def _ask(self, study: Study, trial: FrozenTrial, replay: Replay) -> dict[str, Any]:
        """What the method chooses for a trial; a random one where every config has been tried."""
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        running = {one.number for one in others if not one.state.is_finished()}
        self._proposed = {n: one for n, one in self._proposed.items() if n in running}
        seen = replay.seen
        seed = _mixed(self._seed, trial.number)
        search = Search(
            seen.space,
            self._method,
            "max" if study.direction == StudyDirection.MAXIMIZE else "min",
            seed,
            past=replay.events(others, self._proposed),
            **self._options,
        )
        suggestions, _ = search.decide(1)
        if not suggestions:
            return seen.params_of(seen.space.sample(np.random.default_rng(seed)))
        study._storage.set_trial_system_attr(trial._trial_id, SOURCE, suggestions[0].source)
        return seen.params_of(suggestions[0].config)


def _is_whole(trial: FrozenTrial) -> bool:
    """Whether a trial has suggested all that it would: one that failed may have broken off."""
    if trial.state == TrialState.PRUNED:
        return bool(trial.intermediate_values)
    return bool(trial.state == TrialState.COMPLETE)


def _mixed(seed: int, number: int) -> int:
    """A seed for each trial, also where several of them see the same results."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
