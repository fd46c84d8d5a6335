"""Nodes: their resources, their differences, and their preparation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nasbo.sweeps.settings import Sweep
from nasbo.tune.nodes import differences, room, versions
from nasbo.tune.shipping import is_local_code, runtime_env

pytestmark = [pytest.mark.ray]


@pytest.mark.parametrize(
    ("have", "needs", "n"),
    [
        ({"CPU": 8.0}, {"CPU": 1}, 8),
        ({"CPU": 1.0}, {"CPU": 0.1}, 10),
        ({"CPU": 8.0, "GPU": 2.0}, {"CPU": 1, "GPU": 1}, 2),
        ({"CPU": 8.0, "GPU": 2.0}, {"GPU": 0.5}, 4),
        ({"CPU": 8.0, "GPU": 2.0}, {"GPU": 0.4}, 4),  # a trial does not span two GPUs
        ({"CPU": 8.0, "GPU": 3.0}, {"GPU": 2}, 1),
        ({"CPU": 8.0}, {"GPU": 1}, 0),
        ({"CPU": 8.0}, {"CPU": 1, "spot": 0.001}, 0),
        ({"CPU": 8.0, "spot": 1.0}, {"CPU": 1, "spot": 0.001}, 8),
    ],
)
def test_room_for_trials(have: dict[str, float], needs: dict[str, float], n: int) -> None:
    assert room(have, needs) == n


def test_needs_of_a_trial() -> None:
    sweep = Sweep("simulation", "a:b", cpus_per_trial=0, gpus_per_trial=0.5, resources={"spot": 1})
    assert sweep.needs == {"GPU": 0.5, "spot": 1}


def test_differences_are_said_and_patches_of_python_are_none() -> None:
    own = versions()
    assert set(own) == {"python", "ray", "torch", "nasbo"}
    assert differences(own, own) == ""
    patch = ".".join([*own["python"].split(".")[:2], "99"])
    assert differences({**own, "python": patch}, own) == ""
    other = {**own, "python": "3.8.1", "torch": "1.0"}
    assert differences(other, own) == (
        f"python 3.8.1 instead of {own['python']}, torch 1.0 instead of {own['torch']}"
    )
    assert "nasbo missing instead of" in differences({**own, "nasbo": "missing"}, own)


def test_code_of_the_folder_is_told_from_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nasbo_test_own_module.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_local_code("nasbo_test_own_module:train", tmp_path)
    assert not is_local_code("json:loads", tmp_path)
    assert not is_local_code("numpy:mean", Path("/"))
    env = runtime_env(tmp_path)
    assert env["working_dir"] == str(tmp_path)
    assert ".git/" in env["excludes"]


def test_data_are_prepared_by_one_process_while_others_wait(tmp_path: Path) -> None:
    (tmp_path / "slow_data.py").write_text(
        "import pathlib, time\n"
        "def prepare(options):\n"
        "    folder = pathlib.Path(options['folder'])\n"
        "    if (folder / 'ready').exists():\n"
        "        return\n"
        "    with (folder / 'log').open('a') as log:\n"
        "        log.write('begin\\n')\n"
        "    time.sleep(1)\n"
        "    (folder / 'ready').touch()\n"
        "def train(config):\n"
        "    return 1.0\n"
    )
    code = (
        "import pathlib, sys; from nasbo.trainer import load_trainer; "
        "from nasbo.tune.preparation import prepare_node; "
        "trainer = load_trainer('slow_data:train', sys.argv[1]); "
        "prepare_node(trainer, {'folder': sys.argv[1]}); prepare_node(trainer, {}); "
        "assert (pathlib.Path(sys.argv[1]) / 'ready').exists()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert (tmp_path / "log").read_text() == "begin\n"
