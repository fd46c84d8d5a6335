"""Sweeps in a real MLflow: killed drivers, trackers and servers lose and double nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.history.journal import read_events
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from tests.chaos.audit import N_STEPS, Witness, audit
from tests.chaos.drivers import drive, uninterrupted
from tests.events import reported, started
from tests.rung_search import make_rung_folder
from tests.system.lossy import LossyProxy
from tests.system.trackers import (
    MlflowServer,
    finished_track,
    log_of,
    points,
    reports,
    track,
)
from tests.tracking.sweeps import add_finalists, cut, make_mixed

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]
N_TRIALS = 36
N_KILLS = 10
METRIC = "loss"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MlflowServer]:
    found = MlflowServer(tmp_path)
    found.start()
    yield found
    found.kill()


class Scene:
    """A sweep, its driver, and a tracker that follows it."""

    def __init__(self, folder: Path, server: MlflowServer, rungs: tuple[int, ...] | None) -> None:
        self.folder, self.server, self.rng = folder, server, random.Random(0)
        sweep = Sweep(
            space="simulation", trainer="tests.chaos.trainer:train", method="random", slots=3,
            trials=N_TRIALS, cpus_per_trial=0.5, metric=METRIC, seed=0,
            trainer_options={"step_s": 0.3}, rungs=list(rungs or ()) or "off",
        )  # fmt: skip
        create_folder(folder, sweep)
        self.tracker = self.begin_tracker()
        self.faults: Counter[str] = Counter()

    def begin_tracker(self) -> subprocess.Popen[str]:
        self.n_told = len(self.told())
        words = ("--to", "mlflow", "--tracking-uri", self.server.url, "--follow")
        return track(self.folder, *words, "--interval", "0.3")

    def told(self) -> str:
        log = log_of(self.folder)
        return log.read_text() if log.exists() else ""

    def n_reports(self) -> int:
        events = read_events(self.folder / JOURNAL_FILE)
        return sum(event["event"] == "reported" for event in events)

    def drive_and_kill(self) -> None:
        """A driver that is killed after some reports, at a random time."""
        before, wanted = self.n_reports(), self.rng.randrange(4, 14)
        driver = drive(self.folder)
        while driver.poll() is None and self.n_reports() < before + wanted:
            time.sleep(0.05)
        time.sleep(self.rng.uniform(0, 0.5))
        assert driver.poll() is None, self.folder.with_name("sweep.log").read_text()
        driver.send_signal(signal.SIGKILL)
        driver.wait(timeout=60)
        self.faults["driver"] += 1

    def kill_tracker(self) -> None:
        """At a random time after it has sent something; not if it has ended with the sweep."""
        deadline = time.monotonic() + 20
        while "shown in" not in self.told()[self.n_told :] and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(self.rng.uniform(0, 3))
        if self.tracker.poll() is not None:
            assert self.tracker.returncode == 0, self.told()
            return
        self.tracker.kill()
        self.tracker.wait(timeout=60)
        self.tracker = self.begin_tracker()
        self.faults["tracker"] += 1


@pytest.mark.parametrize("rungs", [None, (2, N_STEPS)], ids=["full", "rungs"])
def test_every_trial_and_every_point_is_there_once(
    tmp_path: Path, server: MlflowServer, rungs: tuple[int, ...] | None
) -> None:
    scene = Scene(tmp_path / "sweep", server, rungs)
    try:
        told, witness = _break(scene)
    finally:
        scene.tracker.kill()
    found = audit(witness, N_TRIALS, uninterrupted(0, N_TRIALS, "random", rungs))
    assert found.is_clean, found
    _check(scene.folder, server, told)


def _break(scene: Scene) -> tuple[str, Witness]:
    """Kill drivers, trackers and the server until the sweep has ended; what was done."""
    server = scene.server
    witness = Witness(scene.folder)
    for number in range(N_KILLS):
        if number == 4:
            server.kill()
            scene.faults["server"] += 1
        if number == 7:
            assert "cannot be reached" in log_of(scene.folder).read_text()
            server.start()
        scene.drive_and_kill()
        witness.look()
        if number % 3 == 1:
            scene.kill_tracker()
    driver = drive(scene.folder)
    while driver.poll() is None:
        scene.kill_tracker()
        time.sleep(0.2)
    assert driver.returncode == 0, scene.folder.with_name("sweep.log").read_text()
    ended_at = time.monotonic()
    assert scene.tracker.wait(timeout=300) == 0, log_of(scene.folder).read_text()
    told = f"{dict(scene.faults)}, caught up {time.monotonic() - ended_at:.1f} s after the end"
    return told, witness


def _check(folder: Path, server: MlflowServer, told: str) -> None:
    """Compare the server's database with the journal."""
    history, runs = SweepFolder(folder).history, server.runs()
    kinds = Counter(run.tags["nasbo.kind"] for run in runs)
    assert kinds == {"sweep": 1, "trial": len(history.trials)}
    keys = [run.tags["nasbo.run"] for run in runs]
    assert sorted(keys) == sorted({"sweep"} | {f"{t.id:05d}" for t in history.trials})
    expected, there = reports(history, METRIC), points(runs)
    counts = Counter(spot for spot, _ in there)
    missing, strange = expected.keys() - counts.keys(), counts.keys() - expected.keys()
    doubled = [spot for spot, n in counts.items() if n > 1]
    print(
        f"{told}; {len(runs)} runs, {len(there)} points of {len(expected)}, {len(missing)} missing,"
        f" {len(doubled)} doubled, {len(strange)} strange"
    )
    assert not missing
    assert not doubled
    assert dict(there) == expected
    (parent,) = (run for run in runs if run.tags["nasbo.kind"] == "sweep")
    for run in runs:
        assert run.status == "FINISHED"
        if run is not parent:
            trial = history.trial(int(run.tags["nasbo.trial"]))
            assert run.tags["mlflow.parentRunId"] == parent.id
            assert run.tags["nasbo.state"] == trial.state
            assert {name: float(text) for name, text in run.params.items()} == trial.config
            values = [] if trial.value is None else [("nasbo.value", 1, trial.value)]
            assert [row for row in run.rows if row[0] == "nasbo.value"] == values
    best = history.best
    assert best is not None
    assert parent.tags["nasbo.best_trial"] == str(best.id)
    assert float(parent.tags["nasbo.best_value"]) == best.value
    curve = [row for row in parent.rows if row[0] == f"best/{METRIC}"]
    assert [step for _, step, _ in sorted(curve, key=lambda row: row[1])] == [
        *range(1, history.state_counts()["finished"] + 1)
    ]


