"""Objects below a URL."""

from __future__ import annotations

import threading

import pytest

from nasbo.errors import SweepError
from nasbo.storage.location import Location, is_url


def test_objects_come_back_and_go(location: Location) -> None:
    assert location.read("a/b.txt") is None
    assert location.sizes("a") == {}
    location.write("a/b.txt", b"first")
    location.write("a/b.txt", b"second")
    location.write("a/c/d.txt", b"")
    assert location.read("a/b.txt") == b"second"
    assert location.sizes("a") == {"a/b.txt": 6, "a/c/d.txt": 0}
    location.delete("a/b.txt")
    location.delete("a/b.txt")
    assert location.sizes("") == {"a/c/d.txt": 0}


def test_what_is_a_url() -> None:
    assert is_url("s3://bucket/x")
    assert not is_url("/shared/x")
    with pytest.raises(SweepError, match="must begin with one of s3, gs, file"):
        Location("ftp://host/x")


def test_a_fault_that_passes_is_tried_again(location: Location) -> None:
    calls = []

    def flaky() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("the network is gone")
        return "there"

    assert location._retry(flaky, "read") == "there"
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(OSError, match="network"):
        location._retry(flaky, "read", attempts=2)


def test_nobody_sees_half_an_object(location: Location) -> None:
    """A concurrent reader finds one of the two contents, never a part."""
    contents = {b"a" * 300_000, b"b" * 500_000}
    location.write("large", min(contents))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in sorted(contents):
                location.write("large", content)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert {location.read("large") for _ in range(300)} <= contents
    finally:
        stop.set()
        thread.join()
    assert list(location.sizes("")) == ["large"]
