"""Sweeps with rungs on a real Ray: pauses, promotions, kills, and kept checkpoints."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nasbo.bench import promotions
from nasbo.bench.promotions import measure_promotions
from nasbo.cli import cli
from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder, trial_folder
from nasbo.sweeps.settings import Sweep
from tests.tune.climbing import FULL, loss, run

pytestmark = [pytest.mark.ray]
BRANCHES = """
kind:
  type: choice
  range: [a, b]
  submodule:
    a:
      x: {type: float, range: [0, 1]}
    b:
      x: {type: float, range: [0, 1]}
"""


def make(folder: Path, trainer: str = "tests.tune.climbing:train", **settings: Any) -> None:
    file = folder.parent / "own_space.yaml"
    file.write_text(BRANCHES)
    settings = {
        "trials": 5, "slots": 2, "cpus_per_trial": 0.5, "rungs": [2, 6, FULL], **settings
    }  # fmt: skip
    create_folder(folder, Sweep(str(file), trainer, metric="loss", method="random", **settings))


def trained(folder: Path, number: int) -> list[int]:
    return [int(word) for word in (trial_folder(folder, number) / "steps.txt").read_text().split()]


def decisions(folder: Path) -> list[tuple[Any, ...]]:
    """Suggestions and promotions, in order."""
    found: list[tuple[Any, ...]] = []
    for line in read_events(folder / JOURNAL_FILE):
        if line["event"] == "suggested":
            found.append((line["trial"], str(line["config"])))
        elif line["event"] == "targeted" and line["reason"]:
            found.append((line["run"], line["until"], line["reason"]))
    return found


@pytest.mark.usefixtures("local_ray")
def test_the_best_go_on_from_their_own_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    make(folder)
    outcome = run(folder)
    history = outcome.history
    assert outcome.state == "finished"
    assert history.spent <= 5
    assert history.n_suggested > 10
    full = [trial for trial in history.trials if trial.state == "finished"]
    assert 1 <= len(full) <= 4
    n_steps = 0
    for trial in history.trials:
        steps = trained(folder, trial.id)
        assert steps == list(range(1, trial.step + 1)), "each step once"
        assert trial.step in (2, 6, FULL)
        assert trial.last_value == pytest.approx(loss(trial.config, trial.step))
        n_steps += len(steps)
    assert n_steps == pytest.approx(history.spent * FULL)
    assert history.best in full
    first = [trial for trial in history.trials if trial.source == "design"]
    assert {trial.subspace for trial in first if trial.step > 2} == {0, 1}


def test_a_killed_driver_changes_no_promotion(tmp_path: Path, local_ray: None) -> None:
    for name in ("whole", "killed"):
        make(tmp_path / name, trials=4, trainer_options={"seconds": 0.1})
    assert run(tmp_path / "whole").state == "finished"
    folder, n_seen = tmp_path / "killed", 0
    root = Path(__file__).parents[2]
    code = "import sys; from tests.tune.climbing import Path, run; run(Path(sys.argv[1]))"
    for more in (3, 6):
        process = subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=root)
        deadline = time.monotonic() + 240
        while not (folder / JOURNAL_FILE).exists() or len(decisions(folder)) < n_seen + more:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.wait()
        n_seen = len(decisions(folder))
    outcome = run(folder)
    assert outcome.state == "finished"
    assert decisions(folder) == decisions(tmp_path / "whole")
    for trial in outcome.history.trials:
        steps = trained(folder, trial.id)
        assert sorted(set(steps)) == list(range(1, trial.step + 1))
        assert len(steps) - len(set(steps)) <= 2, "the steps that ran when a driver was killed"


@pytest.mark.usefixtures("local_ray")
def test_only_so_many_paused_trials_keep_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    make(folder, keep_paused=2, keep_checkpoints=0)
    history = run(folder).history
    paused = [trial for trial in history.trials if trial.first.is_paused]
    held = [one for one in paused if list(trial_folder(folder, one.id).glob("checkpoint*"))]
    assert len(paused) > 4
    assert len(held) == 2
    assert history.retired == {one.id for one in paused if one not in held}
    n_steps = sum(len(trained(folder, trial.id)) for trial in history.trials)
    assert n_steps == pytest.approx(history.spent * FULL), "what begins again is charged so"


@pytest.mark.usefixtures("local_ray")
def test_a_trainer_that_neither_listens_nor_continues(tmp_path: Path) -> None:
    """It is ended after the report at which it should have paused, and trained again from there."""
    folder = tmp_path / "s"
    make(folder, "tests.tune.forgetful:train")
    history = run(folder).history
    assert history.spent <= 5
    assert any(trial.state == "finished" for trial in history.trials)
    for trial in history.trials:
        assert trial.last_value == pytest.approx(loss(trial.config, trial.step))
        stretches = {2: [[2]], 6: [[2], [6]], FULL: [[2], [6], [FULL]]}[trial.step]
        # One more step was trained, and not reported, before it was ended.
        expected = [step for (end,) in stretches for step in range(1, min(end + 1, FULL) + 1)]
        assert trained(folder, trial.id) == expected


@pytest.mark.usefixtures("local_ray")
def test_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, space = tmp_path / "s", tmp_path / "own_space.yaml"
    space.write_text(BRANCHES)
    monkeypatch.chdir(Path(__file__).parents[2])
    words = [
        "run", str(space), "--trainer", "tests.tune.climbing:train", "--method", "random",
        "--trials", "3", "--slots", "2", "--rungs", "auto", "--dir", str(folder),
    ]  # fmt: skip
    ended = CliRunner().invoke(cli, words)
    assert ended.exit_code == 0, ended.output
    held = SweepFolder(folder)
    assert held.settings.rungs == [2, 6, FULL]
    assert held.history.rungs is not None
    assert held.state == "finished"


def test_what_a_promotion_costs_is_measured(local_ray: None) -> None:
    found = measure_promotions(10)
    assert found.n_configs > 10, "most are trained in part"
    assert 0 < found.n_promotions == len(found.waits) < found.n_configs
    assert 0 < found.per_stretch_s < found.seconds
    assert all(0 <= wait < found.seconds for wait in found.waits)


def test_waits_are_from_the_start_of_a_promoted_run_to_its_first_report() -> None:
    def line(kind: str, seconds: float, **more: Any) -> dict[str, Any]:
        return {"event": kind, "time": seconds, "run": 4, **more}

    lines = [
        line("targeted", 0, reason=""), line("started", 1), line("reported", 3),
        line("targeted", 5, reason="1 of 3"), line("started", 7), line("reported", 7.5),
        line("reported", 9),
    ]  # fmt: skip
    assert list(promotions.waits_of(lines)) == [0.5]