def _words(server: MlflowServer | LossyProxy, *words: str) -> tuple[str, ...]:
    return ("--to", "mlflow", "--tracking-uri", server.url, *words)


def test_what_is_shown_of_a_sweep(tmp_path: Path, server: MlflowServer) -> None:
    folder = make_mixed(tmp_path / "mixed")
    add_finalists(folder)
    (folder / "report.html").write_text("a page")
    finished_track(folder, *_words(server, "--experiment", "mine", "--name", "the first"))
    runs = {run.tags["nasbo.run"]: run for run in server.runs()}
    assert len(runs) == len(server.runs()) == 11
    states = {key: (run.status, run.tags["nasbo.state"]) for key, run in runs.items()}
    assert states["sweep"] == ("KILLED", "interrupted")
    assert states["00000"] == ("FINISHED", "finished")
    assert states["00003"] == ("FAILED", "crashed")
    assert states["00005"] == ("KILLED", "interrupted")
    parents = {run.id: key for key, run in runs.items()}
    below = {key: parents.get(run.tags.get("mlflow.parentRunId", "")) for key, run in runs.items()}
    assert below["sweep"] is None
    assert below["00000"] == below["final"] == "sweep"
    assert below["00007"] == "00000"
    assert below["final/00000"] == "final"
    assert runs["sweep"].name == "the first"
    assert runs["00007"].name == "trial 00000 repeat 00007"
    assert runs["sweep"].params["trainer_options.b.c"] == "[1, 2]"
    value = [row for row in runs["00000"].rows if row[0] == "nasbo.value"]
    assert value == [("nasbo.value", 3, pytest.approx(4.3 / 3))]
    stored = [path.read_text() for path in (tmp_path / "artifacts").rglob("report.html")]
    assert stored == ["a page"]


