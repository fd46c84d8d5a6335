"""Base class of methods: initial design, fallbacks, and no repeated configs."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.feasibility import Region, failing_regions
from nasbo.features import Features
from nasbo.gp.known_values import KnownValues
from nasbo.history import PREDICTION, History, Source, Trial, View
from nasbo.history.data import Data
from nasbo.history.estimates import ESTIMATES
from nasbo.history.view import Curves
from nasbo.methods.exclusion import Excluded
from nasbo.methods.explanation import Explanation, Why
from nasbo.methods.fronts import LEAST_DESIGN, Front, front_of
from nasbo.space import Config, Space, Subspace

logger = logging.getLogger(__name__)

DESIGN_PER_SUBSPACE = 2
MAX_DESIGN_SUBSPACES = 16
"""Up to this number of subspaces each one gets ``DESIGN_PER_SUBSPACE`` design configs."""
MANY_SUBSPACES_DESIGN = 24
"""Size of the design for more subspaces: one config in each of a random sample of subspaces."""
NO_SURROGATE = "the method has no surrogate of all results"
_DRAWS = 100
_ENUMERABLE = 20_000
_FEW = 16
"""Subspaces that are searched for a last untried config if there are limits."""


@dataclass(frozen=True)
class Suggestion:
    """A config to try, its source, and what the method predicted for it.

    ``propose`` gives predictions (``PREDICTION``) and estimates (``ESTIMATES``) as scores; the
    journal holds them as values of the metric. ``expects_nothing`` in ``info`` means that the
    method expects no improvement from the config.
    """

    config: Config
    source: Source = "model"
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """Input of ``Method.propose``.

    Attributes:
        rows: (trial, score) in the order of the trial numbers, larger scores are better.
        pending: configs without a score: running ones, and failed ones of which nothing is known
            but that they were tried.
        taken: configs that must not be proposed: all that were suggested or observed, and those
            outside the limits of the search.
        n: how many configs are wanted.
        rng: random numbers of this call; they depend on the seed and the number of configs
            suggested.
        torch_seed: seed of the same call for torch.
        suggested: all trials that the search suggested, in any state, in the order of their
            numbers.
        curves: step and earlier values of each row; ``None`` without rungs.
        front: scores of several objectives; ``None`` with one.
    """

    space: Space
    rows: list[tuple[Trial, float]]
    pending: list[Config]
    taken: Excluded
    n: int
    rng: Generator
    torch_seed: int
    suggested: list[Trial] = field(default_factory=list)
    curves: Curves | None = None
    front: Front | None = None

    @classmethod
    def empty(cls, space: Space, seed: int) -> Task:
        """A task without results, from which a method can make an unfitted surrogate."""
        return cls(space, [], [], Excluded(), 1, np.random.default_rng(seed), seed)

    @cached_property
    def data(self) -> Data:
        """The rows and limits in the form that surrogates take."""
        allows = self.taken.allows
        inside = None if allows is None else lambda subspace, x: allows(subspace.decode(x))
        data = Data.of_trials(self.space, self.rows, inside)
        if self.front is not None:
            data = replace(data, y=self.front.scores)
        return data if self.curves is None else data.with_curves(*self.curves)

    @cached_property
    def running(self) -> tuple[list[Subspace], list[NDArray[np.float64]]]:
        """Subspaces of the pending configs, and their rows in the unit cube."""
        rows = [self.space.encode(config) for config in self.pending]
        return [subspace for subspace, _ in rows], [x for _, x in rows]


class Method(ABC):
    """Base class of search methods. A subclass implements ``propose``.

    A method keeps nothing that it cannot rebuild from the history.

    Attributes:
        limits: whether a config may be suggested at all; ``None`` where all may.
        features: numbers of configs that are known before their training; ``None`` for none.
        uses_features: whether the method learns from such numbers.
        takes_several: whether it can search several objectives.
        is_quick: whether it decides in an instant, so that it may run inside Tune's event loop
            without a process of its own.
        has_attention: whether ``explain`` can return attention maps.
    """

    limits: Callable[[Config], bool] | None = None
    features: Features | None = None
    uses_features: bool = False
    takes_several: bool = False
    _known: KnownValues | None = None
    is_quick: ClassVar[bool] = False
    has_attention: bool = False

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.seed = seed

    @abstractmethod
    def propose(self, task: Task) -> list[Suggestion]:
        """The method's own suggestions, best first. It is called with at least two rows."""

    def explain(self, history: View) -> Explanation:
        """What the method's model has learned from a history; without a
        model, the reason for that.
        """
        return Explanation(NO_SURROGATE)

    def why(self, history: View, trial: Trial) -> Why:
        """What the method's model predicts for a trial; without a model, the reason for that."""
        return Why(trial, NO_SURROGATE)

    def suggest(self, history: History, n: int) -> list[Suggestion]:
        """The next ``n`` configs: first the rest of the initial design, then the method's own.

        Regions in which every config fails are left out, except for occasional probes. Fewer than
        ``n`` configs are returned only when the space has no untried config left inside the limits.
        """
        rng = np.random.default_rng([self.seed, history.n_suggested])
        regions = failing_regions(history)
        taken = Excluded(history.keys, _outside(self.space, regions, self.limits))
        chosen = self._design(history, n, taken, rng)
        chosen += self._probes(history, regions, n - len(chosen), rng)
        taken.add(*(probe.config for probe in chosen))
        missing = n - len(chosen)
        if missing <= 0:
            return chosen
        rows = history.rows()
        told = {trial.id for trial, _ in rows}
        untold = [trial.config for trial in history.trials if trial.id not in told]
        pending = untold + [s.config for s in chosen]
        torch_seed = int(rng.integers(2**31))
        known = taken.copy()
        suggested = history.suggested
        curves = history.curves(rows)
        front = front_of(history, rows, self._known_values(history))
        task = Task(
            self.space, rows, pending, known, missing, rng, torch_seed, suggested, curves, front
        )
        reason = "fewer than two results so far"
        if len(rows) >= 2:
            proposed, reason = self._try_to_propose(task)
            fresh = islice(_fresh(proposed, taken), missing)
            chosen += [replace(one, info=_in_metric_units(one.info, history)) for one in fresh]
        chosen += self._fill(n - len(chosen), taken, rng, "fallback", reason)
        if regions and len(chosen) < n:  # nothing else is left
            taken = taken.with_limits(self.limits)
            chosen += self._fill(n - len(chosen), taken, rng, "fallback", "only failing regions")
        return chosen

    def _known_values(self, history: View) -> KnownValues | None:
        """The objectives that are known before a training; ``None`` if there are none."""
        known = self._known
        if self.features is None or not any(one.is_known for one in history.objectives):
            return None
        if known is None or known.objectives != tuple(o for o in history.objectives if o.is_known):
            self._known = KnownValues(self.features, history.objectives)
        return self._known

    def _probes(
        self, history: History, regions: list[Region], n: int, rng: Generator
    ) -> list[Suggestion]:
        """A config of each failing region that is due for a probe, at most ``n``."""
        taken = Excluded(history.keys, self.limits)
        due = [region for region in regions if region.next_probe <= len(history.rounds)]
        probes = []
        for region in due[: max(n, 0)]:
            home = region.failed[int(rng.integers(len(region.failed)))].subspace
            config = draw(self.space.subspace(home), taken, rng, region.contains)
            if config is not None:
                taken.add(config)
                probes.append(Suggestion(config, "probe", {"reason": f"probe of {region}"}))
        return probes

    def _try_to_propose(self, task: Task) -> tuple[list[Suggestion], str]:
        """Call ``propose``. A failure must not stop the search: it is logged
        and returned as a reason.
        """
        try:
            return self.propose(task), "the method proposed too few untried configs"
        except Exception as error:
            logger.warning("%s failed: falling back", type(self).__name__, exc_info=True)
            return [], f"{type(error).__name__}: {error}"[:300]

    def _design(
        self, history: History, n: int, taken: Excluded, rng: Generator
    ) -> list[Suggestion]:
        chosen: list[Suggestion] = []
        counts = history.design_counts()
        if self.space.n_subspaces > MAX_DESIGN_SUBSPACES:
            n = min(n, MANY_SUBSPACES_DESIGN - sum(counts.values()))
            return self._fill(n, taken, rng, "design", "")
        for subspace in open_design(self.space, counts):
            if len(chosen) == n:
                break
            config, info = draw(subspace, taken, rng), {}
            if config is None and taken.allows is not None:
                # No config of the subspace is inside the limits: take one from anywhere.
                config, info = draw_anywhere(self.space, taken, rng), {"instead_of": subspace.index}
            if config is not None:
                taken.add(config)
                chosen.append(Suggestion(config, "design", info))
        if len(history.objectives) > 1:
            n_more = LEAST_DESIGN - sum(counts.values()) - len(chosen)
            chosen += self._fill(min(n - len(chosen), n_more), taken, rng, "design", "")
        return chosen

    def _fill(
        self, n: int, taken: Excluded, rng: Generator, source: Source, reason: str
    ) -> list[Suggestion]:
        """Uniform untried configs, where the design or the method itself gave too few."""
        drawn = islice(draw_untried(self.space, taken, rng), max(n, 0))
        return [Suggestion(c, source, {"reason": reason} if reason else {}) for c in drawn]


