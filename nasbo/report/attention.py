"""A history comes in; what the tokens of the best configs attend to goes out, per subspace.

The map is that of the encoder's first block, mean of its heads (AttnBO paper, appendix D). In the
preset ``paper`` the deep kernel is trained on the history first. The encoder of the preset
``default`` is never trained: its map shows the fixed features that ``attention=features`` adds to
the surrogate, and what the structure of the tokens alone gives otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.errors import NasboError
from nasbo.history import History, Trial

MAX_ROWS = 48
"""The paper's deep kernel is trained on so many rows at most: a picture should not take minutes."""
MAX_MAPS = 4


class NoAttentionError(NasboError):
    """A search whose surrogate has no attention map, or no result to draw it for."""


@dataclass(frozen=True)
class AttentionMap:
    """Attention among the tokens of one config.

    Attributes:
        trial: the best one of its subspace.
        labels: of the tokens, ``kernel_size[2]``.
        weights: row i is what token i attends to, (n_tokens, n_tokens); rows add up to 1.
        is_trained: whether the encoder has learned from the history.
    """

    trial: Trial
    labels: tuple[str, ...]
    weights: list[list[float]]
    is_trained: bool


def attention_maps(
    history: History,
    method: str,
    options: dict[str, Any] | None = None,
    seed: int = 0,
    n_maps: int = MAX_MAPS,
) -> list[AttentionMap]:
    """The maps of the best configs of the best subspaces.

    Args:
        history: with at least two results.
        method: the sweep's method and
        options: its options, which decide the encoder;
        seed: its seed.
        n_maps: how many subspaces.

    Raises:
        NoAttentionError: there is nothing to draw; the message says why.
    """
    if method != "attnbo":
        raise NoAttentionError(f"the method {method} has no attention")
    rows = history.rows()
    best = best_per_subspace(history)[:n_maps]
    if len(rows) < 2 or not best:
        raise NoAttentionError("fewer than two results so far")
    source, is_trained = _source(history, options or {}, seed)
    return [_map_of(history, trial, source, is_trained) for trial in best]


def best_per_subspace(history: History) -> list[Trial]:
    """The best trial of each subspace that has results, the best first."""
    found: dict[int, tuple[float, Trial]] = {}
    for trial in history.configs:
        if trial.state == "finished" and trial.value is not None:
            score = history.score(trial.value)
            if trial.subspace not in found or score > found[trial.subspace][0]:
                found[trial.subspace] = (score, trial)
    ordered = sorted(found.values(), key=lambda pair: (-pair[0], pair[1].id))
    return [trial for _, trial in ordered]


def _source(history: History, options: dict[str, Any], seed: int) -> tuple[Any, bool]:
    """What has ``attention_map``, and whether it was trained."""
    if options.get("attention", "on") in ("off", False):
        raise NoAttentionError("the sweep was run with attention=off")
    if options.get("preset", "default") != "paper":
        from nasbo.surrogates.encoder import FrozenEncoder

        parts = {key: options[key] for key in ("embedding", "pooling") if key in options}
        return FrozenEncoder(history.space, **parts), False
    from nasbo.methods.attnbo import AttnBO  # takes seconds to import

    surrogate = AttnBO(history.space, seed, **options).make_surrogate(seed)
    try:
        surrogate.fit(_observations(history))
    except ArithmeticError as error:
        raise NoAttentionError(f"the encoder could not be trained: {error}") from error
    return surrogate, True


def _observations(history: History) -> Any:
    import numpy as np

    from nasbo.surrogates.base import Observations

    rows = _thin(history.rows())
    subspaces = [history.subspace(trial) for trial, _ in rows]
    return Observations(
        space=history.space,
        subspaces=subspaces,
        x=[s.encode(trial.config) for s, (trial, _) in zip(subspaces, rows, strict=True)],
        y=np.array([score for _, score in rows], dtype=np.float64),
    )


def _thin(rows: Sequence[tuple[Trial, float]]) -> list[tuple[Trial, float]]:
    """The best half of what may stay and the others evenly, in the order of the trial numbers."""
    if len(rows) <= MAX_ROWS:
        return list(rows)
    ordered = sorted(rows, key=lambda row: (-row[1], row[0].id))
    best, rest = ordered[: MAX_ROWS // 2], ordered[MAX_ROWS // 2 :]
    n_rest = MAX_ROWS - len(best)
    chosen = [rest[place * len(rest) // n_rest] for place in range(n_rest)]
    return sorted(best + chosen, key=lambda row: row[0].id)


def _map_of(history: History, trial: Trial, source: Any, is_trained: bool) -> AttentionMap:
    from nasbo.surrogates.base import as_batches

    subspace = history.subspace(trial)
    ((_, x),) = as_batches([subspace], [subspace.encode(trial.config)])
    weights = source.attention_map(subspace, x[0]).tolist()
    labels = tuple(slot.label for slot in subspace.slots)
    return AttentionMap(trial, labels, weights, is_trained)
