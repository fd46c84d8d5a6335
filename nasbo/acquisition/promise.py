"""Batches of the largest acquisition over all subspaces, with a minimum share for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nasbo.acquisition.base import Acquisition
from nasbo.acquisition.choose import Avoided, Chooser, Found
from nasbo.space import Subspace
from nasbo.surrogates.base import Surrogate


@dataclass(frozen=True)
class ByPromise(Chooser):
    """Chooses one config after the other, each the best over all subspaces.

    The earlier configs of a batch are pending, so a promising subspace gets several configs of the
    batch for as long as it stays the most promising.

    Attributes:
        owed: indices of subspaces that get one config of the batch each, as far as its size allows.
    """

    owed: Sequence[int] = ()

    def find_more(
        self,
        acquisition: Acquisition,
        surrogate: Surrogate,
        avoided: Avoided,
        chosen: Sequence[Found],
        n: int,
    ) -> list[Found]:
        owed = self._still_owed(chosen)
        # Owed subspaces come last in the batch: until then each may be chosen on its own merit.
        if owed and n - len(chosen) <= len(owed):
            found = self.best_of(owed, acquisition, surrogate, avoided, 1)
            if found:
                return found
        subspaces = self.visited(acquisition, surrogate, 1)
        return self.best_of(subspaces, acquisition, surrogate, avoided, 1)

    def _still_owed(self, chosen: Sequence[Found]) -> list[Subspace]:
        served = {one.subspace.index for one in chosen}
        return [self.space.subspace(index) for index in self.owed if index not in served]