def _in_metric_units(info: dict[str, Any], history: History) -> dict[str, Any]:
    """The info of a suggestion with its predictions as values of the metric instead of scores."""
    if trials := info.get(ESTIMATES, {}).get("trials"):
        means = {number: [history.score(mean), sd] for number, (mean, sd) in trials.items()}
        info = info | {ESTIMATES: info[ESTIMATES] | {"trials": means}}
    if not info.keys() >= set(PREDICTION):
        return info
    median, *ends = (history.score(info[key]) for key in PREDICTION)
    return info | dict(zip(PREDICTION, (median, *sorted(ends)), strict=True))


def _outside(
    space: Space, regions: list[Region], limits: Callable[[Config], bool] | None
) -> Callable[[Config], bool] | None:
    """Whether a config is inside the limits and outside of all failing regions."""
    if not regions:
        return limits

    def allows(config: Config) -> bool:
        subspace = space.subspace_of(config)
        if any(region.contains(subspace, config) for region in regions):
            return False
        return limits is None or limits(config)

    return allows


def design_size(space: Space, counts: Counter[int] | None = None, n_objectives: int = 1) -> int:
    """How many configs the initial design has, or has left behind those counted by subspace."""
    counts = counts or Counter()
    n_counted = sum(counts.values())
    if space.n_subspaces > MAX_DESIGN_SUBSPACES:
        return max(MANY_SUBSPACES_DESIGN - n_counted, 0)
    least = LEAST_DESIGN if n_objectives > 1 else 0
    return max(len(open_design(space, counts)), least - n_counted)


