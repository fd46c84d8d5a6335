"""CASMOPOLITAN: local search in trust regions, with global restarts."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import torch
from numpy.typing import NDArray

from nasbo.acquisition import UCB, Avoided, Found, LogEI, Score
from nasbo.acquisition.optimise import IsTaken, Rows, maximise, score_rows
from nasbo.history.data import Data
from nasbo.methods.base import Method, Suggestion, Task, draw_anywhere
from nasbo.methods.estimates import estimate_tried
from nasbo.methods.modelled import avoided, describe
from nasbo.methods.options import check_count
from nasbo.methods.sequential import one_by_one
from nasbo.methods.trust_region import Rules, Run, TrustRegion, begin, count_choices, replay
from nasbo.space import Config, Space
from nasbo.space.neighbours import structural_neighbours
from nasbo.surrogates.mixed import MixedGP

Array = NDArray[np.float64]

SCORE = attrgetter("score")
N_SAMPLES = 128
N_NEIGHBOURS = 32
N_CLIMBS = 3
N_CLIMBED_SUBSPACES = 3
N_RESTART = 256
N_LAST = 2048
"""Draws in a region before it counts as having no untried config."""
LOWEST = -3.0
"""Lower clip of standardised scores of other runs when a run's model is conditioned on them."""
MIN_BESTS = 3
"""Number of ended runs from which the global GP's hyperparameters are fitted; before that
they are the prior means."""


