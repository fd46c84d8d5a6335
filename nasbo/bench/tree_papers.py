"""Claims of the papers on tree-structured GPs, checked with the cells of the suite jenatton.

Jenatton et al. (2017, section 4.1) report their tree GP ahead of one GP with the arc kernel, of one
GP on the imputed vector, of SMAC and of random search, and early on of independent GPs. Ma and
Blaschko (2020) report Add-Tree ahead of all others, and the tree GP behind independent ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nasbo.bench.claims import Claim, is_ahead, write_claims
from nasbo.bench.regret import yardsticks
from nasbo.bench.results import Results, load_results

TITLE = "What the papers of the tree GPs claim, as far as it goes here"
SMALL, LARGE = "jenatton_small", "jenatton_large"
FUNCTIONS = (SMALL, LARGE, f"{SMALL}_unshared", f"{LARGE}_unshared")
EARLY, MIDDLE = 20, 40
"""Trials after the design. Later, most GPs are at the optimum and differ
only in the last digits."""
PAPERS = (
    ("Jenatton et al.", "tree", ("arc", "gp", "smac", "random"), MIDDLE),
    ("Jenatton et al.", "tree", ("independent",), EARLY),
    ("Ma and Blaschko", "addtree", ("tree", "independent", "smac", "random"), MIDDLE),
    ("Ma and Blaschko", "independent", ("tree",), MIDDLE),
)


def write_tree_papers(out: Path) -> str:
    """Write ``claims.md`` and ``claims.json`` into ``out``; returns the text."""
    return write_claims(out, TITLE, check_tree_papers(load_results(out)))


def check_tree_papers(results: Results) -> list[Claim]:
    """Each claim over all functions together, then the final regret on each function."""
    claims = [
        is_ahead(results, (paper, f"{ours} ahead of {other} after {at} trials"),
                 (ours, other), FUNCTIONS, at)
        for paper, ours, others, at in PAPERS
        for other in others
    ]  # fmt: skip
    return [*claims, *(_depth(results, name) for name in FUNCTIONS)]


def _depth(results: Results, problem: str) -> Claim:
    """Whether Add-Tree has the least median regret on a function."""
    text = f"addtree has the least median regret on {problem} after {MIDDLE} trials"
    if problem not in results.problems or "addtree" not in results.contestants(problem):
        return Claim("Ma and Blaschko", text, "addtree", "not run", "")
    stick = yardsticks(results)[problem]
    depths = {
        method: float(
            np.median([stick.log10(run.best)[MIDDLE] for run in results.of(problem, method)])
        )
        for method in results.contestants(problem)
    }
    shown = sorted(depths.items(), key=lambda item: item[1])
    numbers = "median log10 regret: " + ", ".join(f"{m} {depth:.1f}" for m, depth in shown)
    holds = depths["addtree"] <= shown[0][1]
    return Claim("Ma and Blaschko", text, "addtree", "holds" if holds else "does not hold", numbers)
