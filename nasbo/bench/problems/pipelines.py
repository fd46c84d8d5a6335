"""Classification pipelines of scaler, reducer and estimator: 30 subspaces on a grid.

All parameters are choices or integers (exponents for log scales), so that the space is finite:
methods and seeds meet the same configs, and stored values are reused.
"""

from __future__ import annotations

import math
from typing import Any

from nasbo.bench.problem import Config
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.parameters import Document, choice, integer
from nasbo.bench.problems.tuning import Family
from nasbo.space import Space, load_space

SVM_ITERATIONS = 3_000
N_TREES = 30
N_EPOCHS = 40


def _forest_space() -> Document:
    return {
        "max_depth": integer(1, 10),
        "min_leaf": integer(1, 20),
        "tenths_of_features": integer(1, 10),
    }


def _estimator_spaces() -> Document:
    gamma = {"log2_gamma": integer(-12, 3)}
    kernels = {"rbf": gamma, "poly": gamma | {"degree": integer(2, 4)}}
    return {
        "svm": {
            "log2_c": integer(-10, 10),
            "kernel": choice("linear", "rbf", "poly", branches=kernels),
        },
        "logistic": {"log2_c": integer(-12, 10), "penalty": choice("l1", "l2")},
        "neighbours": {
            "k": integer(1, 40),
            "weights": choice("uniform", "distance"),
            "power": choice(1, 2),
        },
        "forest": _forest_space(),
        "extra_trees": _forest_space(),
        "boosting": {
            "log2_rate": integer(-7, 0),
            "leaves": integer(2, 32),
            "log2_penalty": integer(-10, 7),
            "max_depth": integer(1, 10),
        },
        "tree": {
            "max_depth": integer(1, 10),
            "min_leaf": integer(1, 20),
            "criterion": choice("gini", "entropy"),
        },
        "network": {
            "units": {"type": "powerint2", "range": [1, 7]},
            "log2_penalty": integer(-16, 3),
            "log2_rate": integer(-13, -2),
        },
    }


def pipeline_space() -> Space:
    """3 reducers × (3 kernels + 7 other estimators); the scaler has no parameters."""
    share = {"tenths": integer(1, 10)}
    estimators = _estimator_spaces()
    return load_space(
        {
            "scaler": choice("none", "standard", "range", "quantile"),
            "reducer": choice("none", "pca", "select", branches={"pca": share, "select": share}),
            "estimator": choice(*estimators, branches=estimators),
        }
    )


def pipeline(config: Config, n_features: int) -> Any:
    """The unfitted pipeline of a config."""
    from sklearn.pipeline import make_pipeline

    steps = (_scaler(config), _reducer(config, n_features), ESTIMATORS[config["estimator"]](config))
    return make_pipeline(*[step for step in steps if step is not None])


def _scaler(config: Config) -> Any:
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    if config["scaler"] == "quantile":
        return QuantileTransformer(n_quantiles=100, output_distribution="normal")
    return {"none": None, "standard": StandardScaler(), "range": MinMaxScaler()}[config["scaler"]]


def _reducer(config: Config, n_features: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest

    if config["reducer"] == "none":
        return None
    n_kept = math.ceil(config["tenths"] * n_features / 10)
    return PCA(n_kept) if config["reducer"] == "pca" else SelectKBest(k=n_kept)


def _svm(config: Config) -> Any:
    from sklearn.svm import SVC

    return SVC(
        C=2.0 ** config["log2_c"],
        kernel=config["kernel"],
        gamma=2.0 ** config.get("log2_gamma", 0),
        degree=config.get("degree", 3),
        max_iter=SVM_ITERATIONS,
    )


def _logistic(config: Config) -> Any:
    from sklearn.linear_model import LogisticRegression

    share = 1.0 if config["penalty"] == "l1" else 0.0
    return LogisticRegression(C=2.0 ** config["log2_c"], l1_ratio=share, solver="liblinear")


def _neighbours(config: Config) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(config["k"], weights=config["weights"], p=config["power"])


def _forest(config: Config) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    kinds = {"forest": RandomForestClassifier, "extra_trees": ExtraTreesClassifier}
    return kinds[config["estimator"]](
        N_TREES,
        max_depth=config["max_depth"],
        min_samples_leaf=config["min_leaf"],
        max_features=config["tenths_of_features"] / 10,
        random_state=0,
    )


def _boosting(config: Config) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=2.0 ** config["log2_rate"],
        max_iter=N_TREES,
        max_leaf_nodes=config["leaves"],
        l2_regularization=2.0 ** config["log2_penalty"],
        max_depth=config["max_depth"],
        early_stopping=False,
        random_state=0,
    )


def _tree(config: Config) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(
        max_depth=config["max_depth"],
        min_samples_leaf=config["min_leaf"],
        criterion=config["criterion"],
        random_state=0,
    )


def _network(config: Config) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        (config["units"],),
        alpha=2.0 ** config["log2_penalty"],
        learning_rate_init=2.0 ** config["log2_rate"],
        max_iter=N_EPOCHS,
        random_state=0,
    )


ESTIMATORS = {
    "svm": _svm,
    "logistic": _logistic,
    "neighbours": _neighbours,
    "forest": _forest,
    "extra_trees": _forest,
    "boosting": _boosting,
    "tree": _tree,
    "network": _network,
}
FAMILY = Family("pipeline", "pipeline", pipeline_space, pipeline, "scaler, reducer, estimator")
ENTRIES: dict[str, Entry] = FAMILY.entries()
