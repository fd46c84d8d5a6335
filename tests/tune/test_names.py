"""Names in Ray's dashboard, and the address of the dashboard."""

from __future__ import annotations

import socket

import pytest

from nasbo.tune.cluster import dashboard_words
from nasbo.tune.names import named_actor, named_trainable


def test_classes_are_called_as_the_sweep() -> None:
    trials = named_trainable(lambda config: None, "first", "own:train", {"CPU": 0.5, "GPU": 0})
    assert trials.__name__ == trials.__qualname__ == "first"
    assert repr(trials.__new__(trials)) == "own:train"
    assert trials.default_resource_request({}).bundles == [{"CPU": 0.5}]
    mind = named_actor(dict, "first", "attnbo")
    assert (mind.__name__, repr(mind())) == ("first", "attnbo")
    assert named_actor(dict, "", "gp").__name__ == "dict"


@pytest.mark.parametrize(
    ("url", "address", "host"),
    [
        ("127.0.0.1:8265", "local", socket.gethostname()),
        ("127.0.0.1:8265", "127.0.0.1:6379", socket.gethostname()),
        ("127.0.0.1:8266", "head.cluster:6379", "head.cluster"),
        ("127.0.0.1:8266", "ray://10.0.0.7:10001", "10.0.0.7"),
    ],
)
def test_the_way_to_the_dashboard(url: str, address: str, host: str) -> None:
    port = url.partition(":")[2]
    first, second = dashboard_words(url, address).splitlines()
    assert first.startswith(f"dashboard: http://{url}")
    assert second.split() == [
        "from", "elsewhere:", "ssh", "-N", "-L", f"{port}:127.0.0.1:{port}", host,
    ]  # fmt: skip


def test_a_dashboard_that_is_open_to_others_needs_no_tunnel() -> None:
    assert "ssh" not in dashboard_words("10.0.0.7:8265", "10.0.0.7:6379")
    assert dashboard_words("", "local") == ""
