"""Sizes of NAS-Bench-201's cells, by their six operations.

A cell has four nodes; each edge from a node to a later one has an operation. An edge is live if a
path from the first to the last node goes along it: the others do not change what a network does.
"""

from __future__ import annotations

from collections.abc import Sequence

EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""The nodes of each edge, in the order of the operations."""
WEIGHTS = {"nor_conv_1x1": 1, "nor_conv_3x3": 9}
"""Weights of a convolution, in squares of the channels."""
LAST = 3


def sizes(operations: Sequence[str]) -> dict[str, float]:
    """What is known of a cell before it is trained.

    Returns:
        `params` and `live_params` (those of live edges), in squares of the channels; `layers`, the
        most convolutions one behind the other; `receptive_field`, the most that look around.
    """
    live = live_edges(operations)
    layers, field = [0] * (LAST + 1), [0] * (LAST + 1)
    for (start, end), operation, is_live in zip(EDGES, operations, live, strict=True):
        if is_live:
            layers[end] = max(layers[end], layers[start] + (operation in WEIGHTS))
            field[end] = max(field[end], field[start] + operation.endswith("3x3"))
    weights = [WEIGHTS.get(operation, 0) for operation in operations]
    return {
        "params": sum(weights),
        "live_params": sum(w for w, is_live in zip(weights, live, strict=True) if is_live),
        "layers": layers[LAST],
        "receptive_field": field[LAST],
    }


def live_edges(operations: Sequence[str]) -> list[bool]:
    """Which edges lie on a path from the first to the last node."""
    reached, leads = {0}, {LAST}
    edges = list(zip(EDGES, operations, strict=True))
    for (start, end), operation in edges:
        if operation != "none" and start in reached:
            reached.add(end)
    for (start, end), operation in reversed(edges):
        if operation != "none" and end in leads:
            leads.add(start)
    return [op != "none" and start in reached and end in leads for (start, end), op in edges]
