"""Expected hypervolume improvement, with objectives that are known before a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.utils.multi_objective.box_decompositions.non_dominated import (
    FastNondominatedPartitioning,
)
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition.base import Acquisition, Pointwise, Score
from nasbo.acquisition.improvement import Moments, log_ei
from nasbo.history.data import Data
from nasbo.history.front import on_front
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate
from nasbo.surrogates.several import SeveralSurrogates

Array = NDArray[np.float64]
Known = Callable[[Subspace, Array], Array]
"""Scores of the known objectives of rows: shape (n, k), for rows of shape (n, n_free)."""

LEAST = 1e-30
"""Least expected improvement, of which the logarithm is taken."""
NO_SPREAD = 1e-6
"""Standard deviation of a known objective beside several trained ones, relative to its range."""


@dataclass(frozen=True)
class Pieces:
    """The known axes cut at a front: cells, and the score to improve upon in each.

    Attributes:
        cuts: ends of the cells along each known axis, ascending, from the reference point on,
            shape (n_cuts,) each; the last cell has no end.
        levels: the largest score of the front that a new row does not yet improve upon, by cell,
            shape (n_cuts, ...).
    """

    cuts: tuple[Tensor, ...]
    levels: Tensor

    @staticmethod
    def of_front(scores: Array, worst: Array) -> Pieces:
        """The pieces of a front.

        Args:
            scores: of the front's rows; column 0 is trained, the others are known, shape (n, m).
            worst: the reference point, shape (m,).
        """
        inside = scores[(scores > worst).all(1)]
        cuts = [
            np.unique([low, *column])
            for low, column in zip(worst[1:], inside[:, 1:].T, strict=True)
        ]
        levels = np.full([len(cut) for cut in cuts], worst[0])
        for row in inside:
            below = tuple(
                slice(0, int(np.searchsorted(cut, x))) for cut, x in zip(cuts, row[1:], strict=True)
            )
            levels[below] = np.maximum(levels[below], row[0])
        return Pieces(tuple(map(torch.from_numpy, cuts)), torch.from_numpy(levels))

    def sizes(self, known: Tensor) -> Tensor:
        """Size of the part of each cell that rows dominate, shape (n, n_cells).

        Args:
            known: scores of the known objectives, shape (n, k).
        """
        sizes = known.new_ones(len(known), 1)
        for cut, score in zip(self.cuts, known.T, strict=True):
            ends = torch.cat([cut[1:], cut.new_full((1,), torch.inf)])
            along = (torch.minimum(score[:, None], ends) - cut).clamp_min(0.0)
            sizes = (sizes[:, :, None] * along[:, None, :]).flatten(1)
        return sizes


@dataclass
class KnownFrontEI(Pointwise):
    """Log of the expected hypervolume improvement, of rows whose other objectives are known.

    The improvement by a row with score f is the sum over the cells that it dominates of their size
    times max(f - level, 0), so its expectation is a sum of expected improvements. (Emmerich et al.
    2011 have the case of two normal variables.)

    Attributes:
        pieces: of the front.
        known: scores of the known objectives of the rows, shape (n, k).
    """

    pieces: Pieces
    known: Tensor

    name: ClassVar[str] = "log_ehvi"

    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        sizes, levels = self.pieces.sizes(self.known), self.pieces.levels.flatten()
        used = (sizes > 0).any(0)
        used[0] = True
        sizes, levels = sizes[:, used].expand(len(mean), -1), levels[used]
        shape = (len(mean), len(levels))
        each = log_ei(
            mean[:, None].expand(shape).flatten(),
            variance[:, None].expand(shape).flatten(),
            levels.expand(shape).flatten(),
        ).view(shape)
        return torch.logsumexp(each + sizes.clamp_min(LEAST).log(), 1)


@dataclass
class LogEHVI(Acquisition):
    """Logarithm of the expected hypervolume improvement over the front of posterior means.

    Exact for one trained objective; for several BoTorch's closed form for independent normal
    variables, in which a known objective has next to no variance. Pending configs are part of the
    front at their posterior means.

    Attributes:
        worst: scores of the reference point, shape (m,).
        trained, known: columns of scores.
        known_scores: of rows; the part of ``worst`` and of data in these columns is in its units.
        width: factor of the posterior standard deviations.
    """

    worst: Array
    trained: list[int]
    known: list[int]
    known_scores: Known
    width: float = 1.0
    _observed: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _lowest: Array = field(default_factory=lambda: np.zeros(0), repr=False)

    name: ClassVar[str] = "log_ehvi"
    is_sampled: ClassVar[bool] = True

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        assert isinstance(surrogate, SeveralSurrogates)
        parts = zip(surrogate.parts, self.trained, strict=True)
        lowest = [float(part.scale.from_score(self.worst[[at]])[0]) for part, at in parts]
        self._lowest = np.array([*lowest, *self.worst[self.known]])
        means = surrogate.all_observed_means(data).numpy()
        self._observed = np.concatenate([means, data.y[:, self.known]], 1)
        return self

    def under(self, surrogate: Surrogate) -> Score:
        assert isinstance(surrogate, SeveralSurrogates)
        front = self.front(surrogate)
        if len(self.trained) == 1:
            return self._exact(surrogate, Pieces.of_front(front, self._lowest))
        return self._by_botorch(surrogate, front)

    def front(self, surrogate: SeveralSurrogates) -> Array:
        """Scores of the front, trained objectives first, on the models' scales, shape (n, m)."""
        scores = self._observed
        if surrogate.pending:
            with torch.no_grad():
                means = surrogate.moments(surrogate.pending)[0].numpy()
            pending = np.concatenate([means, self._known_of(surrogate.pending).numpy()], 1)
            scores = np.concatenate([scores, pending])
        return scores[on_front(scores)]

    def _known_of(self, batches: Batches) -> Tensor:
        """Scores of the known objectives, shape (n, k); without gradients."""
        found = [
            self.known_scores(subspace, x.detach().numpy()) if self.known else np.zeros((len(x), 0))
            for subspace, x in batches
        ]
        return torch.from_numpy(np.concatenate(found))

    def _exact(self, surrogate: SeveralSurrogates, pieces: Pieces) -> Score:
        def score(batches: Batches) -> Tensor:
            mean, variance = surrogate.moments(batches)
            own = KnownFrontEI(pieces, self._known_of(batches))
            return own.score(mean[:, 0], self.width**2 * variance[:, 0])

        return score

    def _by_botorch(self, surrogate: SeveralSurrogates, front: Array) -> Score:
        reach = np.maximum(front.max(0) - self._lowest, 1e-9)
        spread = torch.from_numpy(NO_SPREAD * reach[len(self.trained) :])
        reference = torch.from_numpy(self._lowest)
        inside = torch.from_numpy(front[(front > self._lowest).all(1)])
        partitioning = FastNondominatedPartitioning(reference, inside)
        exact = ExpectedHypervolumeImprovement(_Given(), self._lowest.tolist(), partitioning)

        def score(batches: Batches) -> Tensor:
            mean, variance = surrogate.moments(batches)
            known = self._known_of(batches)
            sd = torch.cat([self.width * variance.sqrt(), spread.expand(len(known), -1)], 1)
            moments = torch.cat([torch.cat([mean, known], 1), sd], 1)
            return exact(moments[:, None, :]).clamp_min(LEAST).log()

        return score


class _Given(Model):
    """Placeholder model: the posterior at ``X`` is normal with its first half as the mean, and its
    second half as the standard deviation.
    """

    num_outputs = 1

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> Posterior:
        mean, sd = X.chunk(2, -1)
        return Moments(mean, sd.square())