class Casmopolitan(Method):
    """CASMOPOLITAN (Wan et al., ICML 2021), extended to trees.

    A GP with the mixed kernel is fitted to the present run. log-EI is maximised near the run's best
    config, in a Hamming ball of choices and a box of numbers, by alternating between one-change
    neighbours and gradient ascent. Integers are numbers that are rounded to their levels. The
    region grows after successes and shrinks after failures. When it is too small, or contains no
    untried config, a new run starts at the config of largest UCB under a global GP over the best
    configs of the ended runs. All of this is rebuilt from the history. On a tree the region spans
    the active parameters (see ``TrustRegion``).

    Departures from the authors' code: log-EI instead of augmented EI, standardised scores instead
    of a copula, and the radius of the choices ends below one change instead of at one.

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
        chosen: list[Suggestion] = []
        task = replace(task, taken=task.taken.copy())
        for suggestion in itertools.islice(self._suggestions(task, avoided(task)), task.n):
            task.taken.add(suggestion.config)
            chosen.append(suggestion)
        return chosen

    def _suggestions(self, task: Task, is_taken: Avoided) -> Iterator[Suggestion]:
        """Configs of the present run until its region has no more, then those of the next runs."""
        owners = [trial.info.get("run") for trial, _ in task.rows]
        runs = replay([score for _, score in task.rows], self.rules, owners)
        seen = task.data.take(runs[-1].rows)
        if len(seen):
            yield from self._of_run(runs, seen, task, is_taken)
            # The region has no untried config left: the next run begins, which its info notes.
            runs.append(begin(self.rules))
        while (centre := self._restart(runs, task, is_taken)) is not None:
            info: dict[str, float] = {"run": len(runs) - 1}
            yield Suggestion(centre, "model", dict(info))
            region = TrustRegion(self.space, centre, runs[-1].length, runs[-1].radius)
            yield from _drawn(region, task, is_taken, info)
            runs.append(begin(self.rules))

    def _of_run(
        self, runs: Sequence[Run], seen: Data, task: Task, is_taken: Avoided
    ) -> Iterator[Suggestion]:
        """Configs inside the region of the present run: random ones at first, then by log-EI."""
        best = int(np.argmax(seen.scores))
        home, size = seen.subspaces[best], (runs[-1].length, runs[-1].radius)
        centre = home.decode(seen.x[best])
        info = {"run": len(runs) - 1, "length": runs[-1].length, "radius": runs[-1].radius}
        if len(seen) < (2 if len(runs) == 1 else self.rules.n_start):
            yield from _drawn(TrustRegion(self.space, centre, *size), task, is_taken, info)
            return
        model = MixedGP(self.space)
        model.fit(seen)
        estimates = estimate_tried(_given_all(model, task), task)
        improvement = LogEI().prepare(model, seen)
        model = model.with_pending(*task.running)
        region = TrustRegion(self.space, centre, *size, model.box_weights(home))

        def best_under(model: MixedGP) -> Found | None:
            return _search(improvement.under(model), region, task, is_taken)

        for found in one_by_one(model, is_taken, best_under):
            yield describe(improvement, model, found, info | estimates)
            estimates = {}  # only the first suggestion carries the estimates

    def _restart(self, runs: Sequence[Run], task: Task, is_taken: Avoided) -> Config | None:
        """The untried config of largest UCB under the global GP; ``None`` if there is none."""
        model = self._global_model(runs, task.data)
        rows = [self.space.encode(self.space.sample(task.rng)) for _ in range(N_RESTART)]
        rows = [row for row in rows if not is_taken(*row)]
        if not rows:
            last = draw_anywhere(self.space, task.taken, task.rng)
            if last is None:
                return None
            rows = [self.space.encode(last)]
        with torch.no_grad():
            batches = [(subspace, torch.from_numpy(x[None])) for subspace, x in rows]
            mean, variance = model.posteriors(batches)
        subspace, x = rows[int(UCB().score(mean, variance).argmax())]
        is_taken.add(subspace, x)
        return subspace.decode(x)

    def _global_model(self, runs: Sequence[Run], observations: Data) -> MixedGP:
        """A GP over the best configs of the ended runs."""
        y = observations.scores
        bests = [max(run.rows, key=lambda at: float(y[at])) for run in runs[:-1] if run.rows]
        z = torch.from_numpy((y[bests] - y.mean()) / max(float(y.std()), 1e-12))
        some = observations.take(bests)
        model = MixedGP(self.space)
        model.theta = torch.tensor(model.priors.means, dtype=torch.float64)
        take_in = model.learn if len(bests) >= MIN_BESTS else model.condition
        take_in(list(some.subspaces), list(some.x), z)
        return model


def _given_all(model: MixedGP, task: Task) -> MixedGP:
    """The model of a run, with its hyperparameters and scale, conditioned on
    the results of all runs.

    Scores are clipped from below at ``LOWEST``: worse ones would distort a model whose run
    has not seen any like them.
    """
    data, whole = task.data, copy.copy(model)
    z = (data.scores - model.scale.mean) / model.scale.sd
    whole.condition(list(data.subspaces), list(data.x), torch.from_numpy(np.maximum(z, LOWEST)))
    return whole


def _drawn(
    region: TrustRegion, task: Task, is_taken: Avoided, info: dict[str, float]
) -> Iterator[Suggestion]:
    """Untried configs drawn inside a region."""
    for _ in range(N_LAST):
        subspace, x = region.space.encode(region.sample(task.rng))
        if not is_taken(subspace, x):
            is_taken.add(subspace, x)
            yield Suggestion(subspace.decode(x), "model", dict(info))


def _search(score: Score, region: TrustRegion, task: Task, is_taken: IsTaken) -> Found | None:
    """The untried config of the largest score in the region; ``None`` if there is none."""
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
    best = max(found, key=SCORE, default=None) or _best_untried(pools, scores, is_taken)
    if best is None:  # few configs are left or inside the limits: draw more
        pools = _candidates(region, task, N_LAST)
        best = _best_untried(pools, score_rows(score, pools), is_taken)
    return best


def _best_untried(pools: Rows, scores: Sequence[Array], is_taken: IsTaken) -> Found | None:
    rows = [
        Found(subspace, row, float(score))
        for (subspace, x), some in zip(pools, scores, strict=True)
        for row, score in zip(x, some, strict=True)
    ]
    rows = sorted(rows, key=SCORE)[::-1]
    return next((one for one in rows if not is_taken(one.subspace, one.x)), None)


def _candidates(region: TrustRegion, task: Task, n: int) -> Rows:
    """Distinct rows inside the region, by subspace: random ones, and structural neighbours."""
    space = region.space
    if space.n_subspaces == 1:
        return [(region.subspace, np.unique(region.rows(n, task.rng), axis=0))]
    configs = [region.sample(task.rng) for _ in range(n // 2)]
    if region.radius:
        near = list(structural_neighbours(space, region.subspace, region.config, task.rng))
        configs += [near[at] for at in task.rng.permutation(len(near))[:N_NEIGHBOURS]]
    pools = {region.subspace.index: (region.subspace, [region.rows(n // 2, task.rng)])}
    for config in configs:
        subspace, x = space.encode(config)
        pools.setdefault(subspace.index, (subspace, []))[1].append(x[None])
    rows = [(subspace, np.unique(np.concatenate(x), axis=0)) for subspace, x in pools.values()]
    inside = [(subspace, x[region.region(subspace).contains(x)]) for subspace, x in rows]
    return [(subspace, x) for subspace, x in inside if len(x)]
