"""CASMOPOLITAN: a local search in trust regions with global restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from nasbo.acquisition import UCB, Avoided, Found, LogEI, Score
from nasbo.acquisition.optimise import IsTaken, maximise, score_rows
from nasbo.history.data import Data
from nasbo.methods.base import Method, Suggestion, Task, draw_anywhere
from nasbo.methods.modelled import avoided
from nasbo.methods.options import check_count
from nasbo.methods.trust_region import Rules, Run, TrustRegion, begin, count_choices, replay
from nasbo.space import Config, Space, Subspace
from nasbo.space.neighbours import structural_neighbours
from nasbo.surrogates.mixed import MixedGP

Array = NDArray[np.float64]
Place = tuple[Subspace, Array]

N_SAMPLES = 128
N_NEIGHBOURS = 32
N_CLIMBS = 3
N_CLIMBED_SUBSPACES = 3
N_RESTART = 256
N_LAST = 2048
"""So many configs are drawn in a region before it is said that it has no untried one."""
MIN_BESTS = 3
"""Ended runs that it takes to learn the global GP's hyperparameters; before, the prior's serve."""


class Casmopolitan(Method):
    """CASMOPOLITAN (Wan et al., ICML 2021), extended to trees.

    A GP with the mixed kernel learns from the present run; log-EI is maximised near its best
    config, in a Hamming ball of choices and a box of numbers, by taking turns between one-change
    neighbours and gradient ascent. Integers are numbers that snap to their levels. The region
    grows after successes, shrinks after failures, and when it is too small, or nothing untried is
    left inside, a new run begins, where a global GP over the best configs of the ended runs has its
    largest UCB. All of that is rebuilt from the history. On a tree the region goes over the active
    parameters (see ``TrustRegion``).

    Departures from the authors' code: log-EI instead of augmented EI, standardised scores instead
    of a copula, and a region of choices ends below one change instead of at one.

    Args:
        space: what to search.
        seed: of all random numbers.
        success_tolerance: successes in a row before the region grows.
        failure_tolerance: failures in a row before it shrinks.
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        success_tolerance: int = 3,
        failure_tolerance: int = 40,
    ) -> None:
        super().__init__(space, seed)
        check_count("success_tolerance", success_tolerance)
        check_count("failure_tolerance", failure_tolerance)
        self.rules = Rules(count_choices(space), success_tolerance, failure_tolerance)

    def propose(self, task: Task) -> list[Suggestion]:
        owners = [trial.info.get("run") for trial, _ in task.rows]
        runs = replay([score for _, score in task.rows], self.rules, owners)
        is_taken = avoided(task)
        chosen = self._of_run(runs, task, is_taken)
        while len(chosen) < task.n:
            # Nothing untried is left in the region: the next run begins, and says so in its info.
            runs = [*runs, begin(self.rules)]
            taken = task.taken.copy()
            taken.add(*(one.config for one in chosen))
            rest = replace(task, n=task.n - len(chosen), taken=taken)
            more = self._restart(runs, rest, is_taken)
            if not more:
                break
            chosen += more
        return chosen

    def _of_run(self, runs: Sequence[Run], task: Task, is_taken: Avoided) -> list[Suggestion]:
        """Configs of the present run, as many as its region has."""
        seen = task.data.take(runs[-1].rows)
        if len(seen) == 0:
            return self._restart(runs, task, is_taken)
        best = int(np.argmax(seen.scores))
        centre = seen.subspaces[best].decode(seen.x[best])
        region = TrustRegion(self.space, centre, runs[-1].length, runs[-1].radius)
        info = {"run": len(runs) - 1, "length": runs[-1].length, "radius": runs[-1].radius}
        if len(seen) < (2 if len(runs) == 1 else self.rules.n_start):
            return self._begin(region, task, is_taken, info)
        return self._continue(region, seen, task, is_taken, info)

    def _continue(
        self,
        region: TrustRegion,
        seen: Data,
        task: Task,
        is_taken: Avoided,
        info: dict[str, float],
    ) -> list[Suggestion]:
        """Configs of the largest log-EI inside the region; earlier ones count as pending."""
        model = MixedGP(self.space)
        model.fit(seen)
        improvement = LogEI().prepare(model, seen)
        model = model.with_pending(*task.running)
        region = region.weighted(model.box_weights(region.subspace))
        chosen: list[Suggestion] = []
        while len(chosen) < task.n:
            found = _search(improvement.under(model), region, task, is_taken)
            if found is None:
                break
            is_taken.add(found.subspace, found.x)
            model = model.with_pending([found.subspace], [found.x])
            chosen.append(Suggestion(found.config, "model", info | {"log_ei": found.score}))
        return chosen

    def _begin(
        self, region: TrustRegion, task: Task, is_taken: Avoided, info: dict[str, float]
    ) -> list[Suggestion]:
        """Configs drawn inside the region of a run that has just begun."""
        chosen: list[Suggestion] = []
        for _ in range(N_LAST):
            if len(chosen) == task.n:
                break
            subspace, x = _place(self.space, region.sample(task.rng))
            if not is_taken(subspace, x):
                is_taken.add(subspace, x)
                chosen.append(Suggestion(subspace.decode(x), "model", dict(info)))
        return chosen

    def _restart(self, runs: Sequence[Run], task: Task, is_taken: Avoided) -> list[Suggestion]:
        """The config of the largest UCB under the global GP, then some around it."""
        model = self._global_model(runs, task.data)
        places = [_place(self.space, self.space.sample(task.rng)) for _ in range(N_RESTART)]
        places = [place for place in places if not is_taken(*place)]
        if not places:
            last = draw_anywhere(self.space, task.taken, task.rng)
            if last is None:
                return []
            places = [_place(self.space, last)]
        with torch.no_grad():
            batches = [(s, torch.from_numpy(x[None])) for s, x in places]
            mean, variance = model.posteriors(batches)
        subspace, x = places[int(UCB().score(mean, variance).argmax())]
        is_taken.add(subspace, x)
        info: dict[str, float] = {"run": len(runs) - 1}
        first = Suggestion(subspace.decode(x), "model", dict(info))
        if task.n == 1:
            return [first]
        region = TrustRegion(self.space, first.config, runs[-1].length, runs[-1].radius)
        return [first, *self._begin(region, task, is_taken, info)][: task.n]

    def _global_model(self, runs: Sequence[Run], observations: Data) -> MixedGP:
        """A GP over the best config of every run that has ended."""
        y = observations.scores
        places = [max(run.rows, key=lambda at: float(y[at])) for run in runs[:-1] if run.rows]
        z = torch.from_numpy((y[places] - y.mean()) / max(float(y.std()), 1e-12))
        subspaces = [observations.subspaces[at] for at in places]
        x = [observations.x[at] for at in places]
        model = MixedGP(self.space)
        if len(places) >= MIN_BESTS:
            model.learn(subspaces, x, z)
            return model
        model.theta = torch.tensor(model.priors.means, dtype=torch.float64)
        model.condition(subspaces, x, z)
        return model


