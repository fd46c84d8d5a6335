"""Data sets of torchvision: a small one in the format of MNIST, and the shipped trainer on it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainers import cifar10
from trainers.dataset import has_test, open_collection
from trainers.session import LocalSession
from trainers.sources import DataError

Make = Callable[..., dict[str, Any]]
OPTIONS = {
    "recipe": "tiny",
    "is_tensorboard": False,
    "epochs": 1,
    "n_train": 60,
    "n_validation": 20,
}
N = {"train": 100, "t10k": 30}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder that torchvision takes for that of Fashion-MNIST."""
    monkeypatch.setenv("NASBO_DATA", str(tmp_path / "data"))
    raw = tmp_path / "sets" / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n in N.items():
        images = rng.integers(0, 256, (n, 28, 28), np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        head = struct.pack(">iiii", 2051, n, 28, 28)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        head = struct.pack(">ii", 2049, n)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
    return f"torchvision:FashionMNIST:{tmp_path / 'sets'}"


def test_pictures_and_classes_are_those_of_the_set(data: str) -> None:
    from torchvision.datasets import FashionMNIST

    found = open_collection(data, 28)
    whole = FashionMNIST(data.rpartition(":")[2], train=True)
    assert found.classes == tuple(whole.classes)
    assert found.arrays.train_x.shape == (100, 3, 28, 28)
    assert found.arrays.test_x.shape == (30, 3, 28, 28)
    for index in (0, 41, 99):
        picture, label = whole[index]
        assert (found.arrays.train_x[index] == np.asarray(picture)).all()
        assert found.arrays.train_y[index] == label
    assert open_collection(data, 28).data_hash == found.data_hash
    assert open_collection(data, 8).arrays.train_x.shape == (100, 3, 8, 8)
    assert has_test(data)


def test_the_shipped_trainer_trains_on_it(data: str, tmp_path: Path, uniform_config: Make) -> None:
    options = {**OPTIONS, "n_validation": 20, "data": data, "evaluate_test": True}
    cifar10.check_options(options)
    cifar10.prepare(options)
    session = LocalSession(tmp_path / "trial", 0, options)
    cifar10.train(uniform_config(0, batch_size=20), session)
    assert 0 <= session.reports[-1]["test_accuracy"] <= 1
    assert cifar10.final_options(options, "quick")["evaluate_test"]
    assert cifar10.provenance(options)["data_hash"] == session.reports[-1]["data_hash"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torchvision:Nothing", "torchvision:Nothing: must be a data set of torchvision.datasets"),
        ("torchvision:FakeData", "FakeData: must be a data set .* with parts train and test"),
        ("torchvision:CIFAR100:{folder}", "CIFAR100 cannot be opened in .*not found or corrupted"),
    ],
)
def test_what_is_none_or_not_here_is_said(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        open_collection(name.format(folder=tmp_path / "none"), 32)
