"""Named benchmarks and their options."""

from __future__ import annotations

import pytest

from nasbo.bench.cell import Protocol
from nasbo.bench.curves.cell import CurveProtocol
from nasbo.bench.problems import PROBLEMS
from nasbo.bench.spec import parse_method
from nasbo.bench.suites import SUITES, Changes, own_parts, suite_parts
from nasbo.errors import NasboError
from nasbo.space import load_space
from nasbo.testing import SPACES

LABELS = sorted({m for suite in SUITES.values() for part in suite.parts for m in part.methods})


@pytest.mark.parametrize("label", LABELS)
def test_methods_of_suites_can_be_made(label: str) -> None:
    spec = parse_method(label)
    assert spec.label == label
    spec.make(load_space(SPACES["nested"]))


def test_suites_have_what_they_promise() -> None:
    assert set(SUITES) == {
        "quick", "full", "jenatton", "ablation", "attnbo-paper", "casmopolitan", "noisy",
        "curves", "nas", "hardware",
    }  # fmt: skip
    full = SUITES["full"].parts
    assert sum(len(part.problems) for part in full) >= 10
    assert {part.seeds for part in full if "jenatton_small" in part.problems} == {10}
    assert min(part.seeds for part in full) >= 5
    (noisy,) = SUITES["noisy"].parts
    assert {PROBLEMS[name].group for name in noisy.problems} == {"noisy"}
    halves = [PROBLEMS[name].half for name in noisy.problems]
    assert halves == ["tuning", "held-out"] * 6
    assert (noisy.seeds, noisy.protocol) == (5, Protocol())
    (mixed,) = SUITES["casmopolitan"].parts
    assert mixed.protocol.trials + (mixed.protocol.design or 0) == 200


def test_the_suite_of_networks_gives_slow_methods_fewer_seeds() -> None:
    *means, tables, training = SUITES["nas"].parts
    assert [(part.seeds, part.protocol.trials) for part in means] == [
        (100, 300), (20, 300), (10, 150),
    ]  # fmt: skip
    assert [part.methods for part in means] == [
        ("attnbo", "local", "evolution", "random"),
        ("gp", "tpe", "bananas[refit_every=10]"),
        ("smac",),
    ]
    every = tuple(method for part in means for method in part.methods)
    assert (tables.methods, tables.seeds, tables.protocol) == (every, 20, Protocol(trials=200))
    assert (training.methods, training.problems) == (every, ("cifar10_proxy",))
    assert {name for part in means for name in part.problems} == {
        f"nasbench201_{data}_mean" for data in ("cifar10", "cifar100", "imagenet")
    }
    assert set(tables.problems) == {
        "nasbench201_cifar10", "nasbench201_cifar100", "nasbench201_imagenet",
        "accel_nasbench", "nasbench_graph_cora", "nas_proxy",
    }  # fmt: skip
    named = {name for part in SUITES["nas"].parts for name in part.problems}
    assert named <= PROBLEMS.keys()


def test_the_suite_by_cost_has_one_worker_and_many() -> None:
    parts = SUITES["curves"].parts
    one, slow, many, most = parts
    assert [(part.seeds, part.protocol) for part in parts] == [
        (5, CurveProtocol(20, 1)),
        (3, CurveProtocol(20, 1)),
        (3, CurveProtocol(40, 16)),
        (3, CurveProtocol(100, 64)),
    ]
    for part in (one, slow):
        groups = {PROBLEMS[name].group for name in part.problems}
        assert groups == {"curves", "curves_noisy", "curves_lying"}
        halves = [PROBLEMS[name].half for name in part.problems]
        assert halves.count("tuning") == halves.count("held-out")
    assert len(many.problems) == 3
    assert set(most.problems) < set(many.problems) < set(one.problems)
    assert {PROBLEMS[name].half for name in many.problems} == {"held-out"}
    assert slow.methods == ("smac+mf", "dehb+hb")
    assert "optuna+sh" in one.methods
    assert not {"optuna+sh", *slow.methods} & set(many.methods)


def test_workers_pick_a_part_and_trials_are_its_budget() -> None:
    (part,) = suite_parts("curves", Changes(workers=16, trials=7))
    assert part.protocol == CurveProtocol(7, 16)
    with pytest.raises(NasboError, match="must be one of 1, 16, 64; got 3"):
        suite_parts("curves", Changes(workers=3))
    with pytest.raises(NasboError, match="must be one of none"):
        suite_parts("quick", Changes(workers=1))
    with pytest.raises(NasboError, match="by cost there is no batch"):
        suite_parts("curves", Changes(batch=2))


def test_changes_restrict_problems_and_replace_the_rest() -> None:
    changes = Changes(("share", "jenatton_large"), ("gp", "random"), seeds=2, trials=7, batch=3)
    parts = suite_parts("full", changes)
    assert [part.problems for part in parts] == [("jenatton_large",), ("share",)]
    assert {part.methods for part in parts} == {("gp", "random")}
    assert {part.seeds for part in parts} == {2}
    assert {part.protocol for part in parts} == {Protocol(trials=7, batch=3)}
    assert suite_parts("full", Changes()) == list(SUITES["full"].parts)


def test_own_parts_keep_defaults() -> None:
    (part,) = own_parts(["a"], ["gp"], Changes())
    assert (part.problems, part.seeds, part.protocol) == (("a",), 10, Protocol())


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(NasboError, match="suite must be one of ablation, attnbo-paper"):
        suite_parts("nope", Changes())
    with pytest.raises(NasboError, match="suite 'quick' has no problem 'nope'; it has blocks"):
        suite_parts("quick", Changes(("nope",)))
