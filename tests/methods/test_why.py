"""Explanation of a trial: leave-one-out prediction, improvement, neighbours, parameters."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from nasbo.acquisition import LogEI
from nasbo.gp.transform import Scale
from nasbo.history import History
from nasbo.history.data import Data
from nasbo.methods import make_method
from nasbo.methods.base import Task
from nasbo.methods.explanation import Why
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.why import expected_improvement
from nasbo.search import Search
from nasbo.space import Config
from nasbo.testing import SPACES
from tests.events import finished

from .functions import searched

UNIT = {"type": "float", "range": [0, 1]}
TREE = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {"a": {"x": UNIT}, "b": {"x": UNIT, "y": UNIT}},
    },
    "z": UNIT,
}
SURROGATES = ["addtree", "arc", "attnbo", "bandits", "gp", "independent", "tree"]


def straight(mode: str, n: int = 12) -> Search:
    """The score is linear in x; z has no effect."""
    search = Search({"x": UNIT, "z": UNIT}, method="gp", mode=mode)
    for at in range(n):
        x = (at + 0.5) / n
        search.observe({"x": x, "z": (at * 5 % n) / n}, 10.0 * x if mode == "max" else -10.0 * x)
    return search


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_finished_trial_is_predicted_without_its_own_result(mode: str) -> None:
    search = straight(mode)
    sign = 1.0 if mode == "max" else -1.0
    search.observe({"x": 0.5, "z": 0.5}, sign * 900.0)  # nothing else indicates this
    *_, outlier = search.history.trials
    why = make_method("gp", search.space).why(search.history, outlier)
    assert why.reason == ""
    assert why.n_results == 12
    assert why.prediction is not None
    value, low, high = why.prediction
    assert low < value < high
    assert value == pytest.approx(sign * 5.0, abs=0.5)
    assert why.noise_sd is not None
    assert why.noise_sd > 0.0


def test_the_prediction_is_that_of_a_model_of_the_others() -> None:
    search = straight("max")
    history, trial = search.history, search.history.trials[4]
    method = make_method("gp", search.space)
    assert isinstance(method, SurrogateMethod)
    model = method.make_surrogate(Task.empty(search.space, 0))
    model.fit(Data.of_trials(search.space, [row for row in history.rows() if row[0].id != 4]))
    subspace = history.subspace(trial)
    mean, variance = model.posterior(
        subspace, torch.from_numpy(subspace.encode(trial.config)[None])
    )
    sd = float(variance.sqrt())
    wanted = [model.scale.to_score(float(mean) + k * sd) for k in (0, -1, 1)]
    why = method.why(history, trial)
    assert why.prediction == pytest.approx(tuple(wanted))
    log_ei = LogEI().prepare(model, Data.of_trials(search.space, [])).score(mean, variance)
    assert why.improvement == pytest.approx(math.exp(float(log_ei)) * model.scale.sd, rel=1e-4)


@pytest.mark.parametrize("method", SURROGATES)
def test_an_open_trial_has_the_posterior_of_now(method: str) -> None:
    search = searched(method, 10)
    (trial,) = search.ask(1)
    why = make_method(method, search.space).why(search.history, trial)
    assert (why.reason, why.n_results, why.trial) == ("", 10, trial)
    assert why.prediction is not None
    assert all(map(math.isfinite, why.prediction))
    assert why.improvement is not None
    assert why.improvement >= 0.0
    assert all(one.trial.id != trial.id for one in why.nearest)
    again = make_method(method, search.space).why(search.history, trial)
    assert again == why


def test_the_papers_model_is_asked_as_well() -> None:
    search = searched("random", 8)
    trial = search.history.trials[3]
    why = make_method("attnbo", search.space, preset="paper").why(search.history, trial)
    assert (why.reason, why.n_results) == ("", 7)
    assert why.prediction is not None
    assert why.nearest[0].correlation > 0.5


def test_a_failed_trial_is_explained_from_the_others() -> None:
    search = searched("gp", 9)
    (trial,) = search.ask(1)
    search.tell(trial, error="diverged")
    failed = search.history.trial(trial.id)
    why = make_method("gp", search.space).why(search.history, failed)
    assert (failed.value, why.reason, why.n_results) == (None, "", 9)


def test_a_twin_does_not_give_the_result_away() -> None:
    search = straight("max", 6)
    first, second = search.ask(2)
    search.record(finished(first.id, 3.0))
    search.record(finished(second.id, 3.0, twin=first.id))
    history: History = search.history
    assert history.trial(second.id).twin == first.id
    for number in (first.id, second.id):
        why = make_method("gp", search.space).why(history, history.trial(number))
        assert why.n_results == 6
        assert not {first.id, second.id} & {one.trial.id for one in why.nearest}


def _why(search: Search, config: Config, method: str = "gp") -> Why:
    search.observe(config, 0.0)
    return make_method(method, search.space).why(search.history, search.history.trials[-1])


@pytest.mark.parametrize("mode", ["min", "max"])
def test_parameters_speak_for_or_against(mode: str) -> None:
    """The score improves by 10 per unit of x; the typical x is the lower median, 5.5 / 12."""
    good = _why(straight(mode), {"x": 0.95, "z": 0.3})
    gains = {one.parameter: one for one in good.effects}
    assert next(iter(gains)) == "x", "the largest first"
    assert gains["x"].gain == pytest.approx(10.0 * (0.95 - 5.5 / 12), abs=0.5)
    assert (gains["x"].value, gains["x"].typical) == (0.95, pytest.approx(5.5 / 12))
    assert abs(gains["z"].gain) < 0.2
    bad = _why(straight(mode), {"x": 0.05, "z": 0.3})
    assert bad.effects[0].gain < -3.0


def test_a_parameter_at_its_typical_value_has_no_effect() -> None:
    why = _why(straight("max"), {"x": 5.5 / 12, "z": 0.3})
    assert [one.parameter for one in why.effects] == ["z"]


def _branches() -> Search:
    """b is better by 4; most results are of b, and their y is 0.2 or 0.8, mostly 0.8."""
    search = Search(TREE, method="gp", mode="max")
    for at in range(14):
        config: dict[str, Any] = {
            "kind": "b" if at % 3 else "a",
            "x": at / 14,
            "z": at * 3 % 14 / 14,
        }
        if config["kind"] == "b":
            config["y"] = 0.2 if at % 7 == 1 else 0.8
        search.observe(config, 4.0 * (config["kind"] == "b") + 0.1 * config["x"])
    return search


def test_a_structural_parameter_brings_its_typical_children() -> None:
    why = _why(_branches(), {"kind": "a", "x": 0.4, "z": 0.5}, "attnbo")
    effect = next(one for one in why.effects if one.parameter == "kind")
    assert (effect.value, effect.typical) == ("a", "b")
    assert effect.gain == pytest.approx(-4.0, abs=1.0)
    assert "y" not in {one.parameter for one in why.effects}


def test_nearest_configs_and_where_they_differ() -> None:
    search = _branches()
    search.observe({"kind": "b", "x": 0.41, "y": 0.8, "z": 0.5}, 4.0)
    twin = search.history.trials[-1]
    why = _why(search, {"kind": "b", "x": 0.4, "y": 0.8, "z": 0.5}, "attnbo")
    first, *others = why.nearest
    assert first.trial.id == twin.id
    assert first.differences == {"x": (0.4, 0.41)}
    correlations = [one.correlation for one in why.nearest]
    assert correlations == sorted(correlations, reverse=True)
    assert 1.0 + 1e-9 >= first.correlation > others[0].correlation


def test_what_a_neighbour_does_not_have_is_a_difference() -> None:
    search = Search(TREE, method="gp", mode="max")
    for at in range(6):
        search.observe({"kind": "a", "x": at / 6, "z": 0.5}, float(at))
    why = _why(search, {"kind": "b", "x": 0.4, "y": 0.8, "z": 0.5})
    assert why.nearest
    assert why.nearest[0].differences["kind"] == ("b", "a")
    assert why.nearest[0].differences["y"] == (0.8, None)
    assert "z" not in why.nearest[0].differences


def test_a_model_per_subspace_has_no_neighbours_elsewhere() -> None:
    why = _why(_branches(), {"kind": "a", "x": 0.4, "z": 0.5}, "independent")
    assert why.nearest
    assert {one.trial.config["kind"] for one in why.nearest} == {"a"}
    assert why.noise_sd is None


@pytest.mark.parametrize("shape", sorted(SPACES))
def test_spaces_of_every_shape(shape: str) -> None:
    search = Search(SPACES[shape], method="random", mode="min", seed=1)
    for trial in search.ask(6):
        search.tell(trial, float(len(str(trial.config)) % 7 + 0.1 * trial.id))
    for trial in search.history.trials[-2:]:
        why = make_method("attnbo", search.space).why(search.history, trial)
        assert why.reason == ""
        labels = {one.label for one in search.history.subspace(trial).coordinates}
        assert {one.parameter for one in why.effects} <= labels


@pytest.mark.parametrize("method", ["random", "evolution", "casmopolitan", "tpe"])
def test_methods_without_a_surrogate_say_so(method: str) -> None:
    search = searched("random", 9)
    why = make_method(method, search.space).why(search.history, search.history.trials[0])
    assert why == Why(search.history.trials[0], "the method has no surrogate of all results")


def test_too_few_results() -> None:
    search = Search(TREE, method="gp")
    first, second = search.ask(2)
    search.tell(first, 1.0)
    search.tell(second, 2.0)
    why = make_method("gp", search.space).why(search.history, search.history.trials[0])
    assert why == Why(search.history.trials[0], "fewer than two other results so far")


def test_a_model_that_cannot_be_trained_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ArithmeticError("not positive")

    search = searched("random", 9)
    monkeypatch.setattr("nasbo.surrogates.one_hot.OneHotGP.fit", fail)
    why = make_method("gp", search.space).why(search.history, search.history.trials[0])
    assert why.reason == "the surrogate could not be trained: not positive"


@pytest.mark.parametrize(
    ("mean", "sd", "incumbent"), [(0.0, 1.0, 0.5), (1.0, 0.3, 0.0), (0, 0.1, 0.7)]
)
def test_expected_improvement_in_units_of_the_score(
    mean: float, sd: float, incumbent: float
) -> None:
    """Against BoTorch's EI on a linear scale, and the closed form of a lognormal on a log scale."""
    log_ei = LogEI(incumbent).score(torch.tensor([mean]).double(), torch.tensor([sd**2]).double())
    found = expected_improvement(Scale(3.0, 2.0), mean, sd, incumbent)
    assert found == pytest.approx(2.0 * math.exp(float(log_ei)), rel=1e-4)
    m, s, best = -(3.0 + 2.0 * mean), 2.0 * sd, 3.0 + 2.0 * incumbent
    closed = math.exp(-best) * _phi((-best - m) / s)
    closed -= math.exp(m + s * s / 2) * _phi((-best - m - s * s) / s)
    found = expected_improvement(Scale(3.0, 2.0, 5.0), mean, sd, incumbent)
    assert found == pytest.approx(closed, rel=1e-3)


def _phi(u: float) -> float:
    return 0.5 * math.erfc(-u / math.sqrt(2.0))
