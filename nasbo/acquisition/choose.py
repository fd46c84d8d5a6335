"""Choice of the next batch: the best config of each subspace, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.base import Acquisition, Score
from nasbo.acquisition.optimise import Effort, IsTaken, maximise, score_rows
from nasbo.acquisition.starts import Starts
from nasbo.acquisition.thompson import MAX_ROWS, Thompson
from nasbo.history.data import Data
from nasbo.space import Config, Space, Subspace
from nasbo.space.neighbours import structural_neighbours
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]

MAX_VISITED_SUBSPACES = 64
"""Largest number of subspaces that are all searched; of more, only a sample is."""
N_PROMISING = 8
"""Least number of sampled subspaces that are searched; ``MAX_PROMISING`` is the most."""
MAX_PROMISING = 16
N_RANDOM = 128
N_BEST = 4
N_NEIGHBOURS = 32
"""Structural neighbours that are scored around each of the ``N_BEST`` best configs."""
TWIN = 0.02


@dataclass(frozen=True)
class Found:
    """A config as a row of its subspace's unit cube, with its acquisition value."""

    subspace: Subspace
    x: Array
    score: float

    @property
    def config(self) -> Config:
        return self.subspace.decode(self.x)


class Avoided:
    """Configs not to suggest: known ones, and near-duplicates of pending or chosen ones.

    A near-twin lies in the same subspace and differs by less than ``TWIN`` of the range in every
    parameter: it is not worth a training of its own.

    Args:
        is_taken: whether a config must not be suggested for another reason.
        subspaces: of the configs that are running.
        x: their rows.
    """

    def __init__(
        self, is_taken: IsTaken, subspaces: Sequence[Subspace] = (), x: Sequence[Array] = ()
    ) -> None:
        self._is_taken = is_taken
        self._rows: dict[int, list[Array]] = {}
        for subspace, row in zip(subspaces, x, strict=True):
            self.add(subspace, row)

    def add(self, subspace: Subspace, x: Array) -> None:
        """Avoid one more, shape (n_free,)."""
        self._rows.setdefault(subspace.index, []).append(x)

    def copy(self) -> Avoided:
        """An independent object with the same content."""
        other = Avoided(self._is_taken)
        other._rows = {index: list(rows) for index, rows in self._rows.items()}
        return other

    def __call__(self, subspace: Subspace, x: Array) -> bool:
        rows = self._rows.get(subspace.index)
        is_twin = rows is not None and (np.abs(np.array(rows) - x) < TWIN).all(axis=1).any()
        return bool(is_twin) or self._is_taken(subspace, x)


