"""The trainer of timm's networks on real CIFAR-10, and a sweep of what init writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nasbo.starter import write_starter
from nasbo.sweeps import load_sweep
from tests.system.kit import run

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
SCRIPT = Path(__file__).with_name("timm_training.py")
REFUSALS = (
    r"model must be one of timm.list_models\(\), got 'resnet_of_mine'",
    r"test_resnet with \{'heads': 3\} cannot be built: .*heads",
    r"batch_size must be at most n_train = 1500, got 2000",
    r"optimizer must be sgd or adamw, got 'lion'",
)


def test_networks_of_timm_are_trained_as_block_networks_are(tmp_path: Path) -> None:
    found = json.loads(run("-W", "ignore", SCRIPT, folder=tmp_path).splitlines()[-1])
    for name in ("resnet", "vit"):
        one = found[name]
        assert [report["epoch"] for report in one["reports"]] == [1, 2]
        assert one["is_equal"]  # paused after one epoch, and gone on
        assert one["reports"][-1]["params"] == one["summary"]["params"] > 1e5
        assert one["summary"]["flops"] > 1e6
        assert one["summary"]["memory_bytes"] == one["reports"][-1]["predicted_memory"]
        assert one["n_epochs"] == 2
    assert found["resnet"]["reports"][-1]["val_accuracy"] > 0.2  # one in ten by chance
    in_training, of_the_export = found["final"]
    assert of_the_export == pytest.approx(in_training, abs=2e-3)
    assert found["ranks"][0] == 2
    assert len(found["refusals"]) == len(REFUSALS)
    for told, words in zip(found["refusals"], REFUSALS, strict=True):
        assert re.search(words, told)
    assert found["same"]


def test_its_sweep_runs_on_a_folder_of_pictures(tmp_path: Path) -> None:
    write_starter("timm", tmp_path)
    run("pictures.py", folder=tmp_path)
    words = ("run", "sweep.yaml", "--trials", "3", "-o", "epochs=2", "--method", "random")
    run("-m", "nasbo.cli", *words, "--dir", "runs/first", "--address", "local", folder=tmp_path)
    trials = load_sweep(tmp_path / "runs" / "first").trials
    assert {trial.state for trial in trials} == {"finished"}
    assert {trial.metrics["data_hash"] for trial in trials}
    assert trials[0].metrics["params"] != trials[2].metrics["params"]
