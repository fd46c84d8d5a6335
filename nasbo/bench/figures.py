"""Plots of benchmark results as PNG files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.regret import Pairs, Yardstick, regret_pairs, yardsticks
from nasbo.bench.results import Results
from nasbo.bench.statistics import bootstrap_bands, ranks
from nasbo.bench.table import scopes

Array = NDArray[np.float64]
COLORS = (
    "#1b6ca8", "#d1495b", "#2e8b57", "#e8a33d", "#7b4fa3", "#008b8b",
    "#8b5a2b", "#c06c9b", "#6b7a8f", "#4d4d4d", "#9acd32", "#b8860b",
)  # fmt: skip
DPI = 130


def write_figures(results: Results, out: Path) -> list[Path]:
    """One plot of regrets per problem, one of ranks per set of problems, one of costs."""
    sticks = yardsticks(results)
    written = [_regret_figure(results, name, sticks[name], out) for name in results.problems]
    for scope, problems in scopes(results):
        path = out / f"rank_{file_name(scope)}.png"
        if _rank_figure(results, sticks, problems, path):
            written.append(path)
    return [*written, _cost_figure(results, out)]


def file_name(text: str) -> str:
    """A text made safe for a file name."""
    return re.sub(r"[^A-Za-z0-9_=-]+", "_", text).strip("_")


def new_figure(title: str, x: str, y: str) -> tuple[Any, Any]:
    """A figure with one axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Any, path: Path) -> Path:
    """Save a figure as PNG; returns the path."""
    figure.savefig(path, dpi=DPI, format="png")
    return path


def draw_bands(axes: Any, index: int, label: str, curves: Array) -> None:
    """Draw the mean of curves, shape (n, t), with its interval; the first is drawn on top."""
    mean, low, high = bootstrap_bands(curves)
    x = np.arange(len(mean))
    color = COLORS[index % len(COLORS)]
    style = "-" if index < len(COLORS) else "--"
    width = 2.2 if index == 0 else 1.3
    axes.plot(x, mean, style, color=color, linewidth=width, label=label, zorder=50 - index)
    axes.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0, zorder=1)


def _regret_figure(results: Results, name: str, stick: Yardstick, out: Path) -> Path:
    info = results.problems[name]
    kind = "log10 regret" if stick.is_optimum else f"regret (1 = {stick.reference})"
    title = f"{name}, returned configs" if info.is_returned else name
    figure, axes = new_figure(title, "trials after the design", kind)
    for method in results.contestants(name):
        best = np.stack([run.best[: info.trials + 1] for run in results.of(name, method)])
        curves = stick.log10(best) if stick.is_optimum else stick.regret(best)
        draw_bands(axes, results.methods.index(method), method, curves)
    if not stick.is_optimum:
        axes.set_yscale("symlog", linthresh=0.01)
        axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    return save(figure, out / f"regret_{file_name(name)}.png")


def _rank_figure(
    results: Results, sticks: dict[str, Yardstick], problems: Sequence[str], path: Path
) -> bool:
    trials = min(results.problems[name].trials for name in problems)
    pairs = regret_pairs(results, sticks, problems, trials)
    if not len(pairs.regrets) or len(pairs.methods) < 2:
        return False
    ranked = rank_curves(pairs)
    title = f"mean rank, {path.stem.removeprefix('rank_').replace('_', ' ')}"
    figure, axes = new_figure(title, "trials after the design", "rank (1 is best)")
    for column, method in enumerate(pairs.methods):
        draw_bands(axes, results.methods.index(method), method, ranked[:, column])
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False, ncols=2)
    save(figure, path)
    return True


def rank_curves(pairs: Pairs) -> Array:
    """Ranks over trials, shape (n, methods, trials + 1), per problem, or
    per seed of a single one.
    """
    ranked = ranks(pairs.regrets)
    return pairs.by_problem(ranked) if len(set(pairs.problems)) > 1 else ranked


def _cost_figure(results: Results, out: Path) -> Path:
    title = "cost of a suggestion"
    figure, axes = new_figure(title, "observations", "processor seconds per config, median")
    for index, method in enumerate(results.methods):
        costs = np.array([c for run in results.runs.values() if run.method == method
                          for c in run.costs]).reshape(-1, 2)  # fmt: skip
        if not len(costs):
            continue
        counts, medians = _binned(costs)
        color = COLORS[index % len(COLORS)]
        axes.plot(counts, medians, "o-", markersize=2.5, color=color, linewidth=1.3, label=method)
    axes.set_yscale("log")
    axes.legend(fontsize=8, frameon=False, ncols=2)
    return save(figure, out / "cost.png")


def _binned(costs: Array, n_bins: int = 16) -> tuple[Array, Array]:
    """Medians of costs, shape (n, 2) with the count first, in bins of that count."""
    edges = np.unique(np.linspace(costs[:, 0].min(), costs[:, 0].max() + 1, n_bins + 1).astype(int))
    bins = np.digitize(costs[:, 0], edges)
    used = np.unique(bins)
    medians = np.array([np.median(costs[bins == one], axis=0) for one in used])
    return medians[:, 0], np.maximum(medians[:, 1], 1e-5)
