"""Batches chosen one config at a time, the earlier ones as pending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from nasbo.acquisition import Avoided, Found
from nasbo.surrogates.base import GP

Model = TypeVar("Model", bound=GP)


def one_by_one(
    model: Model, avoided: Avoided, best: Callable[[Model], Found | None]
) -> Iterator[Found]:
    """The best config, then the next best one with the earlier ones as pending, and so on.

    Args:
        model: the fitted surrogate.
        avoided: configs not to suggest; the chosen ones are added.
        best: the best config under a surrogate that is not avoided; ``None`` if there is none.
    """
    while (found := best(model)) is not None:
        avoided.add(found.subspace, found.x)
        yield found
        model = model.with_pending([found.subspace], [found.x])