@dataclass(frozen=True)
class Chooser:
    """Chooses a batch of configs under an acquisition.

    Attributes:
        space: where.
        data: what the surrogate has seen.
        rng: for all draws.
        avoided: what is not to be suggested.
        n_promising: so many subspaces are searched at least where they are sampled.
        starts: from how many rows each of so many subspaces is started.
    """

    space: Space
    data: Data
    rng: Generator
    avoided: Avoided
    n_promising: int = N_PROMISING
    starts: Callable[[int], Starts] = lambda n_subspaces: Starts()

    def choose(self, acquisition: Acquisition, surrogate: Surrogate, n: int) -> list[Found]:
        """The next ``n`` configs, all different; fewer only where no others were found.

        These are the best configs of each subspace, best first (TopB of algorithm 1 of the AttnBO
        paper); beyond one per subspace, the earlier ones count as running.
        """
        chosen: list[Found] = []
        avoided = self.avoided.copy()
        while len(chosen) < n:
            found = self.find_more(acquisition, surrogate, avoided, chosen, n)
            if not found:
                break
            chosen += found
            for one in found:
                avoided.add(one.subspace, one.x)
            if len(chosen) < n:
                surrogate = surrogate.with_pending(
                    [one.subspace for one in found], [one.x for one in found]
                )
        return chosen

    def find_more(
        self,
        acquisition: Acquisition,
        surrogate: Surrogate,
        avoided: Avoided,
        chosen: Sequence[Found],
        n: int,
    ) -> list[Found]:
        """Further configs of a batch, under a surrogate that has the chosen ones as pending.

        Args:
            acquisition: prepared.
            surrogate: fitted, with the chosen configs as pending.
            avoided: what is not to be suggested, with the chosen configs.
            chosen: the configs of the batch so far.
            n: size of the batch.

        Returns:
            At most ``n - len(chosen)`` configs, best first; none where no others were found.
        """
        n_left = n - len(chosen)
        subspaces = self.visited(acquisition, surrogate, n_left)
        return self.best_of(subspaces, acquisition, surrogate, avoided, n_left)

    def best_of(
        self,
        subspaces: Sequence[Subspace],
        acquisition: Acquisition,
        surrogate: Surrogate,
        avoided: Avoided,
        n: int,
    ) -> list[Found]:
        """The best config of each of the subspaces: the best ``n`` of them, best first."""
        if isinstance(acquisition, Thompson):
            return self._by_draws(acquisition, surrogate, subspaces, avoided, n)
        rows = self.starts(len(subspaces)).draw(subspaces, self.data, self.rng)
        starts = list(zip(subspaces, rows, strict=True))
        pools = maximise(acquisition.under(surrogate), starts, Effort(), is_taken=avoided)
        best = [(pool.subspace, pool.best_untaken(avoided)) for pool in pools]
        found = [Found(subspace, *one) for subspace, one in best if one is not None]
        return sorted(found, key=lambda one: -one.score)[:n]

    def _by_draws(
        self,
        acquisition: Thompson,
        surrogate: Surrogate,
        subspaces: Sequence[Subspace],
        avoided: Avoided,
        n: int,
    ) -> list[Found]:
        each = max(4, MAX_ROWS // (2 * len(subspaces)))
        starts = Starts(uniform=each, around_own_best=8, around_best=16, projected=1)
        drawn = zip(subspaces, starts.draw(subspaces, self.data, self.rng), strict=True)
        rows = [(s, row) for s, x in drawn for row in x if not avoided(s, row)]
        if not rows:
            return []
        return [Found(*one) for one in acquisition.choose(surrogate, rows, self.rng, n)]

    def visited(self, acquisition: Acquisition, surrogate: Surrogate, n: int) -> list[Subspace]:
        """The subspaces to search for ``n`` configs: all, or promising ones if there are many."""
        if not acquisition.is_sampled or self.space.n_subspaces <= MAX_VISITED_SUBSPACES:
            return list(self.space.subspaces())
        wanted = min(max(n, self.n_promising), MAX_PROMISING)
        return self._promising(acquisition.under(surrogate), wanted)

    def _promising(self, score: Score, n: int) -> list[Subspace]:
        """At most ``n`` different subspaces with the largest score found.

        The score is evaluated on configs of random subspaces and on structural neighbours of
        the best configs so far.
        """
        space, data, rng = self.space, self.data, self.rng
        configs = [space.sample(rng) for _ in range(N_RANDOM)]
        rows: list[tuple[Subspace, Array]] = []
        for at in np.argsort(-data.scores, kind="stable")[:N_BEST]:
            subspace, x = data.subspaces[at], data.x[at]
            rows.append((subspace, x[None]))
            near = list(structural_neighbours(space, subspace, subspace.decode(x), rng))
            configs += [near[other] for other in rng.permutation(len(near))[:N_NEIGHBOURS]]
        homes = [space.subspace_of(config) for config in configs]
        rows += [(s, s.encode(c)[None]) for s, c in zip(homes, configs, strict=True)]
        scores = np.concatenate(score_rows(score, rows))
        ranked = [rows[at][0] for at in np.argsort(-scores, kind="stable")]
        return list({subspace.index: subspace for subspace in ranked}.values())[:n]
