"""Add-Tree Bayesian optimisation: one GP with a kernel per vertex of the tree, EI or UCB."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition import (
    MAX_VISITED_SUBSPACES,
    Acquisition,
    AddTreeUCB,
    Chooser,
    Found,
    Score,
)
from nasbo.acquisition.optimise import IsTaken, joined, maximise, score_rows
from nasbo.gp.kernels import KERNELS, KernelName
from nasbo.history.data import Data
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.methods.sequential import one_by_one
from nasbo.space import Parameter, Space, Subspace
from nasbo.space.neighbours import Values, complete, structural_neighbours
from nasbo.space.walk import ROOT, Key, child_keys
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]

ACQUISITIONS = ("ei", "ucb")
N_UNIFORM = 96
N_AROUND = 16
N_COMBINED = 400
"""Combinations of the vertices' rows that are tried before a path is given up."""
N_ALLOWED = 64
N_DRAWS = 2_000
"""Number of draws in search of ``N_ALLOWED`` configs inside the limits."""


class AddTree(SurrogateMethod):
    """Bayesian optimisation with the Add-Tree covariance (Ma and Blaschko, AISTATS 2020).

    With ``ei``, log-EI is maximised over whole paths. With ``ucb`` this is algorithm 2: mean +
    sqrt(beta_t) sd is maximised at each vertex separately, and the path with the largest sum is
    chosen. beta_t = 0.2 d log(2 t), where t is the number of results and d the number of parameters
    of the vertex, at least 1. The best path is found by dynamic programming from the leaves, so its
    cost does not depend on the number of subspaces. The earlier configs of a batch are pending for
    the later ones. EI is the default: a sum of the vertices' bounds counts the same uncertainty
    several times where vertices of a path cannot be told apart, and on Jenatton's function that
    keeps the search in one leaf.

    Args:
        space: what to search.
        seed: of all random numbers.
        acquisition: ``ei`` (log-EI over the paths) or ``ucb`` (algorithm 2).
        kernel: at the vertices, ``se`` as in the paper or ``matern``.
    """

    def __init__(
        self, space: Space, seed: int = 0, *, acquisition: str = "ei", kernel: str = "se"
    ) -> None:
        super().__init__(space, seed)
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_choice("kernel", kernel, KERNELS)
        self.acquisition = acquisition
        self.kernel = cast(KernelName, kernel)

    def make_surrogate(self, task: Task) -> AddTreeGP:
        return AddTreeGP(self.space, self.kernel)

    def make_acquisition(self) -> Acquisition:
        return AddTreeUCB() if self.acquisition == "ucb" else super().make_acquisition()

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        if self.acquisition == "ei":
            return super().choose(acquisition, surrogate, chooser, task)

        def best(model: AddTreeGP) -> Found | None:
            bounds = VertexBounds(model, chooser.data, task.rng)
            return best_path(bounds, chooser.avoided, task.rng)

        found = one_by_one(cast(AddTreeGP, surrogate), chooser.avoided, best)
        return list(itertools.islice(found, task.n)), {}


@dataclass(frozen=True)
class _Vertex:
    """Rows of a vertex' own parameters, shape (k, n_coordinates), best
    first, and their bounds (k,).
    """

    x: Array
    scores: Array


class VertexBounds(dict[Key, _Vertex]):
    """Maximised upper confidence bound of each vertex (lines 3 to 5 of
    algorithm 2), computed lazily.
    """

    def __init__(self, model: AddTreeGP, data: Data, rng: Generator) -> None:
        super().__init__()
        self.model = model
        self._seen, self._rng = data, rng

    def __missing__(self, key: Key) -> _Vertex:
        self[key] = vertex = self._maximise(key)
        return vertex

    def _bound(self, key: Key) -> Score:
        n_columns = len(self.model.space.vertices.get(key, ()))
        ucb = AddTreeUCB(n_dimensions=n_columns).prepare(self.model, self._seen)
        return lambda rows: ucb.score(*self.model.vertex_posterior(key, joined(rows)))

    def _maximise(self, key: Key) -> _Vertex:
        box, bound = Subspace(0, self.model.space.vertices.get(key, ()), {}), self._bound(key)
        if not box.n_free:
            only = np.zeros((1, 0))
            return _Vertex(only, *score_rows(bound, [(box, only)]))
        starts = [box.candidates(N_UNIFORM, self._rng)]
        for at in self._best(lambda home: key in home.path):
            row = self._seen.x[at][list(self._seen.subspaces[at].path[key])]
            starts.append(box.perturb(np.repeat(row[None], N_AROUND, 0), self._rng))
        (pool,) = maximise(bound, [(box, np.concatenate(starts))])
        different = np.sort(np.unique(pool.x, axis=0, return_index=True)[1])
        return _Vertex(pool.x[different], pool.scores[different])

    def allowed(self, subspace: Subspace) -> _Vertex:
        """Rows of a subspace inside the limits, largest sum of bounds
        first; empty without limits.
        """
        rows = self._draw_allowed(subspace)
        scores = np.zeros(len(rows))
        for key, columns in subspace.path.items():
            (some,) = score_rows(self._bound(key), [(subspace, rows[:, list(columns)])])
            scores += some
        order = np.argsort(-scores, kind="stable")
        return _Vertex(rows[order], scores[order])

    def _draw_allowed(self, subspace: Subspace) -> Array:
        """Rows inside the limits: first around the subspace's best configs, then uniform ones."""
        allows, rows = self._seen.allows, []
        if allows is not None:
            best = self._best(lambda home: home.index == subspace.index)
            near = [np.repeat(self._seen.x[at][None], N_AROUND, 0) for at in best]
            drawn = [subspace.perturb(some, self._rng) for some in near]
            drawn.append(subspace.candidates(N_DRAWS, self._rng))
            inside = (row for row in np.concatenate(drawn) if allows(subspace, row))
            rows = list(itertools.islice(inside, N_ALLOWED))
        return np.array(rows).reshape(len(rows), subspace.n_free)

    def _best(self, has: Callable[[Subspace], bool]) -> list[int]:
        """Indices of the three best configs of such subspaces."""
        order = np.argsort(-self._seen.scores, kind="stable")
        return [int(at) for at in order if has(self._seen.subspaces[at])][:3]


