"""Attention maps of fitted surrogates.

The preset ``default`` of AttnBO has attention between units (branches, blocks of a network): one
map per type of unit, with what the surrogate learned from the history. The preset ``paper`` has an
encoder of tokens: one map per subspace, of the first block, mean of its heads, for the subspace's
best config (AttnBO paper, appendix D).
"""

from __future__ import annotations

import torch

from nasbo.gp.shared_units import SharedUnits
from nasbo.gp.units import Unit
from nasbo.history import View
from nasbo.methods.explanation import MAX_MAPS, AttentionMap
from nasbo.surrogates.attention import AttentionGP
from nasbo.surrogates.structured import StructuredGP


def unit_maps(surrogate: StructuredGP) -> list[AttentionMap]:
    """A map per type of units, the largest type first."""
    kernels = [kernel for kernel in surrogate.kernels if isinstance(kernel, SharedUnits)]
    kernels.sort(key=lambda kernel: -len(kernel.members))
    layout = surrogate.layout
    maps = []
    for kernel in kernels:
        relation, members = kernel.relation(surrogate.theta), kernel.members
        names = [column.name for column in layout.unit_columns(members[0])]
        title = f"{len(members)} units: {', '.join(names)}"
        labels = tuple(_unit_label(layout.units[unit]) for unit in members)
        weights = (relation / relation.sum(1, keepdims=True)).tolist()
        maps.append(AttentionMap(title, labels, weights, "units"))
    return maps


def token_maps(surrogate: AttentionGP, history: View) -> list[AttentionMap]:
    """A map for each of the ``MAX_MAPS`` best subspaces, the best one first."""
    maps = []
    for trial in history.best_per_subspace()[:MAX_MAPS]:
        subspace = history.subspace(trial)
        x = torch.from_numpy(subspace.encode(trial.config))
        weights = surrogate.attention_map(subspace, x).tolist()
        labels = tuple(one.label for one in subspace.coordinates)
        maps.append(AttentionMap(subspace.id, labels, weights, "trained encoder", trial))
    return maps


def _unit_label(unit: Unit) -> str:
    """Label of a unit: ``nums_block[2]``, the branch ``kernel=rbf``, or ``top`` for the root."""
    entry = f"[{unit.index}]" if unit.index else ""
    return unit.branch.replace("[]", entry, 1) or "top"
