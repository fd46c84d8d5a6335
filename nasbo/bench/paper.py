"""Figures and claims of the AttnBO paper, from the cells of the suite attnbo-paper.

The claims are those of sections 5.1 to 5.3 and appendices D and E. Each is decided by numbers from
the cells. A claim without cells is "not run".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from nasbo.bench.attention_maps import Shares, draw_maps
from nasbo.bench.claims import Claim, is_ahead, only, write_claims
from nasbo.bench.paper_figures import draw_figures
from nasbo.bench.regret import regret_pairs, yardsticks
from nasbo.bench.results import Results, load_results
from nasbo.bench.statistics import ranks
from nasbo.bench.suites import (
    NAS,
    NAS_METHODS,
    NO_EMBEDDING,
    PAPER_METHOD,
    PAPER_PEERS,
    PAPER_SETS,
    PAPER_SPACES,
    TOKEN_POOLING,
)

SIMULATION = "jenatton_small"
OURS = ("attnbo", PAPER_METHOD)
"""The default method, and the paper's model as written. Each claim is checked for both."""


def write_paper(out: Path) -> str:
    """Draw the figures into ``out`` and write ``claims.md`` and
    ``claims.json``; returns the text.
    """
    results = load_results(out)
    draw_figures(results, out)
    claims = check_claims(results, draw_maps(results, out / "figure_12.png"))
    return write_claims(out, "The claims of the AttnBO paper, as far as they go here", claims)


def check_claims(results: Results, shares: list[Shares]) -> list[Claim]:
    """All claims, figure by figure."""
    claims = []
    for ours in OURS:
        claims.append(_is_best(results, "3", "best on the simulation", ours, [SIMULATION]))
        for space in PAPER_SPACES:
            text = f"best mean rank over the six sets, {space} space"
            claims.append(_is_best(results, "4, 15", text, ours, _sets(space)))
        claims.append(
            is_ahead(results, ("4, 15", "ahead of Add-Tree"), (ours, "addtree"), _all_sets())
        )
    claims.append(_gap_grows(results))
    for space in PAPER_SPACES:
        for figure, variant, what in (
            ("13, 14", NO_EMBEDDING, "structure-aware embedding ahead of none"),
            ("13", TOKEN_POOLING, "mean pooling ahead of token pooling"),
        ):
            text = f"{what}, {space} space"
            claims.append(is_ahead(results, (figure, text), (PAPER_METHOD, variant), _sets(space)))
    return [*claims, *_nas_claims(results), *_map_claims(shares)]


def _sets(space: str) -> list[str]:
    return [f"{space}_{data}" for data in PAPER_SETS]


def _all_sets() -> list[str]:
    return [name for space in PAPER_SPACES for name in _sets(space)]


def _mean_ranks(results: Results, problems: list[str], methods: list[str]) -> dict[str, float]:
    """Mean final ranks of the methods that were run on all problems; empty for fewer than two."""
    part = only(results, problems, methods)
    if part is None:
        return {}
    sticks, ranked = yardsticks(part), []
    for name, info in part.problems.items():
        pairs = regret_pairs(part, sticks, [name], info.trials)
        if pairs.methods == part.methods and len(pairs.regrets):
            ranked.append(ranks(pairs.regrets[:, :, -1]).mean(0))
    if not ranked:
        return {}
    return dict(zip(part.methods, np.mean(ranked, 0).tolist(), strict=True))


def _is_best(results: Results, figure: str, text: str, ours: str, problems: list[str]) -> Claim:
    means = _mean_ranks(results, problems, [ours, *PAPER_PEERS])
    if ours not in means:
        return Claim(figure, text, ours, "not run", "")
    best = min(means, key=lambda method: means[method])
    numbers = ", ".join(f"{m} {rank:.2f}" for m, rank in sorted(means.items(), key=lambda i: i[1]))
    return Claim(figure, text, ours, _word(best == ours), f"mean rank at the end: {numbers}")


def _gap_grows(results: Results) -> Claim:
    """Claim that methods differ more on more complex spaces, by the spread of their mean ranks."""
    text = "methods differ more in the combined space than in its parts"
    spreads = {}
    for space in PAPER_SPACES:
        means = _mean_ranks(results, _sets(space), [PAPER_METHOD, *PAPER_PEERS])
        if means:
            spreads[space] = max(means.values()) - min(means.values())
    if len(spreads) < len(PAPER_SPACES):
        return Claim("4", text, "all", "not run", "")
    holds = spreads["cash"] > max(spreads["svm"], spreads["xgboost"])
    numbers = ", ".join(f"{space} {spread:.2f}" for space, spread in spreads.items())
    return Claim("4", text, "all", _word(holds), f"best to worst mean rank: {numbers}")


def best_by_iteration(results: Results, problem: str, method: str) -> list[float]:
    """Best value after each suggestion, the design first, averaged over seeds."""
    runs = results.of(problem, method)
    n = min((len(run.round_ends) for run in runs), default=0)
    ends = [[0, *run.round_ends[:n]] for run in runs]
    curves = [run.best[np.array(end)] for run, end in zip(runs, ends, strict=True)]
    return [float(value) for value in np.mean(curves, 0)] if curves else []


def _nas_claims(results: Results) -> list[Claim]:
    ours, text = NAS_METHODS[0], "best at each BO iteration on the NAS space"
    curves = {m: best_by_iteration(results, NAS, m) for m in NAS_METHODS}
    curves = {method: curve for method, curve in curves.items() if len(curve) > 1}
    if ours not in curves or len(curves) < 2:
        return [Claim("5", text, ours, "not run", "")]
    length = min(len(curve) for curve in curves.values())
    ahead = [
        all(curves[ours][at] <= curve[at] for curve in curves.values()) for at in range(1, length)
    ]
    last = ", ".join(f"{method} {curve[length - 1]:.4f}" for method, curve in curves.items())
    numbers = f"ahead after {np.mean(ahead):.0%} of {length - 1} iterations; at the last: {last}"
    claims = [Claim("5", text, ours, _word(all(ahead)), numbers)]
    random, tree = curves.get("random@subspaces"), curves.get("addtree")
    if random and tree:
        wins = float(np.mean([random[at] < tree[at] for at in range(1, length)]))
        text = "random in batches ahead of Add-Tree, one config at a time"
        numbers = f"ahead after {wins:.0%} of {length - 1} iterations"
        claims.append(Claim("5", text, "random@subspaces", _word(wins > 0.5), numbers))
    return claims


def _map_claims(shares: list[Shares]) -> list[Claim]:
    texts: list[tuple[str, Callable[[Shares], tuple[float, float]]]] = [
        ("the first three blocks draw more attention than the fourth",
         lambda one: (one.early_blocks, one.last_block)),
        ("batch size and learning rate draw more attention than the mean token",
         lambda one: (one.optimisation, one.mean)),
    ]  # fmt: skip
    claims = []
    for text, pair in texts:
        if not shares:
            claims.append(Claim("12", text, PAPER_METHOD, "not run", ""))
            continue
        found = [pair(one) for one in shares]
        numbers = "; ".join(f"{left:.4f} against {right:.4f}" for left, right in found)
        holds = all(left > right for left, right in found)
        claims.append(Claim("12", text, PAPER_METHOD, _word(holds), f"per token: {numbers}"))
    return claims


def _word(holds: bool) -> str:
    return "holds" if holds else "does not hold"
