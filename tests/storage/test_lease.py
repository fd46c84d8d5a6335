"""One writer at a time."""

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
from nasbo.storage.place import Place
from tests.storage.race import ROUNDS, race


def test_a_second_writer_is_refused_while_the_first_renews(place: Place) -> None:
    first = Lease(place, lease_s=2)
    found = json.loads(place.read(NAME) or b"")
    place.write(NAME, json.dumps({**found, "host": "elsewhere"}).encode())  # no process to look at
    stop = threading.Event()

    def renew() -> None:
        beat = 0
        while not stop.wait(0.2):
            beat += 1
            content = {**found, "host": "elsewhere", "beat": beat, "time": time.time()}
            place.write(NAME, json.dumps(content).encode())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with pytest.raises(JournalError, match=r"written by process .* on elsewhere"):
            Lease(place, lease_s=2)
        assert is_held(place)
    finally:
        stop.set()
        thread.join()
        first.release()


def test_the_same_host_sees_at_once_that_the_holder_lives(place: Place) -> None:
    lines: list[str] = []
    first = Lease(place, lease_s=3)
    with pytest.raises(JournalError, match="is being written by"):
        Lease(place, lease_s=3, tell=lines.append)
    assert "waiting 3 s" in lines[0]
    first.release()
    second = Lease(place, lease_s=3)
    assert second.epoch == first.epoch + 1
    second.release()
    assert not is_held(place)


def test_a_dead_process_of_this_host_is_not_waited_for(place: Place) -> None:
    code = (
        "import os, sys; from nasbo.storage.lease import Lease; "
        "from nasbo.storage.place import Place; Lease(Place(sys.argv[1]), epoch=6); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, place.url]).returncode == 9
    lines: list[str] = []
    lease = Lease(place, tell=lines.append)
    assert lines == []
    assert lease.epoch == 8
    lease.release()


def test_a_lease_elsewhere_is_free_after_its_life(place: Place) -> None:
    gone = {"id": "x", "host": "elsewhere", "process": 1, "epoch": 3, "beat": 9, "time": 0}
    place.write(NAME, json.dumps(gone).encode())
    lines: list[str] = []
    lease = Lease(place, lease_s=1, tell=lines.append)
    assert "process 1 on elsewhere had it" in lines[0]
    assert lease.epoch == 4
    lease.release()


def test_a_writer_that_slept_too_long_finds_out(place: Place) -> None:
    lease = Lease(place, lease_s=2)
    lease.confirm()
    lease._end.set()  # its thread sleeps with the machine
    lease._thread.join()
    lease._renewed_at -= 1.5
    lease.confirm()
    other = {**json.loads(place.read(NAME) or b""), "id": "other", "host": "elsewhere"}
    place.write(NAME, json.dumps(other).encode())
    with pytest.raises(JournalError, match="on elsewhere"):
        lease.confirm()
    place.delete(NAME)
    lease._renewed_at -= 10
    with pytest.raises(JournalError):
        lease.confirm()


def test_of_writers_that_start_at_the_same_moment_one_wins(url: str) -> None:
    assert race(url) == [1] * ROUNDS


def test_of_writers_that_wait_for_a_dead_one_one_wins(url: str) -> None:
    gone = {"id": "x", "host": "elsewhere", "process": 1, "epoch": 3, "beat": 9, "time": 0}
    n_rounds = 2
    for number in range(n_rounds):
        Place(f"{url}/{number}").write(NAME, json.dumps(gone).encode())
    assert race(url, n_rounds, lease_s=2) == [1] * n_rounds


def test_a_writer_that_stalls_before_it_takes_a_free_lease_does_not_get_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw that nobody had the lease; when it goes on, somebody has."""
    slow, first = place.versioned(NAME), []
    write = slow.write

    def late(data: bytes, expected: Version | None) -> Version:
        monkeypatch.undo()
        first.append(Lease(place, lease_s=5))
        return write(data, expected)

    monkeypatch.setattr(slow, "write", late)
    monkeypatch.setattr(place, "versioned", lambda name: slow)
    with pytest.raises(JournalError, match="is being written by process"):
        Lease(place, lease_s=5)
    first[0].confirm()
    first[0].release()


def test_a_writer_finds_out_on_renewal_that_its_lease_was_taken(place: Place) -> None:
    lease = Lease(place, lease_s=5)
    other = {**json.loads(place.read(NAME) or b""), "id": "other", "host": "elsewhere"}
    place.write(NAME, json.dumps(other).encode())
    lease._thread.join(timeout=10)
    assert lease._age() < 2.5  # too young to look at the bucket
    with pytest.raises(JournalError, match="on elsewhere"):
        lease.confirm()
    lease.release()
    assert json.loads(place.read(NAME) or b"") == other


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_lost_answer_costs_nothing(place: Place, is_stored: bool) -> None:
    """A write that failed may have been stored; the next renewal sees which."""
    lease = Lease(place, lease_s=60)
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
    assert json.loads(place.read(NAME) or b"")["beat"] == 3
    lease.release()
    assert not is_held(place)
