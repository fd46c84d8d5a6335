"""The summary of any network, traced: against the cost model, and against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import trainers
from trainers import cost
from trainers.blocks import build
from trainers.forecast import _typical
from trainers.summary import TracingError, summarise


@pytest.mark.parametrize("operation", range(4))
def test_block_networks_cost_what_the_cost_model_says(operation: int) -> None:
    config = _typical(operation, 5, 3)
    traced = summarise(lambda: build(config), (3, 32, 32))
    known = cost.summary(config)
    assert (traced["params"], traced["flops"]) == (known["params"], known["flops"])
    assert traced["activations"] == pytest.approx(known["activations"], rel=0.01)
    assert traced["activation_bytes"] == pytest.approx(4 * traced["activations"], rel=0.01)


def test_counts_by_hand() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten())
    network.append(nn.Linear(8 * 16, 5))
    found = summarise(network, (3, 4, 4))
    assert found["params"] == 8 * (27 + 1) + 5 * (128 + 1)
    assert found["flops"] == 2 * (8 * 27 * 16 + 5 * 128)
    # The pictures for the convolution's weights, and what comes out of the ReLU, once for two.
    assert found["activations"] == 3 * 16 + 8 * 16
    assert found["activation_bytes"] == 4 * (3 * 16 + 8 * 16)


def test_weights_that_are_not_trained_are_not_counted() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    network[0].requires_grad_(False)
    assert summarise(network, (4,))["params"] == 10


def test_a_network_stays_as_it_is_and_so_do_random_numbers() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    summarise(network, (4,))
    summarise(lambda: nn.Linear(4, 4), (4,), device="cpu")
    assert torch.equal(torch.rand(3), expected)
    assert not network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_inputs_of_other_types_come_as_examples() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.linear = nn.Embedding(10, 4), nn.Linear(7, 2)

        def forward(self, words: Tensor, numbers: Tensor) -> Tensor:
            return self.linear(torch.cat([self.embedding(words).mean(1), numbers], 1))

    found = trainers.summarise(Pair(), torch.tensor([1, 2, 3]), (3,))
    assert found["flops"] == 2 * 7 * 2


def test_attention_is_counted() -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.scaled_dot_product_attention(x, x, x)

    assert summarise(Attention(), (2, 16, 8))["flops"] == 2 * 2 * (2 * 16 * 16 * 8)


def test_a_network_that_looks_at_values_is_said_and_can_be_run() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) if float(x.sum()) == 0 else x

    with pytest.raises(TracingError, match=r"Looking cannot be traced on meta with \(2, 4\): "):
        summarise(Looking(), (4,))
    assert summarise(Looking(), (4,), device="cpu")["flops"] == 32
