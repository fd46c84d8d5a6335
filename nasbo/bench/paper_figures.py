"""Plots of the suite attnbo-paper, numbered as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.figures import draw_bands, save
from nasbo.bench.regret import regret_pairs, yardstick, yardsticks
from nasbo.bench.results import Results
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

Array = NDArray[np.float64]
METHODS = ("attnbo", PAPER_METHOD, *PAPER_PEERS)
VARIANTS = (PAPER_METHOD, NO_EMBEDDING, TOKEN_POOLING)


def draw_figures(results: Results, out: Path) -> list[Path]:
    """Draw the figures whose cells exist."""
    sets = {space: [f"{space}_{data}" for data in PAPER_SETS] for space in PAPER_SPACES}
    all_sets = [name for names in sets.values() for name in names]
    drawn = [
        _regrets(results, ["jenatton_small"], METHODS, out / "figure_03.png"),
        _rank_panels(results, sets, METHODS, out / "figure_04.png"),
        _iterations(results, out / "figure_05.png"),
        _rank_panels(results, sets, VARIANTS, out / "figure_13_14.png"),
        _regrets(results, all_sets, METHODS, out / "figure_15.png"),
    ]
    return [path for path in drawn if path is not None]


def _panels(n: int) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(n, 6)
    rows = -(-n // columns)
    figure = Figure(figsize=(4.6 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, columns, index + 1) for index in range(n)]
    for one in axes:
        one.grid(color="#dddddd", linewidth=0.6)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _regrets(
    results: Results, problems: Sequence[str], methods: Sequence[str], path: Path
) -> Path | None:
    """One panel per problem: regret over trials."""
    known = [name for name in problems if name in results.problems]
    if not known:
        return None
    figure, panels = _panels(len(known))
    for axes, name in zip(panels, known, strict=True):
        stick, trials = yardstick(results, name), results.problems[name].trials
        for index, method in enumerate(methods):
            if runs := results.of(name, method):
                best = np.stack([run.best[: trials + 1] for run in runs])
                curves = stick.log10(best) if stick.is_optimum else stick.regret(best)
                draw_bands(axes, index, method, curves)
        kind = "log10 regret" if stick.is_optimum else "regret"
        axes.set(title=name, xlabel="trials after the design", ylabel=kind)
    panels[0].legend(fontsize=7, frameon=False)
    return save(figure, path)


def _rank_panels(
    results: Results, sets: dict[str, list[str]], methods: Sequence[str], path: Path
) -> Path | None:
    """One panel per space: mean rank over trials of the methods that were
    run on all its problems.
    """
    found = {space: _ranked(results, names, methods) for space, names in sets.items()}
    drawn = {space: part for space, part in found.items() if part is not None}
    if not drawn:
        return None
    figure, panels = _panels(len(drawn))
    for axes, (space, (labels, ranked)) in zip(panels, drawn.items(), strict=True):
        for column, method in enumerate(labels):
            draw_bands(axes, list(methods).index(method), method, ranked[:, column])
        axes.set(title=space, xlabel="trials after the design", ylabel="mean rank (1 is best)")
        axes.invert_yaxis()
    panels[0].legend(fontsize=7, frameon=False)
    return save(figure, path)


def _ranked(
    results: Results, problems: Sequence[str], methods: Sequence[str]
) -> tuple[tuple[str, ...], Array] | None:
    """Methods and their ranks, shape (pairs, methods, trials + 1)."""
    known = {name: results.problems[name] for name in problems if name in results.problems}
    met = [set(results.contestants(name)) for name in known]
    present = tuple(m for m in methods if met and all(m in some for some in met))
    if len(present) < 2:
        return None
    runs = {key: run for key, run in results.runs.items() if key[0] in known and key[1] in present}
    part = Results(present, known, runs)
    sticks = yardsticks(part)
    trials = min(info.trials for info in known.values())
    return present, ranks(regret_pairs(part, sticks, list(known), trials).regrets)


def _iterations(results: Results, path: Path) -> Path | None:
    """Error on the NAS space over BO iterations; a batch counts as one."""
    if NAS not in results.problems:
        return None
    figure, (axes,) = _panels(1)
    for index, method in enumerate(NAS_METHODS):
        runs = results.of(NAS, method)
        n = min((len(run.round_ends) for run in runs), default=0)
        if n:
            ends = [np.array([0, *run.round_ends[:n]]) for run in runs]
            curves = np.stack([run.best[end] for run, end in zip(runs, ends, strict=True)])
            draw_bands(axes, index, method, curves)
    axes.set(title="CIFAR-10 proxy", xlabel="BO iteration", ylabel="validation error")
    axes.legend(fontsize=7, frameon=False)
    return save(figure, path)
