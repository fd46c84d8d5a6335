"""Checkpoints of paused trials: how many are kept, and what a killed driver leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.history import Ending, Run
from nasbo.search import Driver
from nasbo.sweeps import policies
from nasbo.sweeps.folder import trial_folder
from nasbo.sweeps.policies import MIN_ALIKE, FailuresInARow, PausedCheckpoints
from tests.rung_search import make, train


def train_and_keep(one: Driver, folder: Path, policy: PausedCheckpoints, n: int) -> None:
    """Train ``n`` stretches, each of which leaves a checkpoint."""
    for _ in range(n):
        run = one.next(1)
        assert isinstance(run, Run)
        home = trial_folder(folder, run.number)
        home.mkdir(parents=True, exist_ok=True)
        (home / "checkpoint.pt").write_text("weights")
        train(one, run)
        policy(one.search.history.run(run.number))


def held(folder: Path) -> set[int]:
    return {int(file.parent.name) for file in folder.glob("**/checkpoint.pt")}


def test_those_least_likely_to_go_on_lose_theirs(tmp_path: Path) -> None:
    one = make(30, journal=tmp_path / "journal.jsonl")
    train_and_keep(one, tmp_path, PausedCheckpoints(tmp_path, one.search, 2), 5)
    history = one.search.history
    paused = {trial.id for trial in history.suggested if trial.first.is_paused}
    assert len(paused & held(tmp_path)) == 2
    assert history.retired == paused - held(tmp_path)
    worst = min(history.score(history.trial(at).last_value) for at in paused & held(tmp_path))
    lost = max(history.score(history.trial(at).last_value) for at in history.retired)
    assert worst >= lost


def test_what_a_killed_driver_noted_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(30, journal=tmp_path / "journal.jsonl")

    def die(folder: Path, run: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(policies, "remove_checkpoints", die)
    with pytest.raises(KeyboardInterrupt):
        train_and_keep(one, tmp_path, PausedCheckpoints(tmp_path, one.search, 1), 2)
    monkeypatch.undo()
    assert len(one.search.history.retired) == 1, "noted before it is removed"
    assert len(held(tmp_path)) == 2
    one.search.close()
    again = make(30, journal=tmp_path / "journal.jsonl")
    train_and_keep(again, tmp_path, PausedCheckpoints(tmp_path, again.search, 1), 1)
    assert not held(tmp_path) & again.search.history.retired
    again.search.close()


def test_what_begins_again_keeps_its_new_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(30, journal=tmp_path / "journal.jsonl")

    def refuse(folder: Path, run: Run) -> None:
        raise OSError("read-only")

    policy = PausedCheckpoints(tmp_path, one.search, 1)
    monkeypatch.setattr(policies, "remove_checkpoints", refuse)
    train_and_keep(one, tmp_path, policy, 3)
    monkeypatch.undo()
    history = one.search.history
    first, _ = sorted(history.retired)
    (kept,) = {0, 1, 2} - history.retired
    history.retired.discard(first)  # as when it is promoted from the start
    history.retired.add(kept)
    policy(history.run(kept))
    assert held(tmp_path) == {first, kept}


def counted(*messages: str | None, n_design: int = 8) -> FailuresInARow:
    """A count of runs that crashed with a message, or finished."""
    failures = FailuresInARow(20, n_design)
    for number, message in enumerate(messages):
        ending = Ending.FINISHED if message is None else Ending.CRASHED
        failures(Run(number, number, ending=ending, message=message or ""))
    return failures


def test_a_design_that_crashes_in_one_way_ends_a_sweep() -> None:
    same = [f"KeyError: 'colour' at 0x{n}" for n in range(8)]
    assert not counted(*same[:7]).problem
    problem = counted(*same).problem
    assert problem.startswith("all 8 trials crashed in the same way: KeyError: 'colour'")
    assert not counted(*same[:7], "ValueError: another").problem
    assert not counted("ValueError: another", *same).problem
    assert not counted(None, *same).problem, "the trainer can work"
    assert not counted(*same[: MIN_ALIKE - 1], n_design=2).problem
    assert counted(*same[:MIN_ALIKE], n_design=2).problem
