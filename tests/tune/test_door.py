"""Running clusters with and without a token, and addresses without a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.errors import ClusterError
from nasbo.tune import door
from tests.tune.heads import started_head

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
import sys

import ray
from nasbo.errors import ClusterError
from nasbo.sweeps.settings import Sweep
from nasbo.tune.cluster import connect

address = sys.argv[1]
try:
    with connect(Sweep(space="svm", trainer="builtins:max", address=address)):
        held = ray.put("workers call back")  # its owner is this process: a worker asks it

        def look(references):
            return ray.get(references[0])

        print(ray.get(ray.remote(look).remote([held]), timeout=60))
except ClusterError as error:
    print("refused:", error)
"""
OWN, OTHER = "a" * 64, "b" * 64


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    with started_head({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": OWN}) as address:
        yield address


@pytest.fixture(scope="module")
def unlocked() -> Iterator[str]:
    with started_head({"RAY_AUTH_MODE": "disabled"}) as address:
        yield address


def drive(address: str, token: Path, **settings: str) -> str:
    """Output of a driver with this file as its token, and without a mode unless one is given."""
    left_out = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ADDRESS")
    usual = {name: value for name, value in os.environ.items() if name not in left_out}
    own = {"PYTHONPATH": str(ROOT), "RAY_AUTH_TOKEN_PATH": str(token), **settings}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, address], capture_output=True, text=True, check=False,
        env={**usual, **own}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "InvalidAuthToken" not in done.stderr
    return done.stdout.strip()


def written(folder: Path, token: str) -> Path:
    file = folder / "token"
    file.write_text(token)
    return file


@pytest.mark.ray
def test_a_token_at_hand_opens_a_cluster_that_asks_for_it(locked: str, tmp_path: Path) -> None:
    assert drive(locked, written(tmp_path, OWN)) == "workers call back"
    assert drive(locked, tmp_path / "none", RAY_AUTH_TOKEN=OWN) == "workers call back"


@pytest.mark.ray
def test_a_token_at_hand_does_not_bar_a_cluster_without(unlocked: str, tmp_path: Path) -> None:
    assert drive(unlocked, written(tmp_path, OWN)) == "workers call back"
    assert drive(unlocked, tmp_path / "none") == "workers call back"


@pytest.mark.ray
def test_a_refusal_says_token_and_what_to_do(locked: str, tmp_path: Path) -> None:
    begin = f"refused: the Ray at {locked} asks for a token; "
    wrong = written(tmp_path, OTHER)
    todo = f"the one in {wrong} is not accepted: put the cluster's own there"
    assert drive(locked, wrong) == begin + todo
    assert f"{begin}there is none in {tmp_path / 'none'}" in drive(locked, tmp_path / "none")
    said = drive(locked, tmp_path / "none", RAY_AUTH_MODE="token")
    assert f"{begin}there is none in" in said
    said = drive(locked, written(tmp_path, OWN), RAY_AUTH_MODE="disabled")
    other = "asks for a token, but RAY_AUTH_MODE is 'disabled' here: unset it"
    assert said == f"refused: the Ray at {locked} {other}"


@pytest.mark.ray
def test_a_driver_that_asks_for_a_token_suits_no_cluster_without(
    unlocked: str, tmp_path: Path
) -> None:
    said = drive(unlocked, written(tmp_path, OWN), RAY_AUTH_MODE="token")
    other = "knows no token, but RAY_AUTH_MODE is 'token' here: unset it"
    assert said == f"refused: the Ray at {unlocked} {other}"


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "no-such-host.invalid:1", "127.0.0.1:70000", "127.0.0.1:x"]
)
def test_where_nobody_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "PATIENCE_S", 0.5)
    with (
        pytest.raises(ClusterError, match=f"no Ray at {address}: no answer: "),
        door.opened(address),
    ):
        pass


def test_no_address_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(ClusterError, match="no Ray at auto: RAY_ADDRESS"), door.opened("auto"):
        pass
    with pytest.raises(ClusterError, match="no Ray at nonsense: "), door.opened("nonsense"):
        pass
