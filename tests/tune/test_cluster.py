"""Sweeps on a local cluster with nodes that join and leave."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from tests.chaos.audit import Witness, audit
from tests.chaos.drivers import drive
from tests.chaos.nodes import LocalCluster

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    found = LocalCluster(1)
    yield found
    found.shutdown()


def wait_until(what: str, condition: object, process: subprocess.Popen[bytes], log: Path) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"{what} did not come: {log.read_text()}"
        time.sleep(0.2)


def test_a_cluster_that_shrinks_to_nothing_and_grows_again(
    tmp_path: Path, cluster: LocalCluster
) -> None:
    folder, log = tmp_path / "s", tmp_path / "s.log"
    sweep = Sweep(
        space="simulation", trainer="tests.chaos.trainer:train", method="random", trials=10,
        metric="loss", address=cluster.address, trainer_options={"step_s": 0.3},
    )  # fmt: skip
    create_folder(folder, sweep)
    process = drive(folder, "--address", cluster.address)

    def n_ended() -> int:
        return SweepFolder(folder).history.n_ended

    wait_until("a result", lambda: folder.joinpath("journal.jsonl").exists(), process, log)
    wait_until("a result", lambda: n_ended() >= 1, process, log)
    cluster.kill(cluster.nodes[0])
    wait_until("the word", lambda: "waiting for the cluster" in log.read_text(), process, log)
    before = n_ended()
    cluster.add()
    wait_until("a new result", lambda: n_ended() > before, process, log)
    assert process.wait(timeout=180) == 0, log.read_text()
    found = audit(Witness(folder), 10, None)
    assert found.is_clean, found.rows()
    assert set(found.retries) <= {"lost"}
    assert found.retries["lost"] >= 1
