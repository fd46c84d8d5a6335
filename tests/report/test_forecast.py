"""Text of a dry run."""

from __future__ import annotations

import pytest

from nasbo.report.forecast import describe_needs


@pytest.mark.parametrize(
    ("name", "needed", "have", "words"),
    [
        ("GPU", 1, 1, ""),
        ("GPU", 0.5, 1, ""),
        ("GPU", 0.5, 0, "warning: a trial needs 0.5 GPU, this machine has no GPU: "),
        ("GPU", 2, 1, "warning: a trial needs 2 GPU, this machine has 1: "),
        ("CPU", 8, 2, "warning: a trial needs 8 CPU, this machine has 2: "),
    ],
)
def test_resources_of_this_machine(name: str, needed: float, have: float, words: str) -> None:
    said = describe_needs({name: needed}, {name: have})
    assert len(said) == bool(words)
    assert not words or said[0].startswith(words)


def test_resources_that_only_ray_knows_of() -> None:
    assert describe_needs({"CPU": 1, "spot": 1}, {"CPU": 2}) == [
        "a trial needs 1 spot: whether this machine has it is known once Ray runs"
    ]


def test_resources_of_a_cluster() -> None:
    said = describe_needs({"CPU": 64, "GPU": 0.5, "spot": 1}, {}, "head:6379")
    assert said == [
        f"a trial needs {what}: the cluster at head:6379 was not looked at"
        for what in ("0.5 GPU", "1 spot")
    ]