def _search(score: Score, region: TrustRegion, task: Task, is_taken: IsTaken) -> Found | None:
    """The untried config of the largest score in the region; ``None`` where none is left."""
    pools = _candidates(region, task, N_SAMPLES)
    scores = score_rows(score, pools)
    tops = sorted(range(len(pools)), key=lambda at: -float(scores[at].max()))[:N_CLIMBED_SUBSPACES]
    found = []
    for at in tops:
        subspace, x = pools[at]
        starts = x[np.argsort(-scores[at], kind="stable")[:N_CLIMBS]]
        if subspace.index == region.subspace.index:
            starts = np.concatenate([starts, subspace.encode(region.config)[None]])
        inside = [region.region(subspace)]
        (pool,) = maximise(score, [(subspace, starts)], regions=inside)
        one = pool.best_untaken(is_taken)
        found += [Found(subspace, *one)] if one is not None else []
    best = max(found, key=_score, default=None)
    best = best or _best_untried(pools, scores, is_taken)
    if best is None:  # hardly anything is left, or little is inside the limits: look closely
        pools = _candidates(region, task, N_LAST)
        best = _best_untried(pools, score_rows(score, pools), is_taken)
    return best


def _best_untried(
    pools: Sequence[Place], scores: Sequence[Array], is_taken: IsTaken
) -> Found | None:
    rows = [
        Found(subspace, row, float(score))
        for (subspace, x), some in zip(pools, scores, strict=True)
        for row, score in zip(x, some, strict=True)
    ]
    rows = sorted(rows, key=_score)[::-1]
    return next((one for one in rows if not is_taken(one.subspace, one.x)), None)


def _score(found: Found) -> float:
    return found.score


def _candidates(region: TrustRegion, task: Task, n: int) -> list[Place]:
    """Different rows inside the region by subspace: drawn ones, and structural neighbours."""
    space = region.space
    if space.n_subspaces == 1:
        return [(region.subspace, np.unique(region.rows(n, task.rng), axis=0))]
    configs = [region.sample(task.rng) for _ in range(n // 2)]
    if region.radius:
        near = list(structural_neighbours(space, region.subspace, region.config, task.rng))
        configs += [near[at] for at in task.rng.permutation(len(near))[:N_NEIGHBOURS]]
    pools = {region.subspace.index: (region.subspace, [region.rows(n // 2, task.rng)])}
    for config in configs:
        subspace, x = _place(space, config)
        pools.setdefault(subspace.index, (subspace, []))[1].append(x[None])
    places = [(subspace, np.unique(np.concatenate(x), axis=0)) for subspace, x in pools.values()]
    inside = [(subspace, x[region.region(subspace).contains(x)]) for subspace, x in places]
    return [(subspace, x) for subspace, x in inside if len(x)]


def _place(space: Space, config: Config) -> Place:
    subspace = space.subspace_of(config)
    return subspace, subspace.encode(config)
