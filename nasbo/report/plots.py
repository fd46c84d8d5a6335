"""Plot of the best value so far, as a PNG file."""

from __future__ import annotations

from pathlib import Path

from nasbo.history import Trial, View
from nasbo.sweeps.spending import best_course, course

_SOURCE_COLORS = {
    "design": "#7f7f7f",
    "model": "#1f77b4",
    "probe": "#2ca02c",
    "fallback": "#d62728",
}


def plot_best_so_far(history: View, path: Path, title: str = "", ylabel: str = "value") -> None:
    """Plot every trial's value and the best so far over the ended trials, or the used budget."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ended = _placed(history)
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for source, color in _SOURCE_COLORS.items():
        points = [
            (place, t.value) for place, t in ended if t.source == source and t.value is not None
        ]
        if points:
            positions, values = zip(*points, strict=True)
            axes.scatter(positions, values, s=18, color=color, label=source, zorder=3)
    curve = best_course(history)
    places, bests = [place for place, _ in curve], [best for _, best in curve]
    axes.step(places, bests, where="post", color="black", label="best so far")
    axes.set_xlabel("trials that have ended" if history.rungs is None else "full trainings' worth")
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)


def _placed(history: View) -> list[tuple[float, Trial]]:
    """Trials and their positions along the budget, in the order of their ends."""
    if history.rungs is not None:
        return [(n / history.rungs.full, trial) for n, trial in course(history)]
    ended = (trial for trial in history.trials if not trial.is_open)
    ordered = sorted(ended, key=lambda trial: (trial.ended_at or 0.0, trial.id))
    return [*enumerate(ordered, start=1)]
