"""The folder that blocks of the documentation run in."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, blocks_of
from tests.fronts import make_folder as make_front

SWEEP = """space: my_space.yaml
trainer: my_module:train
metric: loss
mode: min
trials: 8
slots: 2
"""
SPACE = "x: {type: float, range: [0...1]}\nn: {type: int, range: [1...4]}\n"
MODULE = "def train(config):\n    return {'loss': config['x']}\n"
FILES = {"my_space.yaml": SPACE, "my_module.py": MODULE, "sweep.yaml": SWEEP, "SWEEP.yaml": SWEEP}
"""What pages speak of without showing it."""
JOURNALS = ROOT / "tests" / "fixtures" / "journals"
Prepare = Callable[[Path], Path]


def leave_a_network(folder: Path) -> None:
    """A folder as ``nasbo finalize`` leaves it; the weights are untrained."""
    from safetensors.torch import save_file

    from nasbo import load_space
    from trainers.network import ARCHITECTURE_FILE, WEIGHTS_FILE, Classifier

    about = {
        "config": load_space("nas_cifar10").default_config(),
        "classes": ["cat", "dog"],
        "image_size": 32,
        "width": 0.25,
        "scale": [[125.0] * 3, [60.0] * 3],
    }
    folder.mkdir()
    (folder / ARCHITECTURE_FILE).write_text(yaml.safe_dump(about))
    save_file(Classifier(about).network.state_dict(), folder / WEIGHTS_FILE)


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prepare]:
    """Makes a working directory with the files that a page shows or means."""

    def make(page: Path) -> Path:
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        for block in blocks_of(page):
            if block.file is not None:
                (tmp_path / block.file).write_text(block.text)
        for example in (ROOT / "docs" / "examples").glob("*.py"):
            shutil.copy(example, tmp_path)
        for name, journal in (("first", "reports"), ("second", "stopped_early")):
            shutil.copytree(JOURNALS / journal, tmp_path / "runs" / name)
        if "runs/front" in page.read_text(encoding="utf-8"):
            make_front(tmp_path / "runs" / "front")
        if "trainers.load" in page.read_text(encoding="utf-8"):
            leave_a_network(tmp_path / "runs" / "first" / "best")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")  # for processes that Ray starts
        return tmp_path

    yield make
    for name, module in list(sys.modules.items()):  # those of a page are not those of the next
        if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]