def test_a_sweep_with_rungs_is_the_same_however_often_it_is_told(
    tmp_path: Path, server: MlflowServer
) -> None:
    whole = make_rung_folder(tmp_path / "whole", 5)
    n_lines = len((whole / JOURNAL_FILE).read_bytes().splitlines())
    for n in [*range(5, n_lines, n_lines // 4), n_lines]:
        finished_track(cut(whole, tmp_path / "cut", n), *_words(server))
    history, runs = SweepFolder(whole).history, server.runs()
    assert Counter(points(runs)) == Counter(reports(history, METRIC).items())
    assert len(runs) == 1 + len(history.trials)
    paused = [run for run in runs if run.tags["nasbo.state"] == "paused"]
    assert len(paused) == history.state_counts()["paused"] > 0
    assert all(run.status == "FINISHED" for run in paused)


def test_answers_that_are_lost_double_nothing(tmp_path: Path, server: MlflowServer) -> None:
    """The server has done what it was asked, and the tracker does not know."""
    folder = make_rung_folder(tmp_path / "s", 5)
    proxy = LossyProxy(server.port, 0.12)
    try:
        finished_track(folder, *_words(proxy, "--follow", "--interval", "0.1"))
    finally:
        proxy.shutdown()
    print(f"{proxy.n_lost} answers of {proxy.n_changes} changes were lost")
    assert proxy.n_lost >= 5
    history, runs = SweepFolder(folder).history, server.runs()
    assert Counter(points(runs)) == Counter(reports(history, METRIC).items())
    assert len(runs) == 1 + len(history.trials)


def test_two_trackers_of_one_sweep_end_with_one_run_for_each_trial(
    tmp_path: Path, server: MlflowServer
) -> None:
    folder = make_rung_folder(tmp_path / "s", 5)
    both = [track(folder, *_words(server, "--follow", "--interval", "0.1")) for _ in range(2)]
    assert [one.wait(timeout=300) for one in both] == [0, 0], log_of(folder).read_text()
    finished_track(folder, *_words(server))
    history, runs = SweepFolder(folder).history, server.runs()
    assert Counter(points(runs)) == Counter(reports(history, METRIC).items())
    assert len(runs) == 1 + len(history.trials)


def test_a_run_that_a_late_request_made_is_removed(tmp_path: Path, server: MlflowServer) -> None:
    """A request that the tracker has given up, and that the server carries out later."""
    folder = make_rung_folder(tmp_path / "s", 3, n=6)
    finished_track(folder, *_words(server))
    before = {run.tags["nasbo.run"]: run for run in server.runs()}
    for key in ("sweep", "00001"):
        server.create(before[key].tags)
    assert len(server.runs()) == len(before) + 2
    finished_track(folder, *_words(server))
    runs = {run.tags["nasbo.run"]: run for run in server.runs()}
    assert runs.keys() == before.keys()
    assert len(server.runs()) == len(before)
    expected = reports(SweepFolder(folder).history, METRIC)
    assert Counter(points(server.runs())) == Counter(expected.items())
    below = {run.tags.get("mlflow.parentRunId") for run in runs.values()}
    assert below == {None, runs["sweep"].id}


def test_a_database_without_a_server(tmp_path: Path) -> None:
    folder = make_rung_folder(tmp_path / "s", 3, n=6)
    server = MlflowServer(tmp_path)
    for _ in range(2):
        finished_track(folder, "--to", "mlflow", "--tracking-uri", f"sqlite:///{server.database}")
    assert Counter(points(server.runs())) == Counter(
        reports(SweepFolder(folder).history, METRIC).items()
    )


def test_names_that_mlflow_does_not_allow(tmp_path: Path, server: MlflowServer) -> None:
    folder = tmp_path / "s"
    create_folder(folder, Sweep("svm", "own:train", method="random", metric="top@5"))
    with Search("svm", "random", journal=folder / JOURNAL_FILE) as search:
        (trial,) = search.open_round(1)
        metrics = {"top@5": 0.5, "top_5": 0.25, "loss (mean)": 1.0}
        search.record(started(trial.id), reported(trial.id, 1, 0.5, metrics=metrics))
    finished_track(folder, *_words(server))
    rows = [row for run in server.runs() for row in run.rows]
    names = {"top_x40_5": 0.5, "top_5": 0.25, "loss _x28_mean_x29_": 1.0}
    assert sorted(rows) == sorted((name, 1, value) for name, value in names.items())
