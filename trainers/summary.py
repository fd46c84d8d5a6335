"""Size and cost of any network, traced without its weights and without data."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["TracingError", "summarise"]

BATCH = 2
"""Batch normalisation refuses to train on one example."""


class TracingError(RuntimeError):
    """A network that cannot be traced without data; the message has the network's own error."""


def summarise(
    network: nn.Module | Callable[[], nn.Module],
    *inputs: Sequence[int] | Tensor,
    device: str = "meta",
) -> dict[str, int]:
    """What a network costs per example, by one forward pass as in training.

    Two lines give a trainer of your own a summary, for `--dry-run`, `--constraint` and reports::

        def summary(config):
            return summarise(lambda: build(config), (3, 32, 32))

    Args:
        network: a network, which stays as it is, or a function that builds one: then its weights
            are never made.
        inputs: of one example and without the batch, in the order of `forward`: the shape of an
            input of floats, or a tensor for its shape and type.
        device: `cpu` for a network whose forward pass looks at values.

    Returns:
        `params` that are trained, `flops` of the forward pass (two per multiply-add of
        convolutions, matrix products and attention, all else left out, as is usual), `activations`
        that are kept for the backward pass, in numbers, and the same as `activation_bytes`.

    Raises:
        TracingError: the forward pass fails; one that looks at values needs `device="cpu"`.
    """
    traced = _on(network, device).train()
    examples = [_example(one, device) for one in inputs]
    kept = _Kept(traced)
    hooks = torch.autograd.graph.saved_tensors_hooks(kept.note, lambda saved: saved)
    counter = FlopCounterMode(display=False)
    try:
        with torch.random.fork_rng(devices=[]), hooks, counter:
            output = traced(*examples)
    except Exception as error:
        raise TracingError(
            f"{type(traced).__name__} cannot be traced on {device} with {_shapes(examples)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    del output
    params = sum(weight.numel() for weight in traced.parameters() if weight.requires_grad)
    flops = counter.get_total_flops()
    return {"params": params, "flops": flops // BATCH, **kept.totals()}


class _Kept:
    """The tensors that a forward pass keeps for the backward pass, each storage once."""

    def __init__(self, network: nn.Module) -> None:
        held = [*network.parameters(), *network.buffers()]
        # Storages are kept alive: the address of one that is gone may be used again.
        self._own = {one.untyped_storage()._cdata: one for one in held}
        self._found: dict[int, Tensor] = {}

    def note(self, tensor: Tensor) -> Tensor:
        """Called with each tensor that is kept."""
        key = tensor.untyped_storage()._cdata
        if key not in self._own:
            self._found.setdefault(key, tensor)
        return tensor

    def totals(self) -> dict[str, int]:
        sizes = [
            (one.untyped_storage().nbytes(), one.element_size()) for one in self._found.values()
        ]
        numbers = sum(n_bytes // size for n_bytes, size in sizes)
        n_bytes = sum(n_bytes for n_bytes, _ in sizes)
        return {
            "activations": math.ceil(numbers / BATCH),
            "activation_bytes": math.ceil(n_bytes / BATCH),
        }


def _on(network: nn.Module | Callable[[], nn.Module], device: str) -> nn.Module:
    if isinstance(network, nn.Module):
        return copy.deepcopy(network).to(device)
    with torch.random.fork_rng(devices=[]), torch.device(device):
        return network().to(device)


def _example(given: Sequence[int] | Tensor, device: str) -> Tensor:
    """A batch of an input."""
    if isinstance(given, Tensor):
        return given.detach().to(device).expand(BATCH, *given.shape).contiguous()
    return torch.zeros(BATCH, *given, device=device)


def _shapes(examples: Sequence[Tensor]) -> str:
    return ", ".join(str(tuple(one.shape)) for one in examples)
