"""Ensemble of boosted and extremely randomised regression trees, fast for one row at a time.

Scikit-learn evaluates the trees of a forest one after the other, which takes 12 ms for 400 trees
and one row. Here all trees are descended in parallel, level by level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_TREES = 400


@dataclass(frozen=True)
class Forest:
    """The trees of a fitted forest, with their nodes in one array.

    A leaf is its own child on both sides, so that the descent may continue below it.

    Attributes:
        roots: first node of each tree, (trees,).
        features: column that a node tests, (nodes,).
        thresholds: largest values for which a row goes left, (nodes,).
        children: left and right child, (nodes, 2).
        values: predictions of the leaves, (nodes,).
        depth: depth of the deepest tree.
    """

    roots: NDArray[np.int64]
    features: NDArray[np.int64]
    thresholds: Array
    children: NDArray[np.int64]
    values: Array
    depth: int

    def predict(self, X: Array) -> Array:
        """Means over the trees, (n, d) to (n,)."""
        rounded = X.astype(np.float32)  # as scikit-learn does before comparisons
        rows = np.arange(len(X))[:, None]
        nodes = np.broadcast_to(self.roots, (len(X), len(self.roots)))
        for _ in range(self.depth):
            is_right = rounded[rows, self.features[nodes]] > self.thresholds[nodes]
            nodes = self.children[nodes, is_right.astype(np.int64)]
        means: Array = self.values[nodes].mean(1)
        return means


def flatten(trees: list[Any]) -> Forest:
    """The forest of fitted scikit-learn trees (their ``tree_`` objects)."""
    starts = np.cumsum([0, *[tree.node_count for tree in trees]])
    children = []
    for start, tree in zip(starts[:-1], trees, strict=True):
        both = np.stack([tree.children_left, tree.children_right], axis=1)
        own = np.arange(tree.node_count)[:, None]
        children.append(start + np.where(both < 0, own, both))
    return Forest(
        roots=starts[:-1],
        features=np.concatenate([np.maximum(tree.feature, 0) for tree in trees]),
        thresholds=np.concatenate([tree.threshold for tree in trees]),
        children=np.concatenate(children),
        values=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
        depth=max(tree.max_depth for tree in trees),
    )


@dataclass(frozen=True)
class Ensemble:
    """Mean of a boosted xgboost model and a forest."""

    boosted: Any
    forest: Forest

    def predict(self, X: Array) -> Array:
        """Predictions, (n, d) to (n,)."""
        boosted = np.asarray(self.boosted.predict(X), dtype=np.float64)
        means: Array = (boosted + self.forest.predict(X)) / 2
        return means


def fit_ensemble(X: Array, y: Array, seed: int) -> Ensemble:
    """Fit the ensemble to rows, shape (n, d), and values, shape (n,)."""
    from sklearn.ensemble import ExtraTreesRegressor
    from xgboost import XGBRegressor

    boosted = XGBRegressor(
        n_estimators=N_TREES,
        max_depth=4,
        learning_rate=0.03,
        subsample=0.7,
        colsample_bytree=0.5,
        min_child_weight=3,
        random_state=seed,
        n_jobs=1,
    )
    trees = ExtraTreesRegressor(
        N_TREES, min_samples_leaf=2, max_features=0.5, random_state=seed, n_jobs=1
    )
    boosted.fit(X, y)
    trees.fit(X, y)
    return Ensemble(boosted, flatten([one.tree_ for one in trees.estimators_]))
