"""The words of a dry run."""

from __future__ import annotations

import pytest

from nasbo.report.forecast import describe_gpus


@pytest.mark.parametrize(
    ("needed", "have", "words"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (0.5, 1, ""),
        (0.5, 0, "warning: a trial needs 0.5 GPU, this machine has no GPU: "),
        (2, 1, "warning: a trial needs 2 GPU, this machine has 1: "),
    ],
)
def test_gpus_of_this_machine(needed: float, have: int, words: str) -> None:
    said = describe_gpus(needed, have)
    assert said.startswith(words)
    assert bool(said) is bool(words)


def test_gpus_of_a_cluster() -> None:
    assert "at head:6379 was not looked at" in describe_gpus(1, 0, "head:6379")
    assert describe_gpus(0, 0, "head:6379") == ""
