"""Finalization of sweeps on a real Ray: finalists, best/ and its model card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from rich.console import Console

from nasbo.finish.card import mean_text
from nasbo.finish.finalists import FINAL_FOLDER, Wish
from nasbo.finish.finalize import BEST_FOLDER, finalize
from nasbo.start import Display, start_sweep
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.status import status
from tests.finish.test_finalists import searched

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


def words(console: Console) -> str:
    return console.export_text()


def test_a_sweep_ends_with_its_best_network(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s")
    console = Console(record=True, width=200)
    wish = Wish(top=2, recipe="short", seeds=2)
    hurried = replace(wish, settings={"time_limit_s": 1e-3})
    assert finalize(folder, hurried, console) == 1
    assert "continue with: nasbo finalize" in words(console)
    assert not (folder / BEST_FOLDER).exists()
    assert finalize(folder, wish, console) == 0
    assert status(SweepFolder(folder / FINAL_FOLDER))["state"] == "finished"
    final = SweepFolder(folder / FINAL_FOLDER).history
    seeds = {run.metrics["trial_seed"] for run in final.runs}
    assert len(seeds) == len(final.runs) == 4
    best = folder / BEST_FOLDER
    card = json.loads((best / "card.json").read_text())
    first = final.trials[0]
    assert card["finalists"][0]["values"] == [run.value for run in first.runs]
    assert card["provenance"] == {"data_hash": "abc123", "n_train": 50}
    assert card["search_provenance"] == {}
    assert card["versions"]["ray"]
    text = (best / "README.md").read_text()
    assert f"look at {best}" in text
    assert "its final_loss was measured afterwards and decided nothing" in text
    assert f"nasbo finalize {folder} --top 2 --recipe short --seeds 2" in text
    assert mean_text(first.values) in text
    assert "data_hash abc123" in text
    assert "params: 7" in text
    assert float((best / "network.txt").read_text()) == pytest.approx(
        2 * (first.first.value or 0.0)
    )
    assert yaml.safe_load((best / "architecture.yaml").read_text())["config"] == first.config
    curve = (best / "curve.csv").read_text().splitlines()
    assert curve[0].startswith("step,loss")
    assert "final_loss" in curve[0]
    assert len(curve) == 3
    before = sorted(path.name for path in best.iterdir())
    assert finalize(folder, wish, console) == 0  # nothing is trained again, best/ is written again
    assert SweepFolder(folder / FINAL_FOLDER).history.n_ended == 2
    assert sorted(path.name for path in best.iterdir()) == before
    assert "finalists, by their rank in the search" in words(console)


def test_a_trainer_without_abilities_still_gets_config_and_values(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s", "tests.tune.toy:simulation")
    console = Console(record=True, width=200)
    assert finalize(folder, Wish(top=3, choose="test"), console) == 0
    assert "offers no export(config, trial_folder, folder, options)" in words(console)
    best = folder / BEST_FOLDER
    names = sorted(path.name for path in best.iterdir())
    assert names == ["README.md", "architecture.yaml", "card.json", "curve.csv"]
    text = (best / "README.md").read_text()
    assert "chosen by its loss, the best mean of 3 finalists over their final trainings" in text
    card = json.loads((best / "card.json").read_text())
    assert card["finalists"][0]["values"] == [card["finalists"][0]["search_values"][0]]


def test_finalists_that_are_measured_as_in_the_search_are_chosen_by_their_means(
    tmp_path: Path,
) -> None:
    """The best trial of the search was lucky: its final trainings are worse
    than those of the second.
    """
    trainer = "tests.finish.lucky:train"
    folder = searched(tmp_path / "s", trainer)
    history = SweepFolder(folder).history
    console = Console(record=True, width=200)
    assert finalize(folder, Wish(top=2, seeds=2), console) == 0
    card = json.loads((folder / BEST_FOLDER / "card.json").read_text())
    first, second = (fmean(one["values"]) for one in card["finalists"])
    assert second < first, "the trainer sees to that"
    assert (card["best"], card["chosen_by"]) == (2, "means")
    config = yaml.safe_load((folder / BEST_FOLDER / "architecture.yaml").read_text())["config"]
    assert config == history.ranked()[1].config
    assert "finalist 2 was chosen by its loss, the best mean of 2 finalists" in words(console)


@pytest.mark.slow
def test_the_shipped_trainer_from_sweep_to_onnx(tmp_path: Path) -> None:
    import trainers
    from trainers import evaluate

    settings = {
        "trainer_options": ("recipe=tiny",), "trials": 3, "slots": "2", "cpus_per_trial": 0.5,
        "constraints": ("parameters<=5e5",), "method": "random",
    }  # fmt: skip
    folder = tmp_path / "s"
    assert start_sweep("nas_cifar10", folder, settings, Display(Console(quiet=True))) == 0
    wish = Wish(top=2, recipe="tiny", options={"epochs": 3})
    assert finalize(folder, wish, Console(quiet=True)) == 0
    card = json.loads((folder / BEST_FOLDER / "card.json").read_text())
    best = card["finalists"][0]
    assert best["facts"]["onnx_difference"] <= 1e-4
    assert best["trainings"][0]["test_accuracy"] == best["values"][0]
    assert card["search_provenance"]["data_hash"] == best["trainings"][0]["data_hash"]
    network = trainers.load(folder / BEST_FOLDER)
    assert sum(weight.numel() for weight in network.parameters()) == best["facts"]["params"]
    assert evaluate.main([str(folder / BEST_FOLDER)]) == 0
