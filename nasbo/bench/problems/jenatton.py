"""Tree functions of Jenatton et al. (2017), section 4.1: balanced binary trees.

A leaf has a quadratic of its own variable in [-1, 1] and a constant. With shared variables, each of
the two subtrees below the root adds a variable in [0, 1] that all of its leaves share (the paper
counts 10 continuous variables on the large tree, 2 of them shared). In the paper's functions all
optima are at the centre or at 0, and the best leaf comes first. The shifted functions move each
leaf's optimum, permute the constants over the leaves, and have a quadratic in the shared variable.
The least value is always 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.parameters import Document, choice, real
from nasbo.space import load_space

SEED = 1001
"""The first seed from 1000 on for which the best leaf is not the first one in either tree."""
OPTIMUM = 0.1
VERSION = 2
SHIFTED_SHARED = 0.3


@dataclass(frozen=True)
class Tree:
    """A balanced tree whose decisions and leaves are numbered as a heap; x1 is the root.

    Attributes:
        n_decisions: number of decisions on a path from the root to a leaf.
        is_shared: whether the subtrees below the root have shared variables.
        is_shifted: whether optima are off-centre and leaves permuted.
    """

    n_decisions: int
    is_shared: bool = True
    is_shifted: bool = False

    @property
    def n_leaves(self) -> int:
        return int(2**self.n_decisions)

    def document(self) -> Document:
        """The space, with one subspace per leaf."""
        return self._below(1)

    def _below(self, node: int) -> Document:
        if node >= self.n_leaves:
            return {f"x{node}": real(-1, 1)}
        shared = {self.shared_name(node): real(0, 1)} if self._has_shared(node) else {}
        branches = {side: self._below(2 * node + side) for side in (0, 1)}
        return {**shared, f"x{node}": choice(0, 1, branches=branches)}

    def _has_shared(self, node: int) -> bool:
        return self.is_shared and node in (2, 3)

    def shared_name(self, node: int) -> str:
        """Name of the variable at node 2 or 3; the numbers follow those of the leaves."""
        return f"r{2 * self.n_leaves + node - 2}"

    def function(self) -> Callable[[Config], float]:
        """The objective."""
        centres, constants = self._leaves()

        def value(config: Config) -> float:
            node = 1
            for _ in range(self.n_decisions):
                node = 2 * node + int(config[f"x{node}"])
            leaf = node - self.n_leaves
            own = (float(config[f"x{node}"]) - centres[leaf]) ** 2 + constants[leaf]
            return float(own + self._shared_part(config))

        return value

    def _leaves(self) -> tuple[np.ndarray, np.ndarray]:
        """Optimum and constant of each leaf."""
        constants = OPTIMUM * np.arange(1, self.n_leaves + 1)
        if not self.is_shifted:
            return np.zeros(self.n_leaves), constants
        rng = np.random.default_rng(SEED)
        return rng.uniform(-0.6, 0.6, self.n_leaves), constants[rng.permutation(self.n_leaves)]

    def _shared_part(self, config: Config) -> float:
        if not self.is_shared:
            return 0.0
        shared = float(config[self.shared_name(2 + int(config["x1"]))])
        return 2 * (shared - SHIFTED_SHARED) ** 2 if self.is_shifted else shared


def _entry(name: str, tree: Tree, summary: str) -> Entry:
    def make() -> Problem:
        function = tree.function()
        space = load_space(tree.document())
        return Problem(
            name, space, lambda config, rng: function(config), optimum=OPTIMUM, version=VERSION
        )

    half: Half = "tuning" if tree.n_decisions == 2 else "held-out"
    return Entry(make, "jenatton", half, summary)


_SIZES = {"small": 2, "large": 3}
_KINDS = {
    "": ({}, "with shared variables, as published"),
    "_shifted": ({"is_shifted": True}, "with shared variables, optima off-centre, leaves mixed"),
    "_unshared": ({"is_shared": False}, "without shared variables, as published"),
}
ENTRIES: dict[str, Entry] = {
    f"jenatton_{size}{kind}": _entry(
        f"jenatton_{size}{kind}", Tree(n_decisions, **options), f"{size} balanced tree {words}"
    )
    for size, n_decisions in _SIZES.items()
    for kind, (options, words) in _KINDS.items()
}
