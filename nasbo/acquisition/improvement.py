"""A surrogate and rows come in; the logarithm of their expected improvement goes out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import _log_ei_helper
from numpy.typing import NDArray
from torch import Tensor

from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
CHUNK = 256
"""Rows per pass through the surrogate: bounds memory, hardly costs time."""


def log_ei(mean: Tensor, variance: Tensor, incumbent: float) -> Tensor:
    """log E[max(f - incumbent, 0)], numerically stable far from the incumbent.

    Args:
        mean: posterior means, shape (n,).
        variance: posterior variances, shape (n,).
        incumbent: score to improve upon.
    """
    result: Tensor = _LogEI.apply(mean, variance, incumbent)
    return result


class _LogEI(torch.autograd.Function):
    """log-EI with its derivatives Phi(u) / EI by the mean and phi(u) / EI by the sd."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, variance: Tensor, incumbent: float) -> Tensor:
        sd = variance.sqrt()
        u = (mean - incumbent) / sd
        helper: Tensor = _log_ei_helper(u)
        ctx.save_for_backward(u, helper, sd)
        return helper + sd.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        u, helper, sd = ctx.saved_tensors
        by_mean = torch.exp(torch.special.log_ndtr(u) - helper) / sd
        by_sd = torch.exp(-0.5 * u * u - _LOG_ROOT_2PI - helper) / sd
        return gradients[0] * by_mean, gradients[0] * by_sd / (2.0 * sd), None


def score_rows(surrogate: Surrogate, rows: Sequence[tuple[Subspace, Array]]) -> list[Array]:
    """log-EI of rows of many subspaces, shape (n_i,) each, in as few passes as memory allows."""
    if not rows:
        return []
    scores = []
    with torch.no_grad():
        for batches in _chunks(rows):
            mean, variance = surrogate.posteriors(batches)
            scores.append(log_ei(mean, variance, surrogate.incumbent()))
    flat = torch.cat(scores).numpy() if scores else np.zeros(0)
    ends = np.cumsum([len(x) for _, x in rows])
    return np.split(flat, ends[:-1])


def _chunks(rows: Sequence[tuple[Subspace, Array]]) -> list[Batches]:
    chunks: list[list[tuple[Subspace, Tensor]]] = [[]]
    room = CHUNK
    for subspace, x in rows:
        start = 0
        while start < len(x):
            part = torch.from_numpy(x[start : start + room])
            chunks[-1].append((subspace, part))
            start, room = start + len(part), room - len(part)
            if not room:
                chunks.append([])
                room = CHUNK
    return [chunk for chunk in chunks if chunk]
