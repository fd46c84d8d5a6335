"""Claims of the tree GPs' papers, tested on synthetic cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nasbo.bench.results import load_results
from nasbo.bench.tree_papers import EARLY, FUNCTIONS, check_tree_papers, write_tree_papers
from tests.bench.records import record, write_cells

N_TRIALS = 50
METHODS = {"addtree": 0.0, "independent": 1.0, "tree": 2.0, "gp": 3.0, "random": 8.0}


def cells(turn: int = N_TRIALS) -> list[dict[str, Any]]:
    """The tree GP is the best of all for ``turn`` trials, then what ``METHODS`` says."""
    records = []
    for problem in FUNCTIONS[:2]:
        for method, value in METHODS.items():
            for seed in range(6):
                first = 0.5 if method == "tree" and turn else value + 1
                last = [min(first, value) if method != "tree" else first] * (N_TRIALS - turn)
                scores = [9.0, 9.0, *[first + 0.01 * seed] * turn, *[v + 0.01 * seed for v in last]]
                records.append(record((problem, method, seed), scores))
    return records


def test_claims_are_decided_where_they_are_made(tmp_path: Path) -> None:
    write_cells(tmp_path, cells(EARLY))
    found = {claim.text: claim for claim in check_tree_papers(load_results(tmp_path))}
    assert found[f"tree ahead of independent after {EARLY} trials"].verdict == "holds"
    assert found["tree ahead of gp after 40 trials"].numbers.startswith("better/worse/tie 12/0/0")
    assert found["addtree ahead of tree after 40 trials"].verdict == "holds"
    assert found["independent ahead of tree after 40 trials"].verdict == "does not hold"
    assert found["tree ahead of arc after 40 trials"].verdict == "not run"
    depth = found["addtree has the least median regret on jenatton_small after 40 trials"]
    assert depth.verdict == "holds"
    assert depth.numbers.startswith("median log10 regret: addtree ")


def test_they_are_written(tmp_path: Path) -> None:
    write_cells(tmp_path, cells())
    text = write_tree_papers(tmp_path)
    assert text == (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "| Ma and Blaschko | addtree ahead of tree after 40 trials | addtree | **" in text
