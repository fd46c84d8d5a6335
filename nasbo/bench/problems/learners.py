"""Classifiers from configs: SVM, XGBoost, the choice of both (`cash`), and networks.

The first three are the spaces of the AttnBO paper, shipped as `svm`, `xgboost` and `cash`. Their
ranges are uniform over up to six decades, so that most of the range is flat on data of this size (a
penalty of 100 lets no tree split). `*_log` are the same spaces with those ranges on a log scale, as
is common practice. `mlp` is section 4.2 of Jenatton et al. (2017) in its topology with shared
parameters. Features are standardised for SVM and XGBoost (a linear booster needs it, trees are
invariant).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from nasbo.bench.problem import Config
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.parameters import Document, choice, integer, real
from nasbo.bench.problems.tuning import SKLEARN, XGBOOST, Family
from nasbo.space import Parameter, Space, load_space
from nasbo.space.kinds import Real

SVM_ITERATIONS = 10_000
MLP_EPOCHS = 40
MLP_LAYERS = 4


def svm(config: Config, n_features: int = 0) -> Any:
    """Support vector machine with a limited number of solver steps."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    options = {name: config[name] for name in ("gamma", "degree") if name in config}
    machine = SVC(C=config["C"], kernel=config["kernel"], max_iter=SVM_ITERATIONS, **options)
    return make_pipeline(StandardScaler(), machine)


def xgboost(config: Config, n_features: int = 0) -> Any:
    """Gradient boosting of trees or of a linear model, single-threaded."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    options = {name: value for name, value in config.items() if name != "algorithm"}
    # Exact splits are fastest for a few hundred rows. Coordinate descent is deterministic; the
    # default updater of linear models depends on the order of threads.
    is_linear = config["booster"] == "gblinear"
    options |= {"updater": "coord_descent"} if is_linear else {"tree_method": "exact"}
    return make_pipeline(StandardScaler(), XGBClassifier(n_jobs=1, random_state=0, **options))


def cash(config: Config, n_features: int = 0) -> Any:
    """The learner that the config chooses."""
    return {"svm": svm, "xgboost": xgboost}[config["algorithm"]](config)


def with_log_ranges(name: str) -> Space:
    """A shipped space with floats over three decades or more on a log scale."""
    space = load_space(name)
    return Space([_with_log(parameter) for parameter in space.parameters], f"{name} (log)")


def _with_log(parameter: Parameter) -> Parameter:
    branches = tuple(
        replace(branch, parameters=tuple(map(_with_log, branch.parameters)))
        for branch in parameter.branches
    )
    parameter = replace(parameter, branches=branches)
    if isinstance(parameter, Real) and 0 < 1000 * parameter.low <= parameter.high:
        return replace(parameter, log=True)
    return parameter


def mlp_space() -> Space:
    """Space of networks with one subspace per number of hidden layers, 0 to 4."""
    layers: Document = {"alpha": real(1e-6, 1e-1, log=True)}
    branches: Document = {0: dict(layers)}
    layers["activation"] = choice("identity", "logistic", "tanh", "relu")
    for at in range(1, MLP_LAYERS + 1):
        layers[f"units_{at}"] = integer(1, 30)
        branches[at] = dict(layers)
    return load_space(
        {
            "learning_rate": real(1e-5, 1e-1, log=True),
            "tolerance": real(1e-5, 1e-2, log=True),
            "normalisation": choice("unit rows", "largest", "standard", "none"),
            "n_layers": {**integer(0, MLP_LAYERS), "submodule": branches},
        }
    )


def mlp(config: Config, n_features: int = 0) -> Any:
    """Network trained by Adam for a limited number of epochs."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    scalers = {"unit rows": Normalizer, "largest": MaxAbsScaler, "standard": StandardScaler}
    network = MLPClassifier(
        hidden_layer_sizes=tuple(config[f"units_{i + 1}"] for i in range(config["n_layers"])),
        activation=config.get("activation", "identity"),
        alpha=config["alpha"],
        learning_rate_init=config["learning_rate"],
        tol=config["tolerance"],
        max_iter=MLP_EPOCHS,
        random_state=0,
    )
    kind = config["normalisation"]
    return make_pipeline(scalers[kind](), network) if kind in scalers else network


_BOTH = (SKLEARN, XGBOOST)
_AS_PUBLISHED = (
    Family("svm", "svm", partial(load_space, "svm"), svm, "SVM"),
    Family("xgboost", "xgboost", partial(load_space, "xgboost"), xgboost, "XGBoost", _BOTH),
    Family("cash", "cash", partial(load_space, "cash"), cash, "SVM or XGBoost", _BOTH),
)
FAMILIES = (
    *_AS_PUBLISHED,
    *(
        replace(family, name=f"{family.name}_log", space=partial(with_log_ranges, family.name))
        for family in _AS_PUBLISHED
    ),
    Family("mlp", "mlp", mlp_space, mlp, "a network of 0 to 4 layers"),
)
ENTRIES: dict[str, Entry] = {
    name: entry for family in FAMILIES for name, entry in family.entries().items()
}
