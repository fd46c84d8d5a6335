"""Objectives: texts, expressions, fronts, hypervolume, and searches with several of them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.errors import NasboError
from nasbo.features import Features
from nasbo.history import Objective, Objectives
from nasbo.history.expression import parse_expression
from nasbo.history.front import front_ranks, hypervolume, knee, on_front
from nasbo.search import Search
from nasbo.space import Config
from tests.fronts import SPACE, TEXTS, accuracy, drive, sizes

MNASNET = "val_accuracy * (latency_ms / 80) ** -0.07"


@pytest.mark.parametrize(
    ("text", "names", "value"),
    [
        (MNASNET, ("val_accuracy", "latency_ms"), 0.7 * 2**-0.07),
        ("-val_accuracy + 2", ("val_accuracy",), 1.3),
        ("log10(latency_ms) / max(val_accuracy, 1)", ("latency_ms", "val_accuracy"), 2.20412),
    ],
)
def test_expressions_are_worked_out(text: str, names: tuple[str, ...], value: float) -> None:
    expression = parse_expression(text)
    assert expression.names == names
    numbers = {"val_accuracy": 0.7, "latency_ms": 160.0}
    assert expression(numbers) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "a.real * b",
        "[a for a in (1, 2)]",
        "a if b else c",
        "a < b",
        "lambda: a",
        "f(a)",
        "log(x=a)",
        "a @ b",
        "'a' * 3",
        "True + a",
        "a = 3",
        "a *",
        "a" * 501,
    ],
)
def test_other_code_is_refused(text: str) -> None:
    with pytest.raises(NasboError, match="expression"):
        parse_expression(text)


@pytest.mark.parametrize("text", ["1 / a", "log(a)", "(a - 1) ** 0.5", "10.0 ** (1e6 + a)"])
def test_failing_arithmetic_is_no_number(text: str) -> None:
    assert math.isnan(parse_expression(text)({"a": 0.0}))


def test_texts_are_parsed() -> None:
    goal = Objectives.parse(["val_accuracy max", " flops  min"], known=["flops"])
    assert goal.first == Objective("val_accuracy", "max")
    assert goal.further == (Objective("flops", "min", is_known=True),)
    assert str(goal) == "val_accuracy max, flops min"
    assert Objectives.from_json(json.loads(json.dumps(goal.to_json()))) == goal
    assert Objective.parse("val/top-1 max").value_in({"val/top-1": 3}) == 3.0
    assert Objectives.of("min", "loss").to_json() == ({"metric": "loss", "mode": "min"},)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["loss"], "like 'flops min', got 'loss'"),
        (["loss down"], "like 'flops min'"),
        (["a min", "b min", "c min", "d min"], "one to 3 objectives, got 4: make the less"),
        (["a min", "a max"], "must be different, got a, a"),
        (["params min", "loss min"], "first objective must be a result of training, but 'params'"),
        (["loss * min"], "not an expression"),
        (["open('x') min"], "an expression has numbers, names"),
        (7, "must be a list of texts, got 7"),
    ],
)
def test_wrong_objectives_are_said_at_the_door(texts: Any, words: str) -> None:
    with pytest.raises(NasboError, match=words):
        Search(SPACE, "random", objectives=texts, features=sizes)


def test_front_has_what_nothing_dominates() -> None:
    scores = np.array([[3, 1], [2, 2], [1, 3], [2, 1], [1, 1], [2, 2]], dtype=float)
    assert on_front(scores).tolist() == [True, True, True, False, False, True]
    assert front_ranks(scores).tolist() == [0, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_hypervolume_is_that_of_a_grid(m: int) -> None:
    rng = np.random.default_rng(m)
    scores = rng.integers(-1, 8, (9, m)).astype(float)
    cells = np.array(list(itertools.product(range(8), repeat=m))) + 0.5
    counted = (cells[:, None] < scores[None]).all(-1).any(-1).sum()
    assert hypervolume(scores, np.zeros(m)) == pytest.approx(counted)


def test_knee_is_where_the_front_bends() -> None:
    assert knee(np.array([[0.0, 10.0], [8.0, 9.0], [10.0, 0.0]])) == 1
    assert knee(np.array([[1.0, 0, 0], [0.8, 0.8, 0.8], [0, 1, 0], [0, 0, 1.0]])) == 1


def test_known_objectives_are_filled_in() -> None:
    search = Search(SPACE, "random", objectives=TEXTS, features=sizes)
    (trial,) = search.ask()
    search.tell(trial, {"acc": 0.5})
    held = search.trials[0]
    assert (held.value, held.metrics["params"]) == (0.5, sizes(trial.config)["params"])
    search.observe({"depth": 1, "width": 8, "rate": 0.01}, {"acc": 0.4})
    assert search.trials[1].metrics["params"] == 64
    assert {one.id for one in search.front} >= {0}


def test_a_trained_objective_must_be_told() -> None:
    search = Search(SPACE, "random", objectives=["acc max", "energy min"], seed=1)
    one, two, three = search.ask(3)
    with pytest.raises(NasboError, match="tell needs all objectives, 'energy' too; got acc"):
        search.tell(one, {"acc": 0.5})
    with pytest.raises(NasboError, match="tell needs 'acc', got energy"):
        search.tell(one, {"energy": 0.5})
    search.tell(one, {"acc": 0.5, "energy": 3.0})
    search.tell(two, 0.4, metrics={"energy": 2.0})
    search.tell(three, {"acc": 0.6, "energy": math.nan})
    assert search.trials[2].cause == "diverged"
    assert [trial.id for trial in search.front] == [0, 1]


def test_an_expression_is_one_objective() -> None:
    search = Search(SPACE, "random", objectives="acc * params ** -0.1 max", features=sizes)
    (trial,) = search.ask()
    search.tell(trial, {"acc": 0.5})
    assert search.best.value == pytest.approx(0.5 * sizes(trial.config)["params"] ** -0.1)
    assert len(search.history.objectives) == 1


@pytest.mark.parametrize("method", ["gp", "independent", "addtree", "tree"])
def test_methods_of_one_objective_refuse_several(method: str) -> None:
    with pytest.raises(NasboError, match=f"by attnbo .*, evolution and random, not by '{method}'"):
        Search(SPACE, method, objectives=TEXTS, features=sizes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "max"}, "mode is part of objectives"),
        ({"rungs": [1, 3]}, "rungs rank trials by one"),
    ],
)
def test_what_does_not_go_with_several_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(NasboError, match=words):
        Search(SPACE, "random", objectives=TEXTS, features=sizes, **options)


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"acquisition": "ucb"}])
def test_attnbo_refuses_several_for_its_other_models(options: dict[str, str]) -> None:
    with pytest.raises(NasboError, match="several objectives are searched by"):
        Search(SPACE, "attnbo", objectives=TEXTS, features=sizes, **options)


def test_reference_point_comes_from_the_design_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    search = Search(SPACE, "random", objectives=TEXTS, features=sizes, journal=file)
    drive(search, 10)
    assert search.history.reference is None
    values = [accuracy(trial.config) for trial in search.trials]
    drive(search, 15)
    search.close()
    reference = search.history.reference
    assert reference is not None
    assert reference.values[0] == pytest.approx(min(values), abs=0.2)
    assert reference.values[1] >= max(sizes(t.config)["params"] for t in search.trials[:10])
    assert reference.is_log == (False, True)
    kinds = [json.loads(line)["event"] for line in file.read_text().splitlines()]
    assert kinds.count("reference") == 1
    with Search(SPACE, "random", objectives=TEXTS, features=sizes, journal=file) as again:
        drive(again, 5)
        assert again.history.reference == reference
    assert [line.count('"reference"') for line in file.read_text().splitlines()].count(1) == 1


def test_a_very_bad_result_does_not_set_the_reference_point() -> None:
    search = Search(SPACE, "random", objectives=TEXTS, features=sizes)
    for n in range(10):
        (trial,) = search.ask()
        search.tell(trial, -1e6 if n == 4 else accuracy(trial.config))
    search.ask()
    reference = search.history.reference
    assert reference is not None
    assert -20 < reference.values[0] < 1


def test_hypervolume_only_grows() -> None:
    search = Search(
        SPACE, "evolution", objectives=TEXTS, features=sizes, population=8, tournament=3
    )
    drive(search, 30)
    course = search.history.hypervolume_so_far()
    assert course == sorted(course)
    assert course[-1] == pytest.approx(search.history.hypervolume)
    assert course[-1] > course[9] > 0


def test_another_journal_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    Search(SPACE, "random", objectives=TEXTS, features=sizes, journal=file).close()
    with pytest.raises(NasboError, match="objectives acc max, params min, not acc max, layers min"):
        Search(SPACE, "random", objectives=["acc max", "layers min"], features=sizes, journal=file)


def test_repeats_are_means_of_all_objectives() -> None:
    search = Search(SPACE, "random", objectives=["acc max", "energy min"])
    (trial,) = search.ask()
    search.tell(trial, {"acc": 0.5, "energy": 3.0})
    (run,) = search.repeat(search.history.trial(0))
    search.start(run)
    search.tell(run, {"acc": 0.7, "energy": 5.0})
    assert search.history.objectives.values(search.trials[0]) == pytest.approx((0.6, 4.0))


def test_one_objective_writes_the_lines_that_it_always_did(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    with Search(SPACE, "random", mode="max", notes={"metric": "acc"}, journal=file) as search:
        search.observe({"depth": 1, "width": 8, "rate": 0.01}, 0.3)
        drive(search, 3, plain=True)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["objectives"] == [{"metric": "acc", "mode": "max"}]
    assert set(lines[1]) >= {"event", "trial", "config", "subspace", "value", "origin"}
    assert "metrics" not in lines[1]
    assert {line["event"] for line in lines} == {
        "settings", "observed", "round", "suggested", "started", "ended",
    }  # fmt: skip


def test_numbers_that_are_no_features_can_be_objectives() -> None:
    def numbers(config: Config) -> dict[str, Any]:
        return {**sizes(config), "features": ["layers"]}

    search = Search(SPACE, "attnbo", objectives=TEXTS, features=Features(numbers))
    assert search.history.objectives.further[0].is_known
    assert search.history.settings is not None
    assert search.history.settings.notes["features"] == ["layers"]


SMALL = {"x": {"type": "float", "range": [0, 1]}, "n": {"type": "int", "range": [1, 17]}}


def half_known(config: Config) -> dict[str, float]:
    """Numbers that cannot be had of large configs."""
    if config["n"] > 12:
        raise ValueError("too large to describe")
    return {"cost": float(config["n"])}


def run_small(n: int, **more: Any) -> Search:
    search = Search(SMALL, objectives=["acc max", "cost min"], features=half_known, **more)
    for _ in range(n):
        for trial in search.ask(1):
            if search.lacking(trial.id, {"acc": 0.5}):
                search.tell(trial, error="no result")
            else:
                search.tell(trial, {"acc": trial.config["x"]})
    return search


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("method", ["attnbo", "evolution", "random"])
def test_configs_that_cannot_be_described_hold_nothing_up(method: str) -> None:
    search = run_small(16, method=method)
    states = {trial.id: trial.state for trial in search.trials}
    assert set(states.values()) == {"finished", "failed"}
    assert all((states[t.id] == "failed") == (t.config["n"] > 12) for t in search.trials)
    reference = search.history.reference
    assert reference is not None
    assert reference.values[1] == 12, "of the configs that can be described"


def test_known_numbers_that_are_not_finite_do_not_set_the_reference_point() -> None:
    def cost(config: Config) -> dict[str, float]:
        return {"cost": math.nan if config["n"] == 16 else float(config["n"])}

    search = Search(SMALL, objectives=["acc max", "cost min"], features=cost)
    for _ in range(13):
        (trial,) = search.ask(1)
        if search.lacking(trial.id, {"acc": 0.5}) or trial.config["n"] == 16:
            search.tell(trial, error="no result")
        else:
            search.tell(trial, {"acc": trial.config["x"]})
    assert search.history.reference is not None
    assert search.history.reference.values[1] == 15
    assert {trial.source for trial in search.trials} == {"design", "model"}


@pytest.mark.parametrize("second", ["cost min", "loss min"])
def test_long_histories_are_thinned_without_falling_back(second: str) -> None:
    search = Search(
        SMALL, objectives=["acc max", second], features=lambda c: {"cost": c["n"]}, max_rows=12
    )
    for _ in range(15):
        (trial,) = search.ask(1)
        x, n = trial.config["x"], trial.config["n"]
        search.tell(trial, {"acc": x * (1 - x) + n / 16, "loss": (x - 0.7) ** 2 + n / 8})
    assert {trial.source for trial in search.trials} == {"design", "model"}


def test_numbers_of_numpy_count() -> None:
    assert Objective("acc").value_in({"acc": np.float32(0.5)}) == 0.5
    assert Objective("acc").value_in({"acc": np.int64(3)}) == 3
    assert Objective("acc").value_in({"acc": "0.5"}) is None
    assert Objective("acc").value_in({"acc": True}) is None


@pytest.mark.parametrize("name", ["val/acc", "top-1", "val-loss", "1"])
def test_names_with_signs_are_no_expressions(name: str) -> None:
    assert Objective(name).names == (name,)
    assert Objective(name).value_in({"val": 0.5, "loss": 0.2, "acc": 0.1, "top": 3}) is None


@pytest.mark.parametrize("told", [math.nan, {"acc": math.nan}])
def test_a_diverged_trial_needs_no_other_values(told: Any) -> None:
    search = Search(SMALL, objectives=["acc max", "loss min"])
    (trial,) = search.ask(1)
    search.tell(trial, told)
    assert search.trials[0].cause == "diverged"


def test_hypervolume_is_the_last_of_its_course() -> None:
    search = run_small(16, method="random")
    assert search.history.hypervolume == pytest.approx(search.history.hypervolume_so_far()[-1])
