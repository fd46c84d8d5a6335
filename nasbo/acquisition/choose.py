"""A fitted surrogate and the name of an acquisition come in; the next configs go out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.maximise import Found, IsTaken, Starts, maximise_per_subspace
from nasbo.acquisition.sampled import promising_subspaces
from nasbo.acquisition.thompson import thompson
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Observations, Surrogate

Array = NDArray[np.float64]
Acquisition = Literal["log_ei", "sampled_log_ei", "thompson"]

ACQUISITIONS: tuple[Acquisition, ...] = ("log_ei", "sampled_log_ei", "thompson")
MAX_VISITED_SUBSPACES = 64
"""Up to here EI is maximised in every subspace; above, in sampled ones."""
N_PROMISING = 8
_FULL_STARTS = 16


@dataclass
class Chooser:
    """Chooses configs under a surrogate.

    Attributes:
        space: where.
        observations: what the surrogate has seen.
        rng: for all draws.
        is_taken: whether a config must not be suggested.
    """

    space: Space
    observations: Observations
    rng: Generator
    is_taken: IsTaken

    def choose(self, surrogate: Surrogate, acquisition: Acquisition, n: int) -> list[Found]:
        """The next ``n`` configs, all different; fewer only where no others were found.

        With log-EI these are the best config of each subspace, best first (TopB of algorithm 1 of
        the AttnBO paper); beyond one per subspace, the earlier ones count as pending.
        """
        chosen: list[Found] = []
        seen: set[tuple[int, bytes]] = set()

        def is_taken(subspace: Subspace, x: Array) -> bool:
            return (subspace.index, x.tobytes()) in seen or self.is_taken(subspace, x)

        while len(chosen) < n:
            found = self._pass(surrogate, acquisition, n - len(chosen), is_taken)
            if not found:
                break
            chosen += found
            seen |= {(f.subspace.index, f.x.tobytes()) for f in found}
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
        return maximise_per_subspace(surrogate, subspaces, seen, rng, is_taken, starts)[:n]

    def _some_subspaces(self, surrogate: Surrogate, n: int) -> list[Subspace]:
        if self.space.n_subspaces <= MAX_VISITED_SUBSPACES:
            return list(self.space.subspaces())
        wanted = min(max(n, N_PROMISING), 2 * N_PROMISING)
        return promising_subspaces(surrogate, self.space, self.observations, self.rng, wanted)


def default_acquisition(space: Space) -> Acquisition:
    """log-EI in every subspace where they can all be visited, else in sampled ones."""
    return "log_ei" if space.n_subspaces <= MAX_VISITED_SUBSPACES else "sampled_log_ei"
