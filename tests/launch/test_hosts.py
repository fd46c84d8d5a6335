"""Sweeps on a cluster of several hosts, started by the recipe and launched as jobs."""

from __future__ import annotations

import os
import socket
from collections import Counter
from pathlib import Path

import pytest

from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from tests.launch.hosts import ROOT
from tests.launch.scenario import GPUS, Scenario, overlaps, play, share

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1500)]


def test_a_host_joins_and_one_dies(tmp_path: Path) -> None:
    figures = play(tmp_path, 40, (2, 5))
    assert "succeeded" in figures.job_status.lower()
    assert figures.n_finished == 40
    assert set(figures.retries) == {"lost"}
    assert figures.retries["lost"] <= GPUS
    assert figures.gpus == {host: ["0", "1"] for host in "abc"}
    assert figures.n_overlaps == 0
    assert all("_ray_pkg_" in file for file in figures.files), "the trainer was not shipped"


def test_stopped_resumed_and_placed_by_resources(tmp_path: Path) -> None:
    """Half a GPU per trial on spot hosts only, then two whole ones; then a host that differs."""
    scenario = Scenario(tmp_path, 14, (2, 4))
    try:
        scenario.add("a", '--resources={"spot": 1}')
        scenario.add("b")
        scenario.launch(0.5, "--resource", "spot=0.001")
        scenario.wait("results", lambda: scenario.n_ended() >= 3)
        assert scenario.n_running() <= 2 * GPUS
        said = scenario.nasbo("stop", str(scenario.folder), "--on", scenario.hosts.url)
        assert "stopped; resume it" in said
        n_before = scenario.n_ended()
        assert 3 <= n_before < 14
        log = scenario.nasbo("logs", str(scenario.folder))
        assert "interrupted:" in log, "the driver was killed before it had stopped"
        scenario.launch(0.5, "--resource", "spot=0.001")
        scenario.nasbo("logs", "-f", str(scenario.folder))
        assert "succeeded" in scenario.job_status().lower()
        assert ends(scenario) == dict.fromkeys(range(14), 1)
        notes = scenario.notes()
        assert {(note["host"], note["gpus"]) for note in notes} == {("a", "0"), ("a", "1")}
        assert overlaps(notes) > 0, "no two trials shared a GPU"

        scenario.folder = tmp_path / "shared" / "two"
        scenario.launch(2, "--trials", "3")
        scenario.nasbo("logs", "-f", str(scenario.folder))
        assert {note["gpus"] for note in scenario.notes()} == {"0,1"}
        check_other_versions(scenario, tmp_path)
    finally:
        scenario.shutdown()


def check_other_versions(scenario: Scenario, folder: Path) -> None:
    """A host with another version of torch is named, and nothing runs."""
    fake = folder / "packages" / "torch-0.0.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
    path = f"{fake.parent}{os.pathsep}{ROOT}"
    scenario.add("odd", PYTHONPATH=path)
    scenario.folder = folder / "shared" / "three"
    scenario.launch(1)
    said = scenario.nasbo("logs", "-f", str(scenario.folder))
    assert f"node {socket.gethostname()} (" in said
    assert "torch 0.0.1 instead of" in said
    assert "failed" in scenario.job_status().lower()
    assert scenario.n_ended() == 0


def ends(scenario: Scenario) -> dict[int, int]:
    events = read_events(scenario.folder / JOURNAL_FILE)
    return dict(Counter(item["run"] for item in events if item.get("ending") == "finished"))


def test_shares_and_overlaps_are_counted() -> None:
    capacity = [(0.0, 2), (10.0, 4), (20.0, 0)]
    assert share([(0, 10), (0, 10), (10, 20)], capacity, 0, 20) == pytest.approx(30 / 60)
    assert share([(-5, 10)], capacity, 0, 10) == pytest.approx(0.5)
    one = {"host": "a", "gpus": "0", "begin": 0, "end": 5}
    assert overlaps([one, {**one, "begin": 5, "end": 9}]) == 0
    assert overlaps([one, {**one, "begin": 4}, {**one, "gpus": "1"}]) == 1
