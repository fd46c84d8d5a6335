"""Sweeps on a cluster of several hosts, brought up by the recipe and launched as jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_stopped_cleanly_and_resumed_on_shares_of_gpus(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, 16, (2, 3))
    try:
        scenario.add("a")
        scenario.launch("--gpus-per-trial", "0.5", "--resource", "GPU_TYPE=0.1", code=2)
    finally:
        scenario.shutdown()


def test_shares_and_overlaps_are_counted() -> None:
    capacity = [(0.0, 2), (10.0, 4), (20.0, 0)]
    assert share([(0, 10), (0, 10), (10, 20)], capacity, 0, 20) == pytest.approx(30 / 60)
    assert share([(-5, 10)], capacity, 0, 10) == pytest.approx(0.5)
    one = {"host": "a", "gpus": "0", "begin": 0, "end": 5}
    assert overlaps([one, {**one, "begin": 5, "end": 9}]) == 0
    assert overlaps([one, {**one, "begin": 4}, {**one, "gpus": "1"}]) == 1
