"""Data of a trial: user's folders of images, the split and its hash, the test set on demand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from trainers import cifar10
from trainers.dataset import open_dataset
from trainers.recipe import InvalidOption, Recipe, load_recipe
from trainers.session import LocalSession
from trainers.sources import Arrays, DataError
from trainers.train import train

Make = Callable[..., dict[str, Any]]
CLASSES = {"blue": 12, "green": 24, "red": 36}


def _write(folder: Path, per_class: dict[str, int]) -> Path:
    """Noisy images of one colour per class, none of them square."""
    draw = np.random.default_rng(0)
    for number, (name, n) in enumerate(per_class.items()):
        (folder / name).mkdir(parents=True)
        for index in range(n):
            pixels = draw.integers(0, 100, (20, 30, 3), dtype=np.uint8)
            pixels[:, :, 2 - number] += 150
            suffix = ("png", "jpg")[index % 2]
            Image.fromarray(pixels).save(folder / name / f"{index:03d}.{suffix}")
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of 72 images of three classes to train on, and 9 to test on."""
    monkeypatch.setenv("NASBO_DATA", str(tmp_path / "cache"))
    _write(tmp_path / "own/train", CLASSES)
    _write(tmp_path / "own/test", dict.fromkeys(CLASSES, 3))
    return tmp_path / "own"


def _recipe(data: Path | None, **changes: Any) -> Recipe:
    options = {"recipe": "tiny", "n_train": None, "n_validation": 0.25, **changes}
    return load_recipe({**options, "data": None if data is None else str(data)})


def test_a_folder_of_pictures_is_split_by_class(own: Path) -> None:
    data = open_dataset(_recipe(own))
    assert data.classes == ("blue", "green", "red")
    assert torch.bincount(data.train.labels).tolist() == [9, 18, 27]
    assert data.validation is not None
    assert torch.bincount(data.validation.labels).tolist() == [3, 6, 9]
    assert data.test is None
    images, labels = data.train.batch(torch.arange(len(data.train)))
    assert images.shape == (54, 3, 8, 8)
    assert images.mean((0, 2, 3)).abs().max() < 0.3, "normalised by its own mean"
    brightest = images.mean((2, 3)).argmax(1)
    assert torch.equal(brightest, 2 - labels), "every picture has the colour of its class"


def test_a_folder_is_read_once_and_again_when_it_changes(own: Path, tmp_path: Path) -> None:
    before = open_dataset(_recipe(own))
    kept = tmp_path / "cache/folders"
    assert len([path for path in kept.iterdir() if path.is_dir()]) == 1
    assert open_dataset(_recipe(own)).facts == before.facts
    (own / "train/red/000.png").unlink()
    after = open_dataset(_recipe(own))
    assert len(after.train) < len(before.train)
    assert after.facts["data_hash"] != before.facts["data_hash"]


def test_a_network_trains_on_an_own_folder_and_is_tested_once(
    own: Path, tmp_path: Path, uniform_config: Make
) -> None:
    options = {"recipe": "tiny", "is_tensorboard": False, "data": str(own), "n_train": None}
    wanted = {"n_validation": 0.25, "evaluate_test": True, "save": "weights.pt", "epochs": 4}
    session = LocalSession(tmp_path / "trial", 0, {**options, **wanted})
    train(uniform_config(0, batch_size=8), session)
    assert [("test_accuracy" in report) for report in session.reports] == [False] * 3 + [True]
    assert session.reports[-1]["val_accuracy"] > 0.5
    saved = torch.load(tmp_path / "trial/weights.pt", weights_only=True)
    assert saved["classes"] == ["blue", "green", "red"]
    last = list(saved["weights"].values())[-1]
    assert last.shape == (3,), "one output per class"


def test_a_folder_without_test_pictures_cannot_be_tested(tmp_path: Path) -> None:
    _write(tmp_path / "flat", {"a": 4, "b": 4})
    assert len(open_dataset(_recipe(tmp_path / "flat")).train) == 6
    with pytest.raises(DataError, match="evaluate_test needs pictures in test/CLASS"):
        open_dataset(_recipe(tmp_path / "flat", evaluate_test=True))


def test_bad_folders_are_named(own: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: must be a folder of pictures"):
        open_dataset(_recipe(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="at least two classes; found"):
        open_dataset(_recipe(tmp_path / "empty"))
    (own / "train/red/000.png").write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"red/000.png: must be a readable picture"):
        open_dataset(_recipe(own))
    _write(own / "test", {"purple": 1})
    with pytest.raises(DataError, match=r"classes of test must be in train too, got .'purple'"):
        open_dataset(_recipe(own))


def test_options_of_an_own_folder_are_checked_beforehand(own: Path, tmp_path: Path) -> None:
    usual = {"recipe": "tiny", "n_train": None, "n_validation": 0.25, "data": str(own)}
    cifar10.check_options({**usual, "evaluate_test": True})
    cifar10.prepare(usual)
    away = {**usual, "data": str(tmp_path / "nowhere")}
    cifar10.check_options(away)  # the data may be only on the workers
    with pytest.raises(DataError, match="nowhere: must be a folder of pictures") as caught:
        cifar10.prepare(away)
    assert caught.value.cause == "data"
    with pytest.raises(InvalidOption, match="at most the 72 pictures there are"):
        cifar10.check_options({**usual, "n_train": 60})
    _write(tmp_path / "flat", {"a": 4, "b": 4})
    with pytest.raises(DataError, match="evaluate_test needs pictures in test/CLASS"):
        cifar10.check_options({**usual, "data": str(tmp_path / "flat"), "evaluate_test": True})
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="at least two classes; found"):
        cifar10.check_options({**usual, "data": str(tmp_path / "empty")})


@pytest.mark.parametrize("options", [{}, {"evaluate_test": True}, {"objective": "test"}])
def test_training_on_everything_needs_a_test_score(options: dict[str, Any]) -> None:
    wanted = {"recipe": "tiny", "train_on": "train+validation", **options}
    if options:
        cifar10.check_options(wanted)
        return
    with pytest.raises(InvalidOption, match="train_on must be train where the test set is not"):
        cifar10.check_options(wanted)


def test_more_pictures_than_there_are_cannot_be_asked_for(own: Path) -> None:
    with pytest.raises(InvalidOption, match=r"at most the 72 pictures there are.*got 60 \+ 18"):
        open_dataset(_recipe(own, n_train=60))


@pytest.mark.usefixtures("cache")
def test_the_split_is_the_same_for_all_trials_and_has_a_hash(arrays: Arrays) -> None:
    facts = [
        open_dataset(load_recipe({"recipe": "tiny", "split_seed": seed, "epochs": epochs})).facts
        for seed, epochs in ((0, 1), (0, 9), (1, 1))
    ]
    assert facts[0] == facts[1]
    assert facts[0]["data_hash"] == facts[2]["data_hash"]
    assert facts[0]["split_hash"] != facts[2]["split_hash"]


@pytest.mark.usefixtures("cache")
def test_training_on_everything_adds_the_validation_pictures() -> None:
    parts = open_dataset(load_recipe({"recipe": "tiny"}))
    whole = open_dataset(load_recipe({"recipe": "tiny", "train_on": "train+validation"}))
    assert len(whole.train) == len(parts.train) + 200 == 600
    assert whole.validation is None
    assert whole.facts["split_hash"] == parts.facts["split_hash"]
