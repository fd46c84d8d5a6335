"""Method attnbo: options, batches, repeats, and found optima."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasbo.acquisition import ACQUISITIONS, Pointwise
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.methods.attnbo import AttnBO
from nasbo.methods.base import Suggestion, Task
from nasbo.search import Search
from nasbo.space import Config, load_space
from nasbo.surrogates.attention import AttentionGP
from nasbo.sweeps.status import expects_nothing

ROOT = Path(__file__).parents[2]


def jenatton(config: Config) -> float:
    inner = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (name,) = inner.keys() & config.keys()
    return float(config[name] ** 2 + inner[name] + config.get("r8", config.get("r9")))


def after_design(space: str = "simulation", seed: int = 0, **options: Any) -> Search:
    search = Search(space, method="attnbo", mode="min", seed=seed, **options)
    for trial in search.ask(8):
        search.tell(trial, jenatton(trial.config))
    return search


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"preset": "huge"}, "preset must be one of default, paper, got 'huge'"),
        ({"embedding": "names"}, "embedding must be one of structure, none"),
        ({"pooling": "max"}, "pooling must be one of mean, token"),
        ({"attention": "maybe"}, "attention must be one of on, off"),
        ({"attention": "features"}, "attention must be one of on, off, got 'features'"),
        ({"embedding": "none"}, "embedding can be 'none' in preset 'paper' only"),
        ({"pooling": "token"}, "pooling can be 'token' in preset 'paper' only"),
        ({"acquisition": "ei"}, "acquisition must be one of auto, log_ei"),
        ({"max_rows": 0}, "max_rows must be an integer >= 1"),
        ({"preset": "paper", "max_rows": 99}, "max_rows can be given in preset 'default' only"),
        ({"learning_rate": 0.01}, "learning_rate is for preset 'paper'"),
        ({"preset": "paper", "learning_rate": -1}, "0 < learning_rate"),
        ({"preset": "paper", "attention": "off"}, "attention can be 'off' in preset 'default'"),
    ],
)
def test_bad_options_name_the_known_ones(options: dict[str, Any], text: str) -> None:
    with pytest.raises(NasboError, match=text):
        AttnBO(load_space("simulation"), **options)


def test_visiting_every_one_of_too_many_subspaces_is_refused() -> None:
    with pytest.raises(NasboError, match="21760"):
        AttnBO(load_space("nas_cifar10_conditional"), acquisition="log_ei")


class Greedy(Pointwise):
    """The posterior mean as the acquisition, in all subspaces."""

    name = "greedy"
    is_sampled = False

    def score(self, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return mean


def test_an_acquisition_of_the_registry_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACQUISITIONS, "greedy", Greedy)
    with pytest.raises(NasboError, match=r"one of auto, .*, greedy, got 'greed'"):
        AttnBO(load_space("simulation"), acquisition="greed")
    with pytest.raises(NasboError, match=r"'greedy' visits every .*'auto' or one of 'sampled_log_"):
        AttnBO(load_space("nas_cifar10_conditional"), acquisition="greedy")
    (trial,) = after_design(acquisition="greedy").ask(1)
    assert (trial.source, trial.info["acquisition"]) == ("model", "greedy")
    assert trial.acquisition == ("greedy", trial.info["greedy"])


def test_options_reach_the_surrogates() -> None:
    space = load_space("simulation")
    paper = AttnBO(
        space, preset="paper", learning_rate=0.01, embedding="none", pooling="token"
    ).make_surrogate(Task.empty(space, 7))
    assert isinstance(paper, AttentionGP)
    assert paper.settings.training.learning_rate == 0.01
    assert (paper.settings.shape.embedding, paper.settings.shape.pooling) == ("none", "token")
    assert paper.seed == 7
    task = Task.empty(space, 0)
    sizes = {
        attention: len(AttnBO(space, attention=attention).make_surrogate(task).priors.means)
        for attention in (True, False, "on", "off")
    }
    assert sizes[False] == sizes["off"] != sizes["on"] == sizes[True]


def test_round_has_the_best_config_of_every_subspace() -> None:
    search = after_design()
    trials = search.ask(4)
    assert sorted(trial.subspace for trial in trials) == [0, 1, 2, 3]
    assert [trial.source for trial in trials] == ["model"] * 4
    scores = [trial.info["log_ei"] for trial in trials]
    assert scores == sorted(scores, reverse=True)
    assert {trial.info["acquisition"] for trial in trials} == {"log_ei"}


def test_larger_batches_and_pending_configs_do_not_repeat() -> None:
    search = after_design()
    trials = search.ask(3) + search.ask(6)
    assert len({config_key(trial.config) for trial in search.history.trials}) == 17
    assert all(trial.source == "model" for trial in trials)


def test_pending_configs_change_the_next_one() -> None:
    alone, busy = after_design(), after_design()
    (first,) = alone.ask(1)
    (running,) = busy.ask(1)
    assert running.config == first.config
    (second,) = busy.ask(1)
    name = next(n for n in ("x4", "x5", "x6", "x7") if n in first.config)
    is_elsewhere = name not in second.config
    assert is_elsewhere or abs(second.config[name] - first.config[name]) > 0.05


def test_it_finds_the_optimum_of_the_simulation() -> None:
    search = after_design(seed=4)
    for _ in range(5):
        for trial in search.ask(4):
            search.tell(trial, jenatton(trial.config))
    assert search.best.value < 0.105
    assert all(trial.source in ("design", "model") for trial in search.history.trials)


def one_by_one(n: int, seed: int = 0) -> Search:
    search = after_design(seed=seed)
    for _ in range(n):
        (trial,) = search.ask(1)
        search.tell(trial, jenatton(trial.config))
    return search


def test_a_model_that_expects_nothing_more_is_doubted_now_and_then() -> None:
    search, again = one_by_one(30), one_by_one(30)
    late = search.history.trials[20:]
    doubted = [trial for trial in late if "less sure" in trial.info.get("reason", "")]
    assert 0 < len(doubted) < len(late)
    assert not any("less sure" in t.info.get("reason", "") for t in search.history.trials[:10])
    assert [t.config for t in again.history.trials] == [t.config for t in search.history.trials]


def test_doubt_takes_batches_and_running_configs() -> None:
    search = one_by_one(24)
    for _ in range(8):
        running = search.ask(2)
        trials = search.ask(4)
        for trial in (*trials, *running):
            search.tell(trial, jenatton(trial.config))
    keys = [config_key(trial.config) for trial in search.history.trials]
    assert len(set(keys)) == len(keys)
    assert any("less sure" in trial.info.get("reason", "") for trial in search.history.trials[32:])


def test_constant_scores_do_not_need_a_fallback() -> None:
    search = Search("svm", method="attnbo", seed=1)
    for _ in range(12):
        (trial,) = search.ask(1)
        search.tell(trial, 1.0)
    assert {trial.source for trial in search.history.trials} == {"design", "model"}


@pytest.mark.parametrize(
    "options",
    [
        {"attention": "off"},
        {"acquisition": "thompson"},
        {"acquisition": "ucb"},
        {"acquisition": "log_pi"},
    ],
)
def test_variants_run(options: dict[str, Any]) -> None:
    trials = after_design(**options).ask(2)
    assert [trial.source for trial in trials] == ["model", "model"]


@pytest.mark.slow
@pytest.mark.parametrize("learning_rate", [None, 0.01])
def test_the_papers_preset_runs(learning_rate: float | None) -> None:
    (trial,) = after_design(preset="paper", learning_rate=learning_rate).ask(1)
    assert trial.source == "model"
    assert trial.info["preset"] == "paper"


def test_many_subspaces_say_how_they_were_searched() -> None:
    search = Search("nas_cifar10_conditional", method="attnbo", mode="max", seed=0)
    for trial in search.ask(24):
        search.tell(trial, trial.config["learning_rate"])
    (trial,) = search.ask(1)
    assert trial.source == "model"
    assert trial.info["acquisition"] == "sampled_log_ei"


PROGRAM = """
import json, sys, torch
from tests.methods.test_attnbo import after_design
torch.set_num_threads(int(sys.argv[1]))
print(json.dumps([trial.config for trial in after_design(seed=2).ask(5)]))
"""


def test_another_process_suggests_the_same() -> None:
    run = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(torch.get_num_threads())]
    there = subprocess.run(run, capture_output=True, check=True, cwd=ROOT).stdout
    here = [trial.config for trial in after_design(seed=2).ask(5)]
    assert json.loads(there) == here


def test_values_that_need_quotes_open_branches_too() -> None:
    space = {
        "kernel": {
            "type": "choice",
            "range": ["3x3", "5 x 5", None],
            "submodule": {
                "3x3": {"a": {"type": "float", "range": [0, 1]}},
                "5 x 5": {"b": {"type": "choice", "range": [None, 1, 2]}},
            },
        }
    }
    search = Search(space, method="attnbo", seed=0)
    for _ in range(3):
        for trial in search.ask(3):
            search.tell(trial, float(len(str(trial.config))))
    assert {trial.source for trial in search.trials} <= {"design", "model"}


@pytest.mark.parametrize("name", ["attnbo", "gp"])
def test_a_batch_has_no_near_twins(name: str) -> None:
    """A model that is certain of the optimum must not fill a batch with near copies of it."""
    search = Search({"x": {"type": "float", "range": [0, 1]}}, name, seed=0)
    for _ in range(10):
        (trial,) = search.ask(1)
        search.tell(trial, (trial.config["x"] - 0.3) ** 2)
    batch = [trial.config["x"] for _ in range(2) for trial in search.ask(4)]
    assert min(np.diff(sorted(batch))) >= 0.02


@pytest.mark.parametrize("acquisition", ["auto", "log_pi"])
def test_a_hopeless_subspace_is_said_to_be_one(acquisition: str) -> None:
    unit = {"type": "float", "range": [0, 1]}
    submodule = {"a": {"x": unit}, "b": {"y": unit}}
    kind = {"type": "choice", "range": ["a", "b"], "submodule": submodule}
    search = Search({"kind": kind}, seed=0, acquisition=acquisition)
    for _ in range(3):
        for trial in search.ask(2):
            x = trial.config.get("x")
            search.tell(trial, 100.0 + trial.config["y"] if x is None else (x - 0.3) ** 2)
    for trial in search.ask(2):
        hopeless = trial.config["kind"] == "b"
        assert trial.info.get("expects_nothing", False) == hopeless
    (words,) = expects_nothing(search.history)
    name = "log-PI" if acquisition == "log_pi" else "log-EI"
    assert re.fullmatch(rf"kind=b \({name} -\d\S+\)", words), words


def test_a_method_without_acquisition_can_expect_nothing() -> None:
    search = Search("svm", "random", seed=0)
    config = search.space.sample(np.random.default_rng(0))
    (trial,) = search.add_round([Suggestion(config, "model", {"expects_nothing": True})], 1.0)
    assert expects_nothing(search.history) == [search.history.subspace(trial).id]
