"""Spaces of objectives of Optuna, from what they suggest."""

from __future__ import annotations

from typing import Any

import optuna
import pytest

from nasbo.errors import SpaceError
from nasbo.interchange.from_optuna import load_objective, trace


def _svm(trial: Any) -> float:
    c = trial.suggest_float("C", 1e-3, 1e3, log=True)
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf"])
    if kernel == "poly":
        trial.suggest_int("degree", 2, 5)
    if kernel != "linear":
        trial.suggest_float("gamma", 1e-3, 1e3, log=True)
    return float(c)


def test_branches_are_found() -> None:
    gamma = {"type": "float", "range": [0.001, 1000.0], "log": True}
    grown = trace(_svm)
    assert grown.losses == grown.notes == ()
    assert grown.space.to_dict() == {
        "C": {"type": "float", "range": [0.001, 1000.0], "log": True},
        "kernel": {
            "type": "choice",
            "range": ["linear", "poly", "rbf"],
            "submodule": {
                "poly": {"degree": {"type": "int", "range": [2, 6]}, "gamma": gamma},
                "rbf": {"gamma": gamma},
            },
        },
    }


def test_layers_are_a_list() -> None:
    def objective(trial: Any) -> float:
        for at in range(trial.suggest_int("n_layers", 1, 4)):
            trial.suggest_int(f"units_l{at}", 4, 128, log=True)
            if trial.suggest_categorical(f"kind_l{at}", ["dense", "dropout"]) == "dropout":
                trial.suggest_float(f"rate_l{at}", 0.1, 0.5)
        return 0.0

    grown = trace(objective)
    assert grown.losses == ()
    assert "'units_l0' and its like are the list 'units_l'" in grown.notes
    assert list(grown.space.to_dict()) == ["n_layers"]
    assert grown.space.n_subspaces == 2 + 4 + 8 + 16
    values = {"n_layers": 2, "units_l0": 8, "kind_l0": "dense", "units_l1": 9, "kind_l1": "dropout",
              "rate_l1": 0.2}  # fmt: skip
    config = grown.translation.config(values)
    assert config["rate_l"] == [None, 0.2]
    assert grown.translation.values(config) == values


def test_conditions_on_two_parameters_are_nested() -> None:
    def objective(trial: Any) -> float:
        deep = trial.suggest_categorical("deep", [True, False])
        wide = trial.suggest_int("wide", 1, 8)
        mood = trial.suggest_categorical("mood", ["calm", "wild"])
        if deep and wide in (3, 5):
            trial.suggest_float("x", 0, 1)
        if deep != (mood == "wild"):  # neither of them says anything by itself
            trial.suggest_float("y", 0, 1)
        trial.suggest_float("z", 0, 1)
        return 0.0

    grown = trace(objective)
    assert grown.losses == ()
    names = {
        (deep, wide, mood): {*"xyz"} & {*values}
        for deep in (True, False)
        for wide in (1, 3, 4, 5, 8)
        for mood in ("calm", "wild")
        for values in [_names(grown, deep=deep, wide=wide, mood=mood)]
    }
    for (deep, wide, mood), found in names.items():
        wanted = {"z"} | ({"x"} if deep and wide in (3, 5) else set())
        assert found == wanted | ({"y"} if deep != (mood == "wild") else set())


def _names(grown: Any, **wanted: Any) -> set[str]:
    def decide(parameter: Any, _: Any) -> Any:
        return wanted.get(parameter.name, parameter.middle())

    return {*grown.translation.values(grown.space.build_config(decide))}


def test_steps_are_listed() -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float("rate", 0.1, 0.5, step=0.1)
        trial.suggest_int("size", 8, 32, step=8)
        trial.suggest_discrete_uniform("old", 0, 1, 0.25)
        trial.suggest_uniform("plain", 0, 1)
        trial.suggest_loguniform("log", 0.1, 1)
        trial.suggest_int("one", 3, 3)
        return 0.0

    grown = trace(objective)
    tree = grown.space.to_dict()
    assert grown.losses == ()
    assert tree["rate"] == {"type": "ordinal", "range": [0.1, 0.2, 0.3, 0.4, 0.5]}
    assert tree["size"] == {"type": "ordinal", "range": [8, 16, 24, 32]}
    assert tree["old"]["range"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert tree["log"]["log"] is True
    assert tree["one"] == {"type": "choice", "range": [3]}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=50)
    for trial in study.trials:
        assert grown.translation.config(trial.params)


def test_what_a_space_cannot_say_is_named() -> None:
    calls = iter(range(10_000))

    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        if x > 0.4:
            trial.suggest_float("y", 0, 1)
        if next(calls) % 2:
            trial.suggest_float("z", 0, 1)
        trial.suggest_float("w", 0, 1 + x)
        trial.suggest_float("fine", 0, 1, step=1e-6)
        return 0.0

    grown = trace(objective)
    losses = {loss.split("'")[1]: loss for loss in grown.losses if "'" in loss}
    assert "exists under some values of 'x' only" in losses["y"]
    assert "exists" in losses["z"]
    assert "the range of 'w' changes" in losses["w"]
    assert "has 1000001 values in steps of 1e-06" in losses["fine"]
    assert {*grown.space.names} == {"x", "y", "z", "w", "fine"}
    assert grown.space.n_subspaces == 1


def test_training_is_not_run() -> None:
    n_epochs = []

    def objective(trial: Any) -> float:
        trial.suggest_float("x", 0, 1)
        for epoch in range(100):
            n_epochs.append(epoch)
            trial.report(0.5, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 0.0

    grown = trace(objective)
    assert grown.losses == ()
    assert set(n_epochs) == {0}


def test_runs_that_break_off_are_told() -> None:
    def objective(trial: Any) -> float:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            trial.suggest_float("x", 0, 1)
            raise FileNotFoundError("data.csv")
        return 0.0

    grown = trace(objective)
    assert "runs broke off: FileNotFoundError: data.csv" in grown.losses[-1]
    assert "x" in grown.space.names

    with pytest.raises(SpaceError, match=r"own: suggests no parameter; it raised KeyError: 'a'"):
        trace(lambda trial: {}["a"], "own")
    with pytest.raises(
        SpaceError, match=r"a choice of 'k' must be text, a number, .* got \(1, 2\)"
    ):
        trace(lambda trial: trial.suggest_categorical("k", [(1, 2), (3, 4)]))


def test_new_things_at_the_end_are_told() -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float(f"x{trial.number // 10}", 0, 1)
        return 0.0

    grown = trace(objective, max_draws=200)
    assert any("something new still appeared in the last of 200" in one for one in grown.losses)


def test_objectives_are_found(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "interchange_objective.py").write_text("def suggest(trial):\n    return {}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_objective("interchange_objective:suggest")({}) == {}
    with pytest.raises(SpaceError, match=r"has no function 'other'; it has: suggest"):
        load_objective("interchange_objective:other")
    with pytest.raises(SpaceError, match=r"'interchange_nowhere' cannot be imported"):
        load_objective("interchange_nowhere:suggest")
