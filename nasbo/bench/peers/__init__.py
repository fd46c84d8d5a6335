"""Registry of peers: methods of other packages behind nasbo's method interface.

They are for comparison, not for sweeps. `random`, `tpe` and `smac`, which are for both, are in
``nasbo.methods``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Peer:
    """A method behind a short name.

    Attributes:
        method: a name of ``nasbo.METHODS`` or ``module:Class``.
        summary: one line.
        options: options that the user's own override.
    """

    method: str
    summary: str
    options: dict[str, Any] = field(default_factory=dict)


PEERS: dict[str, Peer] = {
    "dehb": Peer("smac", "with ``+hb`` DEHB, differential evolution in Hyperband, on SMAC's space"),
    "hierarchical": Peer(
        "nasbo.bench.peers.hierarchical:HierarchicalGP",
        "BoTorch's HierarchicalConditionalKernelGP, log-EI in each subspace",
    ),
    "hyperopt": Peer(
        "nasbo.bench.peers.hyperopt:Hyperopt",
        "TPE of the package hyperopt, the tree as nested hp.choice",
    ),
    "optuna": Peer("tpe", "Optuna's TPE; with ``+sh`` its own pruner by successive halving"),
    "tpe-group": Peer(
        "tpe",
        "Optuna's TPE with multivariate=True, group=True",
        {"multivariate": True},
    ),
}

PACKAGES: dict[str, tuple[str, ...]] = {
    "nasbo.bench.peers.hierarchical:HierarchicalGP": ("botorch", "gpytorch"),
    "nasbo.bench.peers.hyperopt:Hyperopt": ("hyperopt",),
    "smac": ("smac", "ConfigSpace"),
    "tpe": ("optuna",),
}
"""Packages whose versions affect what a method suggests."""
