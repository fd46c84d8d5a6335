"""What a tracker is told of a sweep: runs, their points, and what tells them apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nasbo.history import Measurement, Run
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder
from nasbo.tracking.records import TrackedRun, identity, points_of
from nasbo.tracking.watch import Watch
from tests.rung_search import make_rung_folder
from tests.tracking.sweeps import METRIC, add_finalists, cut, make_mixed


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_mixed(tmp_path_factory.mktemp("runs") / "mixed")


def look(folder: Path) -> dict[str, TrackedRun]:
    tracked = Watch(folder).look()
    assert tracked is not None
    keys = [run.key for run in tracked.runs]
    assert len(set(keys)) == len(keys)
    for run in tracked.runs:
        assert run.parent is None or keys.index(run.parent) < keys.index(run.key)
    return {run.key: run for run in tracked.runs}


def spots(run: TrackedRun, name: str = METRIC) -> list[tuple[int, float]]:
    return [(point.step, point.values[name]) for point in run.points]


def test_a_run_for_the_sweep_and_for_each_that_has_begun(mixed: Path) -> None:
    runs = look(mixed)
    kinds = {key: (run.kind, run.parent, run.state) for key, run in runs.items()}
    assert kinds == {
        "sweep": ("sweep", None, "interrupted"),
        "00000": ("trial", "sweep", "finished"),
        "00001": ("trial", "sweep", "finished"),
        "00002": ("trial", "sweep", "finished"),
        "00003": ("trial", "sweep", "crashed"),
        "00004": ("trial", "sweep", "finished"),
        "00005": ("trial", "sweep", "interrupted"),
        "00007": ("repeat", "00000", "finished"),
        "00008": ("repeat", "00000", "finished"),
    }
    assert [run.key for run in runs.values() if run.is_failure] == ["00003"]
    assert runs["00003"].tags["message"] == "a bug of the user"
    assert runs["00004"].tags["twin"] == "0"
    assert runs["00008"].tags["repeat_of"] == "0"
    assert runs["00002"].tags["attempts"] == "2"


def test_points_are_the_numbers_of_the_first_report_of_each_step(mixed: Path) -> None:
    runs = look(mixed)
    assert spots(runs["00000"]) == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert runs["00000"].points[0].values == {METRIC: 3.0, "epochs": 1.0}
    assert spots(runs["00002"]) == [(1, 9.0), (2, 8.0), (3, 7.0)]
    assert [dict(p.values) for p in runs["00005"].points] == [{METRIC: 5.0, "size": 3.0}]
    assert runs["00003"].points == []


def test_the_value_of_a_trial_is_the_mean_of_its_trainings(mixed: Path) -> None:
    runs = look(mixed)
    assert (runs["00000"].value, runs["00000"].n_values) == (pytest.approx(4.3 / 3), 3)
    assert (runs["00007"].value, runs["00007"].n_values) == (1.5, 1)
    assert runs["00003"].value is None


def test_the_sweep_has_its_settings_flat_its_best_and_its_curve(mixed: Path) -> None:
    sweep = look(mixed)["sweep"]
    assert sweep.params["space"] == "simulation"
    assert sweep.params["trainer_options.b.c"] == [1, 2]
    assert sweep.params["slots"] == 2
    assert "working_folder" not in sweep.params
    assert sweep.tags["best_trial"] == "0"
    assert sweep.tags["used"] == "5 of 8 trials"
    assert [step for step, _ in spots(sweep, f"best/{METRIC}")] == [1, 2, 3, 4, 5]


def test_a_run_without_a_report_has_a_point_at_its_end() -> None:
    run = Run(0, 0, state="finished", value=0.5, metrics={"size": 3}, step=1, ended_at=7.0)
    (point,) = points_of(run, "loss")
    assert (point.step, point.time, point.values) == (1, 7.0, {"loss": 0.5, "size": 3.0})


def test_what_is_no_number_is_no_point() -> None:
    measured = [Measurement(1, None, {"a": None, "b": "x", "c": 10**400}, 1.0)]
    assert points_of(Run(0, 0, measurements=tuple(measured)), "loss") == []


def test_finalists_are_a_part_of_their_sweep(tmp_path: Path) -> None:
    folder = make_mixed(tmp_path / "s")
    add_finalists(folder)
    runs = look(folder)
    assert runs["final"].parent == "sweep"
    assert runs["final"].kind == "finalists"
    assert [key for key, run in runs.items() if run.parent == "final"] == ["final/00000"]
    assert spots(runs["final/00000"]) == [(1, 0.25), (2, 0.125)]
    assert runs["final/00000"].tags["search_trial"] == "0"


def test_paused_trials_are_no_failures(tmp_path: Path) -> None:
    runs = look(make_rung_folder(tmp_path / "s", n=10))
    paused = [run for run in runs.values() if run.state == "paused"]
    assert paused
    assert not any(run.is_failure or run.is_open for run in paused)
    assert all(run.tags["rung"] == str(run.points[-1].step) for run in paused)
    assert all(run.value is None for run in paused)


def test_nothing_that_was_told_is_taken_back_as_a_sweep_goes_on(tmp_path: Path) -> None:
    whole = make_rung_folder(tmp_path / "whole", 6)
    n_lines = len((whole / JOURNAL_FILE).read_bytes().splitlines())
    before: dict[tuple[str, str, int], float] = {}
    for n in range(1, n_lines + 1, 7):
        now = {
            (run.key, name, point.step): value
            for run in look(cut(whole, tmp_path / "cut", n)).values()
            for point in run.points
            for name, value in point.values.items()
        }
        assert before.items() <= now.items()
        before = now
    assert len(before) > 50


def test_a_sweep_is_the_same_wherever_it_lies_and_however_far_it_is(mixed: Path) -> None:
    moved = mixed.parent / "moved"
    shutil.copytree(mixed, moved)
    shorter, other = cut(mixed, mixed.parent / "shorter", 2), make_mixed(mixed.parent / "other")
    found = [identity(SweepFolder(one).history) for one in (mixed, moved, shorter, other)]
    assert found[0] == found[1] == found[2] != found[3]


def test_runs_that_have_not_changed_are_the_same_objects(mixed: Path) -> None:
    watch = Watch(mixed)
    first, second = watch.look(), watch.look()
    assert first is not None
    assert second is not None
    assert all(a is b for a, b in zip(first.runs, second.runs, strict=True))
