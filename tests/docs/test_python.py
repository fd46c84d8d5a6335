"""Python blocks of the documentation, each run in a namespace and a folder of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.conftest import Prepare
from tests.docs.pages import Block, blocks, name_of

CONTRACTS = [block for block in blocks("python") if (block.file or "").startswith("test_")]
ALL = [block for block in blocks("python") if block not in CONTRACTS]
QUICK = [block for block in ALL if not block.needs_ray]
ON_RAY = [block for block in ALL if block.needs_ray]


def test_most_blocks_are_quick() -> None:
    assert len(QUICK) > 4 * len(ON_RAY) > 0


@pytest.mark.parametrize("block", QUICK, ids=str)
def test_it_runs(block: Block, prepare: Prepare) -> None:
    prepare(block.page)
    exec(compile(block.text, str(block), "exec"), {"__name__": "block"})


@pytest.mark.ray
@pytest.mark.parametrize("block", ON_RAY, ids=str)
def test_it_runs_on_ray(block: Block, prepare: Prepare) -> None:
    folder = prepare(block.page)
    (folder / "block.py").write_text(block.text)
    done = subprocess.run(
        [sys.executable, "block.py"], cwd=folder, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr


def test_contract_tests_of_the_guide_are_run_elsewhere() -> None:
    """In full, by ``tests/methods/test_guide.py``."""
    assert {name_of(block.page) for block in CONTRACTS} == {"nasbo/methods/README.md"}
