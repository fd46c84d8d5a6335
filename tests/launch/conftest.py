"""Folder of a user: a sweep file, its space and a trainer that is never run."""

from __future__ import annotations

from pathlib import Path

import pytest

TRAINER = """\
import json, os, time


def train(config, session):
    begin = time.time()
    time.sleep(config["seconds"])
    note = {
        "begin": begin,
        "end": time.time(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "host": os.environ.get("NASBO_TEST_HOST"),
        "file": __file__,
    }
    (session.folder / "note.json").write_text(json.dumps(note))
    return {"loss": config["seconds"]}
"""
SWEEP = """\
space: my_space.yaml
trainer: my_own_trainer:train
metric: loss
method: random
schedule: async
trials: 6
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "my_own_trainer.py").write_text(TRAINER)
    (folder / "my_space.yaml").write_text("seconds: {type: float, range: [0.1, 0.3]}\n")
    (folder / "sweep.yaml").write_text(SWEEP)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("NASBO_STATE", str(tmp_path / "state"))
    return folder
