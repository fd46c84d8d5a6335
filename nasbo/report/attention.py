"""Attention maps of a sweep's method."""

from __future__ import annotations

import warnings
from typing import Any

from nasbo.errors import NasboError
from nasbo.history import View
from nasbo.methods import make_method
from nasbo.methods.explanation import MAX_MAPS, AttentionMap

__all__ = ["AttentionMap", "NoAttentionError", "attention_maps"]


class NoAttentionError(NasboError):
    """The surrogate has no attention map, or there is no result to draw one for."""


def attention_maps(
    history: View,
    method: str,
    options: dict[str, Any] | None = None,
    seed: int = 0,
    n_maps: int = MAX_MAPS,
) -> list[AttentionMap]:
    """Attention maps of the largest types of units, or of the best configs of the best subspaces.

    Args:
        history: with at least two results.
        method: the sweep's method.
        options: options of the method, which affect what attends.
        seed: seed of the sweep.
        n_maps: maximum number of maps; for subspaces at most ``MAX_MAPS``.

    Raises:
        NoAttentionError: there is no map; the message says why.
    """
    try:
        with warnings.catch_warnings():  # of torch, about what gpytorch does
            warnings.simplefilter("ignore", FutureWarning)
            made = make_method(method, history.space, seed, **(options or {}))
    except (NasboError, TypeError) as error:
        raise NoAttentionError(f"the method {method} cannot be had here: {error}") from error
    if not made.has_attention:
        raise NoAttentionError(f"the method {method} has no attention with these options")
    explanation = made.explain(history)
    if not explanation.maps:
        raise NoAttentionError(explanation.reason)
    return list(explanation.maps[:n_maps])
