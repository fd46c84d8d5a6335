"""Tokens of configs: padded integer codes and values of their parameters.

Every active scalar of a config is one token (appendix B.1.1 of the AttnBO paper): the code of its
name, the code of its parent's name (one table for both, 0 = no parent), its position in a list
(0 = a scalar), and its value in [0, 1]. Structural parameters are tokens like all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nasbo.gp.rows import Batches
from nasbo.space import Space, Subspace

MAX_CACHED_SUBSPACES = 4096


@dataclass(frozen=True)
class TokenCodes:
    """Token codes that all configs of a subspace share.

    Attributes:
        names: 1-based index of each name in ``space.names``, shape (n_tokens,), int64.
        parents: code of the parent's name, 0 for a root, shape (n_tokens,), int64.
        dimensions: 0 for a scalar, 1, 2, ... in a list, shape (n_tokens,), int64.
        constants: values of the fixed tokens, 0 elsewhere, shape (n_tokens,), float64.
        free: index of the token that each column of ``x`` fills, shape (n_free,), int64.
    """

    names: Tensor
    parents: Tensor
    dimensions: Tensor
    constants: Tensor
    free: Tensor

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class TokenBatch:
    """Configs of any subspaces as one padded batch; each tensor has shape (n, n_tokens).

    ``mask`` is true where there is a token; codes and values are 0 elsewhere.
    """

    names: Tensor
    parents: Tensor
    dimensions: Tensor
    values: Tensor
    mask: Tensor


def tokenize(space: Space, subspace: Subspace) -> TokenCodes:
    """The codes of a subspace's tokens, in the order of its coordinates."""
    code = {name: at for at, name in enumerate(space.names, start=1)} | {"": 0}
    coordinates = subspace.coordinates
    constants = [one.parameter.to_unit(one.value) if one.is_fixed else 0.0 for one in coordinates]
    return TokenCodes(
        names=torch.tensor([code[one.name] for one in coordinates], dtype=torch.long),
        parents=torch.tensor([code[one.parent] for one in coordinates], dtype=torch.long),
        dimensions=torch.tensor([one.index for one in coordinates], dtype=torch.long),
        constants=torch.tensor(constants, dtype=torch.float64),
        free=torch.tensor(
            [at for at, one in enumerate(coordinates) if not one.is_fixed], dtype=torch.long
        ),
    )


def token_values(codes: TokenCodes, x: Tensor) -> Tensor:
    """Values of all tokens, shape (n, n_tokens), of rows (n, n_free); differentiable in ``x``."""
    constants = codes.constants.to(x).expand(len(x), len(codes))
    return constants.index_copy(1, codes.free, x)


class Tokenizer:
    """Token codes of subspaces, cached, and padded batches of them."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._codes: dict[int, TokenCodes] = {}

    def codes(self, subspace: Subspace) -> TokenCodes:
        """The codes of a subspace of this tokenizer's space."""
        if subspace.index not in self._codes:
            if len(self._codes) >= MAX_CACHED_SUBSPACES:
                self._codes.clear()
            self._codes[subspace.index] = tokenize(self.space, subspace)
        return self._codes[subspace.index]

    def batch(self, batches: Batches) -> TokenBatch:
        """Rows of several subspaces as one batch, padded to the longest of them."""
        parts = [(self.codes(subspace), x) for subspace, x in batches]
        width = max(len(codes) for codes, _ in parts)

        def column(attribute: str) -> Tensor:
            rows = [_pad(getattr(codes, attribute)[None], width) for codes, _ in parts]
            return torch.cat(
                [row.expand(len(x), width) for row, (_, x) in zip(rows, parts, strict=True)]
            )

        return TokenBatch(
            names=column("names"),
            parents=column("parents"),
            dimensions=column("dimensions"),
            values=torch.cat([_pad(token_values(codes, x), width) for codes, x in parts]),
            mask=column("names") > 0,
        )


def n_dimension_codes(space: Space) -> int:
    """Number of list indices: the largest that a config can have, and 0 for scalars."""
    return 1 + max((node.key[1] for node in space.nodes), default=0)


def _pad(rows: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(rows, (0, width - rows.shape[1]))
