"""Batches that are chosen one config after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from nasbo.acquisition import Avoided, Found
from nasbo.surrogates.base import GP

Model = TypeVar("Model", bound=GP)


def one_by_one(
    model: Model, avoided: Avoided, best: Callable[[Model], Found | None]
) -> Iterator[Found]:
    """The best config, and the next best ones with the earlier ones as pending.

    Args:
        model: the fitted surrogate.
        avoided: what is not to be suggested; those that come back are added.
        best: the best config under a surrogate that is not avoided; ``None`` where none is left.
    """
    while (found := best(model)) is not None:
        avoided.add(found.subspace, found.x)
        yield found
        model = model.with_pending([found.subspace], [found.x])
