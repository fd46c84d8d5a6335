"""Lease of a single writer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest

from nasbo.errors import JournalError
from nasbo.storage.conditional import Version
from nasbo.storage.lease import NAME, Lease, is_held
from nasbo.storage.location import Location
from tests.storage.race import ROUNDS, race


def test_a_second_writer_is_refused_while_the_first_renews(location: Location) -> None:
    first = Lease(location, lease_s=2)
    found = json.loads(location.read(NAME) or b"")
    # There is no process to check.
    location.write(NAME, json.dumps({**found, "host": "elsewhere"}).encode())
    stop = threading.Event()

    def renew() -> None:
        beat = 0
        while not stop.wait(0.2):
            beat += 1
            content = {**found, "host": "elsewhere", "beat": beat, "time": time.time()}
            location.write(NAME, json.dumps(content).encode())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with pytest.raises(JournalError, match=r"written by process .* on elsewhere"):
            Lease(location, lease_s=2)
        assert is_held(location)
    finally:
        stop.set()
        thread.join()
        first.release()


def test_the_same_host_sees_at_once_that_the_holder_lives(location: Location) -> None:
    lines: list[str] = []
    first = Lease(location, lease_s=3)
    with pytest.raises(JournalError, match="is being written by"):
        Lease(location, lease_s=3, tell=lines.append)
    assert "waiting 3 s" in lines[0]
    first.release()
    second = Lease(location, lease_s=3)
    assert second.epoch == first.epoch + 1
    second.release()
    assert not is_held(location)


def test_a_dead_process_of_this_host_is_not_waited_for(location: Location) -> None:
    code = (
        "import os, sys; from nasbo.storage.lease import Lease; "
        "from nasbo.storage.location import Location; "
        "Lease(Location(sys.argv[1]), epoch=6); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, location.url]).returncode == 9
    lines: list[str] = []
    lease = Lease(location, tell=lines.append)
    assert lines == []
    assert lease.epoch == 8
    lease.release()


def test_a_lease_elsewhere_is_free_after_its_life(location: Location) -> None:
    gone = {"id": "x", "host": "elsewhere", "process": 1, "epoch": 3, "beat": 9, "time": 0}
    location.write(NAME, json.dumps(gone).encode())
    lines: list[str] = []
    lease = Lease(location, lease_s=1, tell=lines.append)
    assert "process 1 on elsewhere had it" in lines[0]
    assert lease.epoch == 4
    lease.release()


def test_a_writer_that_slept_too_long_finds_out(location: Location) -> None:
    lease = Lease(location, lease_s=2)
    lease.confirm()
    lease._end.set()  # its thread sleeps with the machine
    lease._thread.join()
    lease._renewed_at -= 1.5
    lease.confirm()
    other = {**json.loads(location.read(NAME) or b""), "id": "other", "host": "elsewhere"}
    location.write(NAME, json.dumps(other).encode())
    with pytest.raises(JournalError, match="on elsewhere"):
        lease.confirm()
    location.delete(NAME)
    lease._renewed_at -= 10
    with pytest.raises(JournalError):
        lease.confirm()


def test_of_writers_that_start_at_the_same_moment_one_wins(url: str) -> None:
    assert race(url) == [1] * ROUNDS


def test_of_writers_that_wait_for_a_dead_one_one_wins(url: str) -> None:
    gone = {"id": "x", "host": "elsewhere", "process": 1, "epoch": 3, "beat": 9, "time": 0}
    n_rounds = 2
    for number in range(n_rounds):
        Location(f"{url}/{number}").write(NAME, json.dumps(gone).encode())
    assert race(url, n_rounds, lease_s=2) == [1] * n_rounds


def test_a_writer_that_stalls_before_it_takes_a_free_lease_does_not_get_it(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read that the lease was free; before it writes, another process has taken it."""
    slow, first = location.versioned(NAME), []
    write = slow.write

    def late(data: bytes, expected: Version | None) -> Version:
        monkeypatch.undo()
        first.append(Lease(location, lease_s=5))
        return write(data, expected)

    monkeypatch.setattr(slow, "write", late)
    monkeypatch.setattr(location, "versioned", lambda name: slow)
    with pytest.raises(JournalError, match="is being written by process"):
        Lease(location, lease_s=5)
    first[0].confirm()
    first[0].release()


def test_a_writer_finds_out_on_renewal_that_its_lease_was_taken(location: Location) -> None:
    lease = Lease(location, lease_s=5)
    other = {**json.loads(location.read(NAME) or b""), "id": "other", "host": "elsewhere"}
    location.write(NAME, json.dumps(other).encode())
    lease._thread.join(timeout=10)
    assert lease._age() < 2.5  # too recent to read the bucket
    with pytest.raises(JournalError, match="on elsewhere"):
        lease.confirm()
    lease.release()
    assert json.loads(location.read(NAME) or b"") == other


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_lost_answer_costs_nothing(location: Location, is_stored: bool) -> None:
    """A write that failed may have been stored; the next renewal finds out."""
    lease = Lease(location, lease_s=60)
    write = lease._object.write

    def lose(data: bytes, expected: Version | None) -> Version:
        if is_stored:
            write(data, expected)
        raise OSError("timed out")

    lease._object.write = lose  # type: ignore[method-assign]
    with pytest.raises(OSError, match="timed out"):
        lease._renew()
    lease._object.write = write  # type: ignore[method-assign]
    lease._renew()
    lease.confirm()
    assert json.loads(location.read(NAME) or b"")["beat"] == 3
    lease.release()
    assert not is_held(location)