def best_path(bounds: VertexBounds, is_taken: IsTaken, rng: Generator) -> Found | None:
    """The untried config of the path with the largest sum of bounds (lines 6 to 9)."""
    subspaces = _candidate_subspaces(bounds, rng)
    subspaces.sort(key=lambda one: -sum(float(bounds[key].scores[0]) for key in one.path))
    found = (_best_config(bounds, subspace, is_taken) for subspace in subspaces)
    return next(filter(None, found), None)


def _best_config(bounds: VertexBounds, subspace: Subspace, is_taken: IsTaken) -> Found | None:
    """The untried config of a path with the largest sum of bounds, among the tried combinations."""
    combined = itertools.islice(_configs(bounds, subspace), N_COMBINED)
    first, score = next(combined)
    if not is_taken(subspace, first):
        return Found(subspace, first, score)
    allowed = bounds.allowed(subspace)
    whole = zip(allowed.x, map(float, allowed.scores), strict=True)
    tops = [
        next((Found(subspace, *one) for one in some if not is_taken(subspace, one[0])), None)
        for some in (combined, whole)
    ]
    return max((top for top in tops if top), key=lambda top: top.score, default=None)


def _configs(bounds: VertexBounds, subspace: Subspace) -> Iterator[tuple[Array, float]]:
    """Combinations of the vertices' rows, the one with the largest sum of bounds first."""
    path = subspace.path
    vertices = [bounds[key] for key in path]

    def entry(ranks: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return -sum(float(v.scores[r]) for v, r in zip(vertices, ranks, strict=True)), ranks

    heap = [entry((0,) * len(vertices))]
    met = {heap[0][1]}
    while heap:
        negative, ranks = heapq.heappop(heap)
        x = np.zeros(subspace.n_free)
        for columns, vertex, rank in zip(path.values(), vertices, ranks, strict=True):
            x[list(columns)] = vertex.x[rank]
        yield x, -negative
        for at, vertex in enumerate(vertices):
            after = (*ranks[:at], ranks[at] + 1, *ranks[at + 1 :])
            if after[at] < len(vertex.scores) and after not in met:
                met.add(after)
                heapq.heappush(heap, entry(after))


def _candidate_subspaces(bounds: VertexBounds, rng: Generator) -> list[Subspace]:
    """All subspaces, or the best one and its neighbours if there are too many to list."""
    space = bounds.model.space
    if space.n_subspaces <= MAX_VISITED_SUBSPACES:
        return list(space.subspaces())
    _, values = _BestBelow(bounds).group(space.parameters, ROOT)
    config = complete(space, values, rng)
    best = space.subspace_of(config)
    near = map(space.subspace_of, structural_neighbours(space, best, config, rng))
    return list({other.index: other for other in (best, *near)}.values())


class _BestBelow:
    """The largest sum of bounds from a vertex down, and the structural values that give it."""

    def __init__(self, bounds: VertexBounds) -> None:
        self._bounds = bounds
        self._known: dict[Key, tuple[float, Values]] = {}

    def group(self, group: Sequence[Parameter], key: Key) -> tuple[float, Values]:
        """For the parameters ``group`` that stand at vertex ``key``."""
        if key not in self._known:
            is_vertex = key != ROOT or ROOT in self._bounds.model.space.vertices
            total = float(self._bounds[key].scores[0]) if is_vertex else 0.0
            values: Values = {}
            for parameter in group:
                if parameter.is_structural:
                    levels = [self._level(parameter, at, key) for at in range(parameter.n_levels)]
                    score, below = max(levels, key=lambda one: one[0])
                    total, values = total + score, values | below
            self._known[key] = total, values
        return self._known[key]

    def _level(self, parameter: Parameter, level: int, key: Key) -> tuple[float, Values]:
        value = parameter.value_at(level)
        children = parameter.repeated or parameter.branch(value)
        values: Values = {(parameter.name, key[1]): value}
        total = 0.0
        for child in child_keys(parameter, level, key):
            score, below = self.group(children, child)
            total, values = total + score, values | below
        return total, values
