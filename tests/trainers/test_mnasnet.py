"""MnasNet's space: its builder, counts, fingerprint, and training by the shipped trainer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import trainers
from nasbo.space import load_space
from trainers import cifar10, mnasnet_cost, onnx_file
from trainers.architecture import InvalidArchitecture
from trainers.cost import FEATURES
from trainers.families import BLOCKS, MNASNET, family, family_of
from trainers.mnasnet import check, rows
from trainers.mnasnet_blocks import build
from trainers.mnasnet_cost import fingerprint, sizes_of, summary
from trainers.session import LocalSession
from trainers.summary import summarise
from trainers.training import CHECKPOINT

TINY = {"recipe": "tiny", "is_tensorboard": False}
SPACE = load_space("mnasnet")


def uniform(**changes: Any) -> dict[str, Any]:
    """Seven separable blocks of one 3x3 layer; a single value in `changes` is for all blocks."""
    config = {
        "blocks": 7,
        "operation": "separable",
        "expansion": None,
        "kernel": 3,
        "se_ratio": 0,
        "skip": "none",
        "width": 1,
        "layers": 1,
        "learning_rate": 0.1,
        "step_size": 80,
        "batch_size": 32,
        **changes,
    }
    alone = ("blocks", "learning_rate", "step_size", "batch_size")
    return {
        name: value if name in alone or isinstance(value, list) else [value] * 7
        for name, value in config.items()
    }


def sampled(seed: int) -> dict[str, Any]:
    return SPACE.sample(np.random.default_rng(seed))


def at(index: int, value: Any, other: Any) -> list[Any]:
    """A list for seven blocks with one value that differs."""
    return [value if number == index else other for number in range(7)]


def test_a_network_counted_by_hand() -> None:
    found = summary(uniform())
    widths, sides = [32, 16, 24, 32, 64, 96, 160, 320], [32, 32, 32, 16, 8, 8, 4, 4]
    params, macs = 27 * 32 + 2 * 32, 27 * 32 * 32**2
    for inputs, outputs, side in zip(widths, widths[1:], sides[1:], strict=False):
        params += 9 * inputs + 2 * inputs + inputs * outputs + 2 * outputs
        macs += (9 * inputs + inputs * outputs) * side**2
    assert found["params"] == params + 320 * 10 + 10 == 86_642
    assert found["flops"] == 2 * (macs + 320 * 10)
    assert found["layers"] == 1 + 2 * 7
    # 3x3 kernels: three behind no stride, one behind 2, two behind 4 and one behind 8.
    assert found["receptive_field"] == 3 + 2 * (1 + 1 + 1) + 2 * 2 + 2 * (4 + 4) + 2 * 8


def test_an_inverted_residual_counted_by_hand() -> None:
    plain, last = summary(uniform()), {"operation": at(6, "mbconv", "separable")}
    expanded = uniform(
        **last, expansion=at(6, 6, None), se_ratio=at(6, 0.25, 0), layers=at(6, 2, 1)
    )
    first = (160 + 2) * 960 + (9 + 2) * 960 + (960 + 2) * 320 + (960 + 1) * 240 + (240 + 1) * 960
    wide = 6 * 320
    second = (320 + 2) * wide + (9 + 2) * wide + (wide + 2) * 320
    second += (wide + 1) * (wide // 4) + (wide // 4 + 1) * wide
    separable = (9 + 2) * 160 + (160 + 2) * 320
    assert summary(expanded)["params"] - plain["params"] == first + second - separable


@pytest.mark.parametrize("seed", range(12))
def test_closed_form_agrees_with_the_built_network(seed: int) -> None:
    config = sampled(seed)
    width, size = [(1.0, 32), (0.5, 16), (0.25, 8), (0.5, 224)][seed % 4]
    with torch.device("meta"):
        network = build(config, width, image_size=size).eval()
        with FlopCounterMode(display=False) as counter:
            logits = network(torch.empty(1, 3, size, size))
    assert logits.shape == (1, 10)
    found = summary(config, width, image_size=size)
    assert found["params"] == sum(weight.numel() for weight in network.parameters())
    assert found["flops"] == counter.get_total_flops()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("skip", ["none", "pool", "identity"])
def test_the_predicted_activations_are_those_that_are_kept(seed: int, skip: str) -> None:
    config = {**sampled(seed), "skip": [skip] * 7}
    traced = summarise(lambda: build(config, 0.5), (3, 32, 32))
    predicted = summary(config, 0.5)["activations"]
    assert predicted == pytest.approx(traced["activations"], rel=0.03)


@pytest.mark.parametrize(("width", "size"), [(1.0, 32), (0.5, 16), (0.25, 8), (1.0, 224)])
def test_tables_agree_with_the_summary(width: float, size: int) -> None:
    rng = np.random.default_rng(0)
    for index in rng.integers(SPACE.n_subspaces, size=8):
        subspace = SPACE.subspace(int(index))
        x = subspace.sample(20, rng)
        found = sizes_of(subspace.table(x), width, 10, size)
        known = [summary(subspace.decode(row), width, 10, size) for row in x]
        for number in FEATURES:
            assert found[number].tolist() == [one[number] for one in known]


def test_the_trainer_tabulates_what_it_summarises() -> None:
    rng, options = np.random.default_rng(1), {"recipe": "proxy"}
    subspace = SPACE.subspace(1_000)
    x = subspace.sample(10, rng)
    found = cifar10.tabulate(subspace.table(x), options)
    told = [cifar10.summary(subspace.decode(row), options) for row in x]
    for name in FEATURES:
        assert found[name].tolist() == [one[name] for one in told]
    assert told[0]["features"] == list(FEATURES)
    assert told[0]["trial_params"] < told[0]["params"]
    assert json.loads(json.dumps(told[0]["rows"]))[1]["skip"] in ("none", "pool", "identity")


@pytest.mark.parametrize(
    ("size", "sides"),
    [
        (32, [32, 32, 32, 16, 8, 8, 4]),
        (16, [16, 16, 16, 8, 4, 4, 2]),
        (8, [8, 8, 8, 4, 2, 2, 2]),
        (30, [30, 30, 30, 15, 8, 8, 4]),
        (224, [112, 112, 56, 28, 14, 14, 7]),
        (128, [64, 64, 32, 16, 8, 8, 4]),
    ],
)
def test_strides_are_fixed_by_the_size_of_the_pictures(size: int, sides: list[int]) -> None:
    assert [row.image_size for row in rows(uniform(), image_size=size)] == sides


def test_channels_are_those_of_mobilenet_times_the_width() -> None:
    assert [row.out_channels for row in rows(uniform())] == [16, 24, 32, 64, 96, 160, 320]
    slim = [row.out_channels for row in rows(uniform(width=0.75))]
    assert slim == [16, 16, 24, 48, 72, 120, 240]
    half = [row.out_channels for row in rows(uniform(width=1.25), 0.5)]
    assert half == [16, 16, 24, 40, 64, 104, 200]


def test_skips_are_where_the_paper_has_them() -> None:
    deep = uniform(layers=2, skip="pool")
    assert [row.skip_of(0) for row in rows(deep)] == ["pool"] * 7
    assert [row.skip_of(1) for row in rows(deep)] == ["identity"] * 7
    plain = rows(uniform(layers=2, skip="identity"))
    assert [(row.skip_of(0), row.skip_of(1)) for row in plain] == [("none", "identity")] * 7
    none = rows(uniform(layers=2))
    assert [(row.skip_of(0), row.skip_of(1)) for row in none] == [("none", "none")] * 7
    # 24 channels in and out, and no stride: the first layer keeps the shape.
    same = rows(uniform(width=[1.25, 1, 1, 1, 1, 1, 1], skip="identity"))
    assert (same[1].in_channels, same[1].out_channels, same[1].skip_of(0)) == (24, 24, "identity")


@pytest.mark.parametrize("size", [16, 30])
def test_a_pooled_skip_averages_and_fits_the_channels(size: int) -> None:
    torch.manual_seed(0)
    network = build(uniform(skip="pool"), image_size=size).eval()
    _, first, _, third = list(network)[:4]
    x = torch.randn(2, 32, size, size)
    assert torch.equal(first(x) - first.body(x), (first.body(x) + x[:, :16]) - first.body(x))
    y = torch.randn(2, 24, size, size)
    added = third(y) - third.body(y)
    averaged = torch.nn.functional.adaptive_avg_pool2d(y[:, :, : size // 2 * 2, : size // 2 * 2],
                                                       size // 2)  # fmt: skip
    assert torch.allclose(added[:, :24, : size // 2, : size // 2], averaged, atol=1e-5)
    assert torch.equal(third(y)[:, 24:], third.body(y)[:, 24:])


@pytest.mark.parametrize("operation", ["conv", "separable", "mbconv"])
@pytest.mark.parametrize("skip", ["none", "pool", "identity"])
def test_every_operation_gives_logits_and_gradients_everywhere(operation: str, skip: str) -> None:
    expansion = 3 if operation == "mbconv" else None
    torch.manual_seed(1)
    changes = {"operation": operation, "expansion": expansion, "skip": skip}
    network = build(uniform(**changes, layers=2, se_ratio=0.25), width=0.25, image_size=16)
    logits = network(torch.randn(16, 3, 16, 16).contiguous(memory_format=torch.channels_last))
    logits.square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert bool(weight.grad.abs().sum() > 0), name


def test_without_skips_an_inverted_residual_has_no_connection() -> None:
    torch.manual_seed(0)
    changes = {"operation": "mbconv", "expansion": 3, "layers": 2}
    with_none, with_some = (
        build(uniform(**changes, skip=skip), 0.25, image_size=16).eval()
        for skip in ("none", "identity")
    )
    with_some.load_state_dict(with_none.state_dict())
    x = torch.randn(2, 3, 16, 16)
    assert not torch.allclose(with_none(x), with_some(x))
    last = list(with_none)[-2]
    y = torch.randn(2, 80, 2, 2)
    assert torch.equal(last(y), last.body(y))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"blocks": 6}, "blocks must be an integer in 7..7, got 6"),
        ({"kernel": [3] * 6}, "kernel must be a list of blocks = 7 entries"),
        ({"kernel": at(2, 4, 3)}, r"kernel\[2\] must be odd, got 4"),
        ({"operation": at(1, "resnet", "conv")}, r"operation\[1\] must be one of conv, separable"),
        ({"operation": "mbconv"}, r"expansion\[0\] must be an integer in 1..32, got None"),
        ({"skip": at(6, "max", "none")}, r"skip\[6\] must be one of none, pool, identity"),
        ({"se_ratio": -1}, r"se_ratio\[0\] must be a number in \(0, 1\], got -1"),
        ({"width": 0}, r"width\[0\] must be a number"),
        ({"layers": 0}, r"layers\[0\] must be an integer in 1..16, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a number"),
        ({"batch_size": 1}, "batch_size must be an integer in 2"),
    ],
)
def test_what_cannot_be_built_is_named(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArchitecture, match=rule):
        cifar10.check(uniform(**change))


def test_unknown_and_missing_parameters_are_named() -> None:
    with pytest.raises(InvalidArchitecture, match=r"unknown: \['dropout'\]"):
        check({**uniform(), "dropout": 0.1})
    config = uniform()
    del config["expansion"]
    check(config)
    del config["kernel"]
    with pytest.raises(InvalidArchitecture, match=r"missing: \['kernel'\]"):
        check(config)


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.1000001},
        {"step_size": 81},
        {"batch_size": 64},
        {"kernel": at(2, 5, 3)},
        {"layers": at(2, 2, 1)},
        {"se_ratio": at(2, 0.25, 0)},
        {"operation": at(2, "conv", "separable")},
        {"operation": at(2, "mbconv", "separable"), "expansion": at(2, 3, None)},
        {"width": at(2, 0.75, 1)},
        {"skip": at(2, "pool", "none")},
        {"skip": at(2, "identity", "none")},
    ],
)
def test_values_that_change_training_change_the_fingerprint(changes: dict[str, Any]) -> None:
    assert cifar10.fingerprint(uniform(**changes)) != cifar10.fingerprint(uniform())


def test_values_that_change_nothing_do_not_change_the_fingerprint() -> None:
    base = uniform()
    assert fingerprint({**base, "expansion": [6] * 7}) == fingerprint(base)
    assert fingerprint(uniform(width=[0.75, 1, 1, 1, 1, 1, 1])) == fingerprint(base)
    # 120 channels in block 5 and 6, which halves the map: never the same as an identity.
    slim = {"width": [1, 1, 1, 1, 1.25, 0.75, 1]}
    one, other = (fingerprint(uniform(**slim, skip=at(5, s, "none"))) for s in ("pool", "identity"))
    assert one != other


def test_pooling_is_identity_where_nothing_is_halved() -> None:
    # 80 channels come into block 5 and leave it, if multipliers of users' own spaces say so.
    same = {"width": [1, 1, 1, 1.25, 80 / 96, 1, 1]}
    one, other = (uniform(**same, skip=at(4, skip, "none")) for skip in ("pool", "identity"))
    assert fingerprint(one) == fingerprint(other)
    for width, size in ((1.0, 32), (0.3, 8), (1.0, 224)):
        pooled, plain = (rows(config, width, size)[4] for config in (one, other))
        assert pooled.skip_of(0) == plain.skip_of(0) == "identity"


def test_equal_fingerprints_are_equal_networks_at_every_width() -> None:
    base, twin = uniform(width=0.75, skip="pool"), uniform(width=[1, *[0.75] * 6], skip="pool")
    assert fingerprint(base) == fingerprint(twin)
    for width in (0.1, 0.25, 0.5, 0.77, 1.0):
        assert rows(base, width) == rows(twin, width)


def test_families_are_told_apart_by_their_parameters() -> None:
    assert family("mnasnet") is MNASNET
    assert family_of(uniform()) is MNASNET
    assert family_of({"conv_op": [0]}) is BLOCKS
    assert cifar10.fingerprint(uniform()) == mnasnet_cost.fingerprint(uniform())


@pytest.mark.usefixtures("cache")
def test_a_restart_ends_with_the_same_bits(tmp_path: Path) -> None:
    config = {**sampled(3), "batch_size": 32}
    whole = LocalSession(tmp_path / "whole", 3, TINY)
    cifar10.train(config, whole)
    known = cifar10.summary(config, TINY)
    for name in ("params", "flops", "trial_params", "trial_flops"):
        assert whole.reports[-1][name] == known[name]
    cifar10.train(config, LocalSession(tmp_path / "paused", 3, TINY, until=1))
    cifar10.train(config, LocalSession(tmp_path / "paused", 3, TINY))
    ends = [torch.load(tmp_path / name / CHECKPOINT)["network"] for name in ("whole", "paused")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@pytest.mark.usefixtures("cache")
def test_an_exported_network_is_loaded_again(tmp_path: Path) -> None:
    options = {**cifar10.final_options({}, "tiny"), "threads": 1, "n_train": 200}
    config = uniform(skip=["pool", "identity"] * 3 + ["none"], layers=2, batch_size=64)
    session = LocalSession(tmp_path / "trial", 1, options)
    cifar10.train(config, session)
    (tmp_path / "best").mkdir()
    facts = cifar10.export(config, tmp_path / "trial", tmp_path / "best", options)
    assert facts["flops"] == facts["flops_counted"] == session.reports[-1]["trial_flops"]
    assert facts["params"] == session.reports[-1]["trial_params"]
    assert facts["onnx_difference"] <= onnx_file.TOLERANCE
    network = trainers.load(tmp_path / "best")
    assert network.family is MNASNET
