"""Private Ray of a user on this machine: it requires a token and listens on the loopback only."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nasbo.tune import token
from nasbo.tune.token import LOOPBACK_VARIABLE, MODE_VARIABLE, on_loopback, require_token


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token, "read_variables", lambda: None)  # another Ray may run here
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "own" / "token"))
    monkeypatch.setenv(MODE_VARIABLE, "")
    monkeypatch.delenv(MODE_VARIABLE)
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)


def test_a_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        require_token()
    finally:
        os.umask(before)
    file = tmp_path / "own" / "token"
    first = file.read_text()
    assert len(first) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.environ[MODE_VARIABLE] == "token"
    require_token()
    assert file.read_text() == first
    assert os.listdir(file.parent) == ["token"]


def test_who_has_another_way_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "given")
    require_token()
    assert os.environ[MODE_VARIABLE] == "token"
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv(MODE_VARIABLE, "disabled")
    require_token()
    assert os.environ[MODE_VARIABLE] == "disabled"
    assert not (tmp_path / "own").exists()


def test_the_loopback_is_for_the_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOOPBACK_VARIABLE, raising=False)
    was_enabled = token.ray_constants.ENABLE_RAY_CLUSTER
    with on_loopback():
        assert os.environ[LOOPBACK_VARIABLE] == "0"
        assert token.ray_constants.ENABLE_RAY_CLUSTER is False
    assert LOOPBACK_VARIABLE not in os.environ
    assert token.ray_constants.ENABLE_RAY_CLUSTER is was_enabled


LOCAL = """
import psutil, ray
from nasbo.sweeps.settings import Sweep
from nasbo.tune.cluster import connect

with connect(Sweep(space="svm", trainer="m:f", address="local", slots=1)):
    ray.get(ray.remote(lambda: 1).remote())
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        for item in process.connections("tcp"):
            if item.status == psutil.CONN_LISTEN:
                print("at", item.laddr.ip)
"""


@pytest.mark.ray
def test_nobody_else_can_reach_a_local_ray(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LOCAL], capture_output=True, text=True, check=False, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    hosts = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("at ")]
    assert len(hosts) >= 4
    assert set(hosts) <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert (tmp_path / "own" / "token").is_file()
