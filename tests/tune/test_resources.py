"""Resources that trials need, compared with those of a Ray on this machine."""

from __future__ import annotations

import os
from typing import Any

import pytest
import ray

from nasbo.errors import SweepError
from nasbo.sweeps.settings import Sweep
from nasbo.tune.cluster import _check_resources, _local_settings

HERE = {"CPU": 2.0, "GPU": 1.0, "memory": 4e9, "node:127.0.0.1": 1.0}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "cluster_resources", lambda: HERE)


def sweep(**settings: Any) -> Sweep:
    return Sweep(space="svm", trainer="builtins:max", **settings)


@pytest.mark.parametrize("address", [None, "local"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gpus_per_trial": 2}, "a trial needs 2 GPU, this machine has 1"),
        ({"cpus_per_trial": 4}, "a trial needs 4 CPU, this machine has 2"),
        ({"resources": {"spot": 1}}, "a trial needs 1 spot, this machine has 0"),
        ({"resources": {"memory": 8e9}}, r"a trial needs 8e\+09 memory, this machine has 4e\+09"),
    ],
)
def test_what_this_machine_lacks_is_said(
    settings: dict[str, Any], words: str, address: str | None
) -> None:
    with pytest.raises(SweepError, match=words):
        _check_resources(sweep(**settings, address=address))


def test_what_this_machine_has_and_what_a_cluster_may_get_is_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _check_resources(sweep(cpus_per_trial=2, gpus_per_trial=0.5, resources={"memory": 1e9}))
    _check_resources(sweep(resources={"spot": 1}, address="head:6379"))
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    _check_resources(sweep(resources={"spot": 1}))


def test_slots_that_were_asked_for_get_their_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    wanted = [("auto", 3.0, 2), (1, 0.5, 2), (3, 1.5, 5)]
    for slots, cpus, found in wanted:
        settings = _local_settings(sweep(slots=slots, cpus_per_trial=cpus))
        assert settings["num_cpus"] == found