def draw(
    subspace: Subspace,
    taken: Excluded,
    rng: Generator,
    is_wanted: Callable[[Subspace, Config], bool] = lambda subspace, config: True,
) -> Config | None:
    """A uniform untried config of a subspace; ``None`` if none is found."""
    for _ in range(taken.n_draws(_DRAWS)):
        config = subspace.sample_config(rng)
        if config not in taken and is_wanted(subspace, config):
            return config
    if subspace.n_configs is None or subspace.n_configs > _ENUMERABLE:
        return None
    configs = (c for c in subspace.all_configs() if is_wanted(subspace, c))
    untried = [c for c in configs if c not in taken]
    return untried[int(rng.integers(len(untried)))] if untried else None


def draw_anywhere(space: Space, taken: Excluded, rng: Generator) -> Config | None:
    """An untried config: a uniform subspace, then uniform inside; ``None`` if none is found."""
    usual = _DRAWS if space.is_listable else 50 * _DRAWS
    for _ in range(taken.n_draws(usual, is_everywhere=True)):
        config = space.sample(rng)
        if config not in taken:
            return config
    if not space.is_listable:
        return None
    for index in rng.permutation(space.n_subspaces)[: _FEW if taken.allows else None]:
        untried = draw(space.subspace(int(index)), taken, rng)
        if untried is not None:
            return untried
    return None


def draw_untried(space: Space, taken: Excluded, rng: Generator) -> Iterator[Config]:
    """Configs from ``draw_anywhere``; each is added to ``taken``."""
    while (config := draw_anywhere(space, taken, rng)) is not None:
        taken.add(config)
        yield config


def open_design(space: Space, counts: Counter[int]) -> list[Subspace]:
    """The subspace of each design config that is still missing, in turns over the subspaces."""
    subspaces = list(space.subspaces())
    return [
        subspace
        for turn in range(DESIGN_PER_SUBSPACE)
        for subspace in subspaces
        if counts[subspace.index] <= turn < (subspace.n_configs or DESIGN_PER_SUBSPACE)
    ]


def _fresh(proposed: Iterable[Suggestion], taken: Excluded) -> Iterator[Suggestion]:
    """The suggestions of untried configs; each config is added to ``taken``."""
    for suggestion in proposed:
        if suggestion.config not in taken:
            taken.add(suggestion.config)
            yield suggestion
