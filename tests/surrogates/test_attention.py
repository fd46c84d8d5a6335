"""Attention deep-kernel GP of the paper, mostly in a small size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nasbo.gp.encoder import EncoderShape, make_encoder
from nasbo.gp.tokens import Tokenizer
from nasbo.space import Config, load_space
from nasbo.surrogates.attention import AttentionGP, AttentionSettings, Training
from nasbo.surrogates.base import FitError, batches_of

from .conftest import Observe

SHAPE = EncoderShape(embedding_width=8, n_blocks=2, inner=32, hidden=(16,), output=8)
QUICK = AttentionSettings(SHAPE, Training(learning_rate=0.01, epochs=40))


def valley(config: Config) -> float:
    return -((config["C"] / 1000 - 0.4) ** 2) * 8 - (config["kernel"] == "rbf")


def test_the_defaults_are_the_papers() -> None:
    settings = AttentionSettings()
    encoder = make_encoder(load_space("simulation"), settings.shape, 0, torch.float32)
    assert encoder.name.weight.shape == (10, 64)
    assert encoder.dimension.weight.shape == (1, 64)
    assert encoder.value.weight.shape == (64, 1)
    assert len(encoder.blocks.layers) == 6
    block = encoder.blocks.layers[0]
    assert (block.self_attn.embed_dim, block.self_attn.num_heads) == (256, 2)
    assert block.linear1.out_features == 512
    widths = [layer.out_features for layer in encoder.project if hasattr(layer, "out_features")]
    assert widths == [128, 128, 128, 32, 32]
    assert settings.training == Training(learning_rate=0.001, epochs=100, halve_every=30)


def test_training_raises_the_likelihood_and_fits(observe: Observe) -> None:
    space = load_space("svm")
    seen = observe(space, valley, n=32)
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    trained, raw = (
        AttentionGP(space, QUICK),
        AttentionGP(space, replace(QUICK, training=Training(epochs=0))),
    )
    errors = []
    for model in (trained, raw):
        model.fit(seen)
        errors.append(np.mean((model.posteriors(batches_of(seen))[0].numpy() - z) ** 2))
    assert errors[0] < 0.5 * errors[1]
    assert trained.likelihood.noise < raw.likelihood.noise


def test_a_row_does_not_feel_its_neighbours_in_the_batch(observe: Observe) -> None:
    space = load_space("cash")
    model = AttentionGP(space, QUICK)
    seen = observe(space, lambda config: float(len(config)), n=12)
    model.fit(seen)
    together = model.posteriors(batches_of(seen))[0]
    alone = [model.posteriors([batch])[0] for batch in batches_of(seen)]
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "token"])
def test_attention_map_covers_the_tokens(pooling: str, observe: Observe) -> None:
    space = load_space("cash")
    shape = replace(SHAPE, pooling=pooling)
    model = AttentionGP(space, AttentionSettings(shape, Training(epochs=2)))
    model.fit(observe(space, lambda config: float(len(config)), n=6))
    subspace = space.subspace(0)
    x = torch.full((subspace.n_free,), 0.5, dtype=torch.float64)
    attention = model.attention_map(subspace, x)
    assert attention.shape == (subspace.n_parameters, subspace.n_parameters)
    rest = 0.0 if pooling == "mean" else 0.5  # the rest attends to the extra token
    assert (attention.sum(1) <= 1 + 1e-6).all()
    assert (attention.sum(1) > 1 - rest - 1e-6).all()


def test_embedding_none_sees_values_only() -> None:
    space = load_space("svm")
    x = torch.tensor([[0.2, 0.9]], dtype=torch.float64)
    tokens = Tokenizer(space).batch([(space.subspace(2), x)])
    renamed = replace(tokens, names=tokens.names.flip(1), parents=tokens.parents.flip(1))
    is_same = {}
    for embedding in ("structure", "none"):
        encoder = make_encoder(space, replace(SHAPE, embedding=embedding), 0, torch.float64)
        is_same[embedding] = torch.allclose(encoder(tokens), encoder(renamed))
    assert is_same == {"structure": False, "none": True}


def test_pooling_by_token_differs_from_the_mean() -> None:
    space = load_space("svm")
    tokens = Tokenizer(space).batch([(space.subspace(0), torch.rand(2, 1, dtype=torch.float64))])
    mean, token = (
        make_encoder(space, replace(SHAPE, pooling=pooling), 0, torch.float64)(tokens)
        for pooling in ("mean", "token")
    )
    assert mean.shape == token.shape == (2, 8)
    assert not torch.allclose(mean, token)


def test_same_seed_same_posterior(observe: Observe) -> None:
    space = load_space("svm")
    seen = observe(space, valley, n=10)
    means = []
    for seed in (1, 1, 2):
        model = AttentionGP(space, QUICK, seed=seed)
        model.fit(seen)
        means.append(model.posteriors(batches_of(seen))[0])
    assert torch.equal(means[0], means[1])
    assert not torch.equal(means[0], means[2])


def test_many_rows_leave_nothing_to_chance(observe: Observe) -> None:
    """Beyond 800 rows, gpytorch would estimate determinants with the global random generator."""
    space = load_space("svm")
    seen = observe(space, valley, n=801)
    settings = AttentionSettings(QUICK.shape, Training(epochs=1))
    means = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        model = AttentionGP(space, settings, seed=3)
        model.fit(seen)
        means.append(model.posteriors(batches_of(seen))[0])
    assert torch.equal(*means)


def test_training_that_diverges_is_a_fit_error(observe: Observe) -> None:
    space = load_space("svm")
    wild = AttentionSettings(SHAPE, Training(learning_rate=1e30, epochs=5))
    with pytest.raises(FitError):
        AttentionGP(space, wild).fit(observe(space, valley, n=6))
