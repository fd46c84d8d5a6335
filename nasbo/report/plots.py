"""A history comes in; PNG files go out."""

from __future__ import annotations

from pathlib import Path

from nasbo.history import View

_SOURCE_COLORS = {
    "design": "#7f7f7f",
    "model": "#1f77b4",
    "probe": "#2ca02c",
    "fallback": "#d62728",
}


def plot_best_so_far(history: View, path: Path, title: str = "", ylabel: str = "value") -> None:
    """Every trial's value and the best so far over the trials in the order of their ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ended = sorted(
        (t for t in history.trials if not t.is_open), key=lambda t: (t.ended_at or 0.0, t.id)
    )
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for source, color in _SOURCE_COLORS.items():
        points = [
            (number, t.value)
            for number, t in enumerate(ended, start=1)
            if t.source == source and t.value is not None
        ]
        if points:
            positions, values = zip(*points, strict=True)
            axes.scatter(positions, values, s=18, color=color, label=source, zorder=3)
    curve = history.best_so_far()
    axes.step(range(1, len(curve) + 1), curve, where="post", color="black", label="best so far")
    axes.set_xlabel("trials that have ended")
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)
