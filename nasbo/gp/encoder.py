"""Transformer encoder of configs as tokens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from nasbo.gp.tokens import TokenBatch, n_dimension_codes
from nasbo.space import Space

Embedding = Literal["structure", "none"]
Pooling = Literal["mean", "token"]
EMBEDDINGS: tuple[Embedding, ...] = ("structure", "none")
POOLINGS: tuple[Pooling, ...] = ("mean", "token")


@dataclass(frozen=True)
class EncoderShape:
    """Sizes of an encoder; the defaults are those of the AttnBO paper, appendix B.1.

    Attributes:
        embedding_width: of each of the four embeddings of a token.
        n_blocks: attention blocks.
        n_heads: attention heads of each.
        inner: width of the feed-forward layer of a block.
        hidden: widths of the hidden layers of the projection after the pooling.
        output: width of the encoded vector.
        embedding: ``none`` embeds values only (appendix E).
        pooling: ``token`` reads an extra token instead of the average (appendix E).
    """

    embedding_width: int = 64
    n_blocks: int = 6
    n_heads: int = 2
    inner: int = 512
    hidden: tuple[int, ...] = (128, 128, 128, 32)
    output: int = 32
    embedding: Embedding = "structure"
    pooling: Pooling = "mean"

    @property
    def width(self) -> int:
        """Width of a token."""
        return 4 * self.embedding_width


class Encoder(nn.Module):
    """Structure-aware embeddings (eq. 3 and 4 of the AttnBO paper) and a Transformer encoder.

    Names and parents share one table. There is no dropout (the paper names none), and the module
    stays in training mode, so that gradients and plain evaluations take the same path.
    """

    def __init__(
        self, n_names: int, n_dimensions: int, shape: EncoderShape, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.shape = shape
        part = shape.embedding_width
        has_structure = shape.embedding == "structure"
        self.name = nn.Embedding(n_names, part, dtype=dtype)
        self.dimension = nn.Embedding(n_dimensions, part, dtype=dtype)
        self.value = nn.Linear(1, part if has_structure else shape.width, dtype=dtype)
        self.pool_token = nn.Parameter(torch.randn(shape.width, dtype=dtype))
        sizes = (shape.width, shape.n_heads, shape.inner)
        block = nn.TransformerEncoderLayer(*sizes, dropout=0.0, batch_first=True, dtype=dtype)
        self.blocks = nn.TransformerEncoder(block, shape.n_blocks, enable_nested_tensor=False)
        self.project = _perceptron((shape.width, *shape.hidden, shape.output), dtype)

    def forward(self, tokens: TokenBatch) -> Tensor:
        """One vector per config, shape (n, output)."""
        embedded, mask = self.embed(tokens)
        encoded = self.blocks(embedded, src_key_padding_mask=~mask)
        if self.shape.pooling == "token":
            pooled = encoded[:, 0]
        else:
            weights = mask.to(encoded.dtype)[..., None]
            pooled = (encoded * weights).sum(1) / weights.sum(1)
        result: Tensor = self.project(pooled)
        return result

    def embed(self, tokens: TokenBatch) -> tuple[Tensor, Tensor]:
        """Embedded tokens, shape (n, t, width), and their mask (n, t); t counts a pool token."""
        embedded = self.value(tokens.values.to(self.value.weight.dtype)[..., None])
        if self.shape.embedding == "structure":
            codes = [self.name(tokens.names), self.name(tokens.parents)]
            embedded = torch.cat([*codes, self.dimension(tokens.dimensions), embedded], -1)
        mask = tokens.mask
        if self.shape.pooling == "token":
            n = len(embedded)
            embedded = torch.cat([self.pool_token.expand(n, 1, -1), embedded], 1)
            mask = torch.cat([mask.new_ones(n, 1), mask], 1)
        return embedded, mask

    def attention_map(self, tokens: TokenBatch) -> Tensor:
        """Attention of each token to each, in the first block, mean of the heads: (n, t, t)."""
        with torch.no_grad():
            embedded, mask = self.embed(tokens)
            attend = self.blocks.layers[0].self_attn
            _, weights = attend(
                embedded, embedded, embedded, key_padding_mask=~mask, need_weights=True
            )
        start = 1 if self.shape.pooling == "token" else 0
        maps: Tensor = weights[:, start:, start:]
        return maps


def make_encoder(space: Space, shape: EncoderShape, seed: int, dtype: torch.dtype) -> Encoder:
    """An encoder for the names and lists of a space, with weights initialised from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Encoder(len(space.names) + 1, n_dimension_codes(space), shape, dtype)


def _perceptron(widths: tuple[int, ...], dtype: torch.dtype) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(before, after, dtype=dtype), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1], dtype=dtype))
