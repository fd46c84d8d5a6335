"""Export of a training: weights, architecture, ONNX file, and repeated measurement."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import yaml

import trainers
from trainers import cifar10, evaluate, export, onnx_file
from trainers.network import ARCHITECTURE_FILE, WEIGHTS_FILE, NetworkError
from trainers.recipe import InvalidOption
from trainers.session import LocalSession

pytestmark = pytest.mark.usefixtures("cache")
Make = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def finalist(
    tmp_path_factory: pytest.TempPathFactory, cache: Path, uniform_config: Make
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """An exported network, the last report of its training, and the facts of the export."""
    folder = tmp_path_factory.mktemp("finalist")
    options = {**cifar10.final_options({"recipe": "proxy", "split_seed": 3}, "tiny"), "threads": 1}
    config = uniform_config(2, kernel_size=[3, 5, 3, 5], seratio=[0, 8, 0, 16], learning_rate=0.07)
    session = LocalSession(folder / "trial", 11, options)
    cifar10.train(config, session)
    (folder / "best").mkdir()
    facts = cifar10.export(config, folder / "trial", folder / "best", options)
    return folder / "best", session.reports[-1], facts


Finalist = tuple[Path, dict[str, Any], dict[str, Any]]


def test_finalists_train_on_everything_and_see_the_test_set_once(finalist: Finalist) -> None:
    _, last, _ = finalist
    assert (last["n_train"], last["n_validation"]) == (600, 0)
    assert "val_accuracy" not in last
    assert 0 < last["test_accuracy"] < 1
    assert cifar10.final_metric({"evaluate_test": True}) == "test_accuracy"
    assert cifar10.final_metric({"objective": "test"}) == "test_accuracy"
    assert cifar10.final_metric({}) == "val_accuracy"


def test_options_of_finalists(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"recipe": "proxy", "epochs": 2, "data": str(cache.parent), "split_seed": 4}
    assert cifar10.final_options(options, None) == {
        "data": str(cache.parent),
        "split_seed": 4,
        "recipe": "strong",
        "train_on": "train+validation",
        "evaluate_test": True,
        "save": export.TRAINED_FILE,
    }
    with pytest.raises(InvalidOption, match="recipe must be one of"):
        cifar10.final_options(options, "best")
    own = cifar10.final_options({"data": str(tmp_path)}, "quick")
    assert (own["train_on"], own["evaluate_test"]) == ("train", False)
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    assert cifar10.final_options({"data": str(tmp_path)}, "quick")["evaluate_test"]
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert cifar10.final_options({"data": f"~/{tmp_path.name}"}, "quick")["evaluate_test"]


def test_two_lines_give_the_network_back(finalist: Finalist) -> None:
    folder, last, facts = finalist
    network = trainers.load(folder)
    assert network.classes[0] == "airplane"
    assert sum(weight.numel() for weight in network.parameters()) == facts["params"]
    assert facts["params"] == last["trial_params"]
    assert facts["flops"] == facts["flops_counted"] == last["trial_flops"]
    assert facts["latency_ms"] > 0
    kept = torch.load(folder.parent / "trial" / export.TRAINED_FILE, weights_only=True)["weights"]
    for name, weight in network.network.state_dict().items():
        assert torch.equal(weight, kept[name]), name
    bytes_in = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    assert torch.equal(network(bytes_in), network(bytes_in.float()))


def test_onnx_gives_the_same_answers_for_any_batch(finalist: Finalist) -> None:
    folder, _, facts = finalist
    assert facts["onnx_difference"] <= 1e-4
    network = trainers.load(folder)
    session = onnxruntime.InferenceSession(str(folder / onnx_file.ONNX_FILE))
    pixels = np.random.default_rng(7).integers(0, 256, (5, 3, 8, 8)).astype(np.float32)
    (logits,) = session.run(None, {"images": pixels})
    with torch.inference_mode():
        wanted = network(torch.from_numpy(pixels)).numpy()
    assert np.abs(logits - wanted).max() <= 1e-4
    assert np.abs(wanted).max() > 1e-3


def test_onnx_files_of_another_network_are_found_out(finalist: Finalist) -> None:
    folder, _, _ = finalist
    network = trainers.load(folder)
    with torch.no_grad():
        next(network.parameters()).mul_(1.5)
    assert onnx_file.compare(network, folder / onnx_file.ONNX_FILE) > 1e-4


def test_the_cards_numbers_come_again(finalist: Finalist, tmp_path: Path) -> None:
    folder, last, _ = finalist
    found = evaluate.regenerate(folder)
    assert found["test_accuracy"] == (last["test_accuracy"], last["test_accuracy"])
    assert found["params"] == (last["trial_params"], last["trial_params"])
    assert found["flops"] == (last["trial_flops"], last["trial_flops"])
    assert found["onnx_difference"][1] <= 1e-4
    assert evaluate.retrain(folder, tmp_path) == (last["test_accuracy"], last["test_accuracy"])


def test_the_command_of_the_card(finalist: Finalist, capsys: pytest.CaptureFixture[str]) -> None:
    folder, last, facts = finalist
    assert facts["regenerate"] == "python -m trainers.evaluate {folder}"
    assert evaluate.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"test_accuracy    card {last['test_accuracy']}   now {last['test_accuracy']}" in said
    about = yaml.safe_load((folder / ARCHITECTURE_FILE).read_text())
    about["training"]["metrics"]["test_accuracy"] += 0.01
    changed = folder.parent / "changed"
    changed.mkdir()
    (changed / ARCHITECTURE_FILE).write_text(yaml.safe_dump(about))
    (changed / WEIGHTS_FILE).write_bytes((folder / WEIGHTS_FILE).read_bytes())
    assert evaluate.main([str(changed)]) == 1


@pytest.mark.parametrize("damage", ["weights", "architecture", "everything"])
def test_damaged_folders_are_refused(finalist: Finalist, tmp_path: Path, damage: str) -> None:
    folder, _, _ = finalist
    if damage != "everything":
        for name in (ARCHITECTURE_FILE, WEIGHTS_FILE):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    if damage == "weights":
        (tmp_path / WEIGHTS_FILE).write_bytes(b"nothing")
    if damage == "architecture":
        (tmp_path / ARCHITECTURE_FILE).write_text("config: {}")
    with pytest.raises(NetworkError, match="must hold architecture"):
        trainers.load(tmp_path)
    assert evaluate.main([str(tmp_path)]) == 2


def test_without_onnx_the_rest_is_written(
    finalist: Finalist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, _ = finalist
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    about = yaml.safe_load((folder / ARCHITECTURE_FILE).read_text())
    source = folder.parent / "trial"
    facts = cifar10.export(about["config"], source, tmp_path, about["training"]["options"])
    assert "pip install 'nasbo[export]'" in facts["onnx_error"]
    assert sorted(file.name for file in tmp_path.iterdir()) == [ARCHITECTURE_FILE, WEIGHTS_FILE]


@pytest.mark.parametrize("broken", ["export", "runtime", "latency"])
def test_an_onnx_failure_costs_only_the_onnx_file(
    finalist: Finalist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    folder, _, _ = finalist

    def fail(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("no such operator\nand a long story")

    if broken == "export":
        monkeypatch.setattr(torch.onnx, "export", fail)
    elif broken == "runtime":
        monkeypatch.setattr(onnxruntime, "InferenceSession", fail)
    else:
        monkeypatch.setattr(onnx_file, "_median_ms", fail)
        monkeypatch.setattr(onnx_file, "latency_ms", lambda classifier: 1.0)
    about = yaml.safe_load((folder / ARCHITECTURE_FILE).read_text())
    source = folder.parent / "trial"
    facts = cifar10.export(about["config"], source, tmp_path, about["training"]["options"])
    assert facts["onnx_error"].endswith("NotImplementedError: no such operator")
    assert sorted(file.name for file in tmp_path.iterdir()) == [ARCHITECTURE_FILE, WEIGHTS_FILE]


def _copied(folder: Path, into: Path) -> dict[str, Any]:
    for name in (ARCHITECTURE_FILE, WEIGHTS_FILE, onnx_file.ONNX_FILE):
        (into / name).write_bytes((folder / name).read_bytes())
    about: dict[str, Any] = yaml.safe_load((folder / ARCHITECTURE_FILE).read_text())
    return about


def test_a_truncated_onnx_file_is_no_match(
    finalist: Finalist, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _copied(finalist[0], tmp_path)
    whole = (tmp_path / onnx_file.ONNX_FILE).read_bytes()
    (tmp_path / onnx_file.ONNX_FILE).write_bytes(whole[: len(whole) // 2])
    assert evaluate.main([str(tmp_path)]) == 1
    assert "must be an ONNX file of this network" in capsys.readouterr().out


def test_another_networks_onnx_file_or_other_flops_are_no_match(
    finalist: Finalist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = _copied(finalist[0], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(onnx_file, "compare", lambda *_: 2e-4)
        assert evaluate.main([str(tmp_path)]) == 1
    about["training"]["metrics"]["trial_flops"] += 1
    (tmp_path / ARCHITECTURE_FILE).write_text(yaml.safe_dump(about))
    assert evaluate.main([str(tmp_path)]) == 1


def test_numbers_come_again_where_a_seed_was_an_option(
    finalist: Finalist, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = _copied(finalist[0], tmp_path)
    options = {**about["training"]["options"], "seed": 5}
    session = LocalSession(tmp_path / "trial", 11, options)
    cifar10.train(about["config"], session)
    (tmp_path / "best").mkdir()
    cifar10.export(about["config"], tmp_path / "trial", tmp_path / "best", options)
    accuracy = session.reports[-1]["test_accuracy"]
    assert evaluate.main([str(tmp_path / "best"), "--retrain", str(tmp_path / "again")]) == 0
    said = capsys.readouterr().out
    assert f"of the training with seed {session.reports[-1]['trial_seed']};" in said
    assert f"retrained        card {accuracy}   now {accuracy}" in said


def test_data_and_split_are_known_by_their_hashes(finalist: Finalist) -> None:
    _, last, _ = finalist
    found = cifar10.provenance({"recipe": "tiny", "split_seed": 3})
    assert (found["data_hash"], found["split_hash"]) == (last["data_hash"], last["split_hash"])
    other = cifar10.provenance({"recipe": "tiny", "split_seed": 4})
    assert other["data_hash"] == found["data_hash"]
    assert other["split_hash"] != found["split_hash"]
