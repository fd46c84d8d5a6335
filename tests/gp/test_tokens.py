"""Codes and values of tokens, and batches of them."""

from __future__ import annotations

import torch

from nasbo.gp.tokens import Tokenizer, n_dimension_codes, token_values, tokenize
from nasbo.space import Space, load_space

NUMBER = {"type": "float", "range": [0, 1]}


def three() -> Space:
    """x2 is a child of x1, x3 stands alone: the first example of appendix B.1.1."""
    child = {"yes": {"x2": NUMBER}}
    return load_space(
        {"x1": {"type": "choice", "range": ["yes", "no"], "submodule": child}, "x3": NUMBER}
    )


def layers() -> Space:
    """A list of units, one per layer: the second example of appendix B.1.1."""
    units = {"nums_unit": {"type": "int", "range": [1, 65]}}
    return load_space(
        {"nums_layer": {"type": "int", "range": [4, 8], "submodule": units}, "rate": NUMBER}
    )


def test_parent_and_name_codes_of_the_papers_example() -> None:
    codes = tokenize(three(), three().subspace(0))
    pairs = torch.stack([codes.parents, codes.names], 1).tolist()
    assert pairs == [[0, 1], [1, 2], [0, 3]]


def test_inactive_parameters_are_no_tokens() -> None:
    codes = tokenize(three(), three().subspace(1))
    assert codes.names.tolist() == [1, 3]


def test_dimension_codes_of_the_papers_example() -> None:
    codes = tokenize(layers(), layers().subspace(0))
    assert codes.names.tolist() == [1, 2, 2, 2, 2, 3]
    assert codes.parents.tolist() == [0, 1, 1, 1, 1, 0]
    assert codes.dimensions.tolist() == [0, 1, 2, 3, 4, 0]


def test_one_name_in_exclusive_branches_has_one_code() -> None:
    space = load_space("svm")
    gamma = 1 + space.names.index("gamma")
    with_gamma = [
        tokenize(space, s) for s in space.subspaces() if "gamma" in s.decode([0.5] * s.n_free)
    ]
    assert len(with_gamma) == 3
    assert all(gamma in codes.names.tolist() for codes in with_gamma)


def test_values_hold_fixed_ones_and_pass_gradients() -> None:
    codes = tokenize(three(), three().subspace(1))
    x = torch.tensor([[0.25], [0.5]], dtype=torch.float64, requires_grad=True)
    values = token_values(codes, x)
    assert values.tolist() == [[1.0, 0.25], [1.0, 0.5]]
    values.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0], [1.0]]


def test_batch_pads_shorter_rows_and_masks_them() -> None:
    space = three()
    rows = [(space.subspace(i), torch.rand(2, n, dtype=torch.float64)) for i, n in ((0, 2), (1, 1))]
    batch = Tokenizer(space).batch(rows)
    assert batch.names.shape == batch.values.shape == (4, 3)
    assert batch.mask.sum(1).tolist() == [3, 3, 2, 2]
    assert batch.values[2:, 2].tolist() == [0.0, 0.0]
    assert batch.names[2].tolist() == [1, 3, 0]


def test_nas_space_has_29_to_47_tokens_and_seven_places() -> None:
    space = load_space("nas_cifar10")
    assert [len(tokenize(space, s)) for s in space.subspaces()] == [29, 35, 41, 47]
    assert n_dimension_codes(space) == 8
    assert n_dimension_codes(three()) == 1
