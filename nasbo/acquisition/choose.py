"""A fitted surrogate and the name of an acquisition come in; the next configs go out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.maximise import Batch, Found, IsTaken, Starts, maximise_per_subspace
from nasbo.acquisition.sampled import promising_subspaces
from nasbo.acquisition.thompson import thompson
from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]
Acquisition = Literal["log_ei", "sampled_log_ei", "thompson"]

ACQUISITIONS: tuple[Acquisition, ...] = ("log_ei", "sampled_log_ei", "thompson")
MAX_VISITED_SUBSPACES = 64
"""Up to here EI is maximised in every subspace; above, in sampled ones."""
VISIT_EVERY = 4
"""A batch that cannot hold all subspaces may lock into a few; so often one goes to the others."""
N_PROMISING = 4
"""So many sampled subspaces are searched at least, and four times as many at most."""
_FULL_STARTS = 16


@dataclass
class Chooser:
    """Chooses configs under a surrogate.

    Attributes:
        space: where.
        observations: what the surrogate has seen.
        rng: for all draws.
        is_taken: whether a config must not be suggested.
        pending: subspaces of the running configs.
        pending_x: their places in the unit cube.
        visit_every: at every how many configs the least tried subspace comes first, where not all
            subspaces have room; 0 for never.
    """

    space: Space
    observations: Data
    rng: Generator
    is_taken: IsTaken
    pending: Sequence[Subspace] = ()
    pending_x: Sequence[Array] = ()
    visit_every: int = VISIT_EVERY

    def choose(self, surrogate: Surrogate, acquisition: Acquisition, n: int) -> list[Found]:
        """The next ``n`` configs, all different; fewer only where no others were found.

        With log-EI these are the best config of each subspace, best first (TopB of algorithm 1 of
        the AttnBO paper), but for a visit to the least tried subspace now and then; beyond one per
        subspace, the earlier ones count as pending.
        """
        chosen: list[Found] = []
        batch = Batch(self.is_taken, self.pending, self.pending_x)
        while len(chosen) < n:
            found = self._pass(surrogate, acquisition, n - len(chosen), batch)
            if not found:
                break
            chosen += found
            for one in found:
                batch.add(one.subspace, one.x)
            if len(chosen) < n:
                surrogate = surrogate.with_pending(
                    [f.subspace for f in found], [f.x for f in found]
                )
        return chosen

    def _pass(
        self, surrogate: Surrogate, acquisition: Acquisition, n: int, is_taken: IsTaken
    ) -> list[Found]:
        seen, rng = self.observations, self.rng
        if acquisition == "log_ei":
            subspaces = list(self.space.subspaces())
        else:
            subspaces = self._some_subspaces(surrogate, n)
        if acquisition == "thompson":
            return thompson(surrogate, subspaces, seen, rng, is_taken, n)
        starts = Starts(uniform=max(12, 96 * _FULL_STARTS // max(len(subspaces), _FULL_STARTS)))
        found = maximise_per_subspace(surrogate, subspaces, seen, rng, is_taken, starts)
        if acquisition == "log_ei" and n < len(found) and self.visit_every:
            found = self._visit(found, n)
        return found[:n]

    def _visit(self, found: list[Found], n: int) -> list[Found]:
        """If one of the next ``n`` is due for it, the least tried subspace comes first."""
        tried = Counter(s.index for s in (*self.observations.subspaces, *self.pending))
        if -tried.total() % self.visit_every >= n:
            return found
        least = min(found, key=lambda one: tried[one.subspace.index])
        rest = [one for one in found if one is not least]
        return [replace(least, is_visit=True), *rest]

    def _some_subspaces(self, surrogate: Surrogate, n: int) -> list[Subspace]:
        if self.space.n_subspaces <= MAX_VISITED_SUBSPACES:
            return list(self.space.subspaces())
        wanted = min(max(n, N_PROMISING), 4 * N_PROMISING)
        return promising_subspaces(surrogate, self.space, self.observations, self.rng, wanted)


def default_acquisition(space: Space) -> Acquisition:
    """log-EI in every subspace where they can all be visited, else in sampled ones."""
    return "log_ei" if space.n_subspaces <= MAX_VISITED_SUBSPACES else "sampled_log_ei"
