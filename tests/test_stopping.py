"""Runs that pause at a step and continue later: the driver, its journal, and the displays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from nasbo.errors import JournalError, NasboError
from nasbo.history import Ending, Measurement, Run, View
from nasbo.history.events import Ended, Targeted
from nasbo.history.journal import read_events
from nasbo.report.progress import Progress
from nasbo.report.watch import SweepFollower, draw_status
from nasbo.report.write import write_report
from nasbo.search import Driver, Next, Policies, Schedule, Search, StoppingRule, Verdict
from nasbo.search.repeats import is_complete
from nasbo.space import load_space
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder, trial_folder
from nasbo.sweeps.policies import Checkpoints, FailuresInARow
from nasbo.sweeps.rows import to_csv, trial_rows
from nasbo.sweeps.settings import Sweep
from nasbo.sweeps.status import status

N_STEPS = 4
TWO_STEPS = StoppingRule(until=lambda run: 2)


def best_goes_on(history: View) -> list[tuple[int, int | None]]:
    """When all of eight have paused, the best of them is trained to its end."""
    paused = [run for run in history.runs if run.is_paused]
    if len(paused) < 8:
        return []
    return [(min(paused, key=lambda run: run.value or 0.0).number, None)]


BEST_OF_EIGHT = StoppingRule(until=lambda run: 2, due=best_goes_on)


def driver(rule: StoppingRule, journal: Path | None = None, **policies: object) -> Driver:
    search = Search("svm", method="random", journal=journal)
    return Driver(search, Schedule(budget=8), policies=Policies(stopping=rule, **policies))  # type: ignore[arg-type]


def start(one: Driver) -> Run:
    run = one.next(1)
    assert isinstance(run, Run)
    return run


def train(one: Driver, run: Run, *, obeys: bool = True) -> list[int]:
    """The steps of a training that improves by one per step; its first value is its number."""
    steps = []
    for step in range(run.resumed_from + 1, N_STEPS + 1):
        steps.append(step)
        value = float(run.number - step)
        verdict = one.on_report(run.number, step, value, {"loss": value})
        if verdict is not Verdict.GO_ON and obeys:
            error = "paused" if verdict is Verdict.PAUSE else "stopped"
            one.on_end(run.number, value, error=error, step=step)
            return steps
    one.on_end(run.number, value, step=step)
    return steps


def test_a_run_pauses_at_its_target_and_holds_nothing() -> None:
    one = driver(TWO_STEPS)
    run = start(one)
    assert run.until == 2
    assert train(one, run) == [1, 2]
    paused = one.search.history.run(0)
    assert (paused.state, paused.ending, paused.value) == ("paused", Ending.PAUSED, -2.0)
    assert not paused.is_open
    assert one.running == set()
    history = one.search.history
    assert history.best is not None
    assert (history.best.value, history.best.partial) == (None, (2, -2.0))
    assert history.rows() == [(history.best, 2.0)]
    assert 0 not in history.open_numbers
    assert (history.cause_counts(), history.state_counts()["paused"]) == ({}, 1)
    assert start(one).number == 1, "its slot is free"


def test_a_paused_run_goes_on_under_its_own_number() -> None:
    one = driver(TWO_STEPS)
    train(one, start(one))
    one.resume(0, 3)
    again = start(one)
    assert (again.number, again.until, again.resumed_from) == (0, 3, 2)
    assert train(one, again) == [3]
    assert one.search.history.run(0).is_paused
    one.resume(0)
    assert train(one, start(one)) == [4]
    ended = one.search.history.run(0)
    assert (ended.ending, ended.value, len(ended.attempts)) == (Ending.FINISHED, -4.0, 3)
    assert [step for step, _ in ended.curve] == [1, 2, 3, 4]
    best = one.search.history.best
    assert best is not None
    assert best.id == 0


def test_a_rule_says_which_ones_go_on() -> None:
    one, trained = driver(BEST_OF_EIGHT), []
    while isinstance(run := one.next(1), Run):
        trained.append((run.number, train(one, run)))
    assert run is Next.DONE
    assert trained == [*((number, [1, 2]) for number in range(8)), (0, [3, 4])]
    assert one.search.history.state_counts() == {"paused": 7, "finished": 1}


@pytest.mark.parametrize("n_before", [3, 8, 9])
def test_a_new_driver_goes_on_where_the_last_one_was_killed(tmp_path: Path, n_before: int) -> None:
    """Within the eight, after all of them, and while the best continues."""
    file, trained = tmp_path / "journal.jsonl", []
    for n in (n_before, 100):
        one = driver(BEST_OF_EIGHT, file)
        while n and isinstance(run := one.next(1), Run):
            n -= 1
            trained.append((run.number, train(one, run)))
        if n == 0 and isinstance(lost := one.next(1), Run):
            one.on_report(lost.number, lost.resumed_from + 1, 5.0, {})
        one.search.close()
    assert trained == [*((number, [1, 2]) for number in range(8)), (0, [3, 4])]
    assert one.search.history.state_counts() == {"paused": 7, "finished": 1}


def test_a_replayed_journal_gives_the_same_runs(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    one = driver(BEST_OF_EIGHT, file)
    while isinstance(run := one.next(1), Run):
        train(one, run)
        one.search.close()
        again = Search("svm", method="random", journal=file)
        assert [t.runs for t in again.history.trials] == [t.runs for t in one.search.history.trials]
        again.close()
        one = driver(BEST_OF_EIGHT, file)
    one.search.close()
    told = [(line["run"], line["until"]) for line in read_events(file) if "until" in line]
    assert told == [*((number, 2) for number in range(8)), (0, None)]


def test_a_driver_that_dies_before_the_best_goes_on_has_not_finished(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    one = driver(BEST_OF_EIGHT, file)
    for _ in range(8):
        train(one, start(one))
    one.search.close()
    history = driver(BEST_OF_EIGHT, file).search.history
    assert not history.open_runs
    assert is_complete(history, 8)
    assert not is_complete(history, 8, BEST_OF_EIGHT)


def test_a_run_that_is_begun_again_keeps_its_target() -> None:
    one = driver(TWO_STEPS, retry=lambda run, ending, message: True)
    run = start(one)
    one.on_report(run.number, 1, 0.5, {})
    assert one.on_end(run.number, error="lost")
    again = start(one)
    assert (again.number, again.until, again.resumed_from) == (0, 2, 0)
    assert sum(isinstance(item, Targeted) for item in one.search.events) == 1


def test_a_trainer_that_does_not_listen_has_finished() -> None:
    one = driver(TWO_STEPS)
    assert train(one, start(one), obeys=False) == [1, 2, 3, 4]
    ended = one.search.history.run(0)
    assert (ended.ending, ended.value) == (Ending.FINISHED, -4.0)


def test_a_rule_may_stop_a_run_by_its_measurements() -> None:
    def verdict(run: Run, measured: Measurement) -> Verdict:
        assert run.measurements[-1] is measured
        return Verdict.STOP if measured.step == 3 and run.number == 0 else Verdict.GO_ON

    ended: list[Run] = []
    one = driver(StoppingRule(verdict=verdict), ended=[ended.append])
    assert train(one, start(one)) == [1, 2, 3]
    assert train(one, start(one)) == [1, 2, 3, 4]
    assert [run.ending for run in ended] == [Ending.STOPPED, Ending.FINISHED]
    assert not Ending.STOPPED.is_failure
    best = one.search.history.best
    assert best is not None
    assert best.id == 1, "what was stopped earlier is no full result"


def test_without_a_rule_nothing_is_written_about_targets() -> None:
    one = driver(StoppingRule())
    assert train(one, start(one)) == [1, 2, 3, 4]
    assert not any(isinstance(item, Targeted) for item in one.search.events)


def test_what_cannot_go_on_is_refused() -> None:
    one = driver(TWO_STEPS)
    train(one, start(one))
    with pytest.raises(NasboError, match=r"until > 2 must hold for run 0, got 2"):
        one.resume(0, 2)
    train(one, start(one), obeys=False)
    with pytest.raises(NasboError, match=r"run 1 has ended: it is finished"):
        one.resume(1)
    with pytest.raises(JournalError, match="has ended already"):
        one.search.history.apply(Targeted(run=1, until=None))
    with pytest.raises(JournalError, match="has ended already"):
        one.search.history.apply(Ended(run=0, ending=Ending.FINISHED, value=1.0))


def test_paused_runs_keep_their_checkpoints_and_are_no_failures(tmp_path: Path) -> None:
    one = driver(TWO_STEPS)
    failures = FailuresInARow(2)
    policies = (Checkpoints(tmp_path, one.search.history, 0), failures)
    one = Driver(one.search, one.schedule, policies=Policies(stopping=TWO_STEPS, ended=policies))
    files = []
    for number in range(3):
        files.append(trial_folder(tmp_path, number) / "checkpoint.pt")
        files[-1].parent.mkdir(parents=True)
        files[-1].write_text("weights")
    one.on_end(start(one).number, error="crashed")
    train(one, start(one))
    one.on_end(start(one).number, error="crashed")
    assert [file.exists() for file in files] == [False, True, False]
    assert failures.problem == "", "a run that paused lies between the two"
    Checkpoints(tmp_path, one.search.history, 0)(one.search.history.run(2))
    assert files[1].exists(), "also after a restart"
    one.resume(1)
    train(one, start(one))
    assert not files[1].exists()


def test_what_shows_a_sweep_shows_paused_runs(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    sweep = Sweep("svm", "tests.tune.toy:simulation", method="random", trials=8)
    create_folder(folder, sweep)
    console = Console(width=200, record=True, file=(tmp_path / "out.txt").open("w"))
    one = Driver(
        Search(load_space("svm"), "random", sweep.mode, journal=folder / JOURNAL_FILE),
        Schedule(budget=8),
        policies=Policies(stopping=TWO_STEPS),
    )
    progress = Progress(console, 8)
    progress(one.search.history)
    for _ in range(8):
        train(one, start(one))
        progress(one.search.history)
    one.resume(3)
    train(one, start(one))
    progress(one.search.history)
    one.search.close()
    lines = console.export_text().splitlines()
    assert len(lines) == 9
    assert sum("paused at step 2" in line for line in lines) == 8
    assert "8 of 8  trial 3" in lines[-1]
    assert "-1.0000" in lines[-1]
    found = status(SweepFolder(folder))
    assert (found["state"], found["paused"], found["finished"]) == ("finished", 7, 1)
    assert json.loads(json.dumps(found))["causes"] == {}
    rows = trial_rows(one.search.history)
    assert [row["state"] for row in rows].count("paused") == 7
    assert to_csv(rows).count(",paused,") == 7
    follower = SweepFollower(folder)
    follower.refresh()
    console.print(draw_status(follower))
    assert "paused: 7" in console.export_text()
    assert "paused" in write_report(folder).read_text()
