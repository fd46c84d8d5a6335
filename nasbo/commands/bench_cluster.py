"""Command nasbo bench cluster: searches on simulated clusters."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from nasbo.commands.terminal import console

_ROWS = (
    ("workers busy, while there is work", "busy_share", ".1%"),
    ("workers busy, to the end of the last trial", "busy_share_to_the_end", ".1%"),
    ("waiting for a decision", "thinking_share", ".1%"),
    ("waiting for a round's other trials", "waiting_share", ".1%"),
    ("decisions", "n_decisions", ".0f"),
    ("configs per decision", "configs_per_decision", ".1f"),
    ("seconds per decision, median", "decision_s_median", ".3f"),
    ("seconds per decision, 95th percentile", "decision_s_p95", ".3f"),
    ("configs drawn without a model", "fallback_share", ".1%"),
)


@click.command("cluster")
@click.option("--workers", default=64, show_default=True, type=click.IntRange(1))
@click.option(
    "--schedule", default="both", show_default=True, type=click.Choice(["round", "async", "both"])
)
@click.option("--method", default="attnbo", show_default=True, help="As in nasbo bench --methods.")
@click.option("--problem", required=True, help="See nasbo bench problems.")
@click.option("--trials", type=click.IntRange(1), help="[default: 10 per worker]")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1))
@click.option("--mean-seconds", default=600.0, show_default=True, help="Mean duration of a trial.")
@click.option(
    "--tail", default="lognormal", show_default=True, type=click.Choice(["lognormal", "pareto"])
)
@click.option(
    "--shape",
    type=float,
    help="Standard deviation of the logarithm, or Pareto exponent. [default: 1, or 1.5]",
)
@click.option(
    "--correlation",
    default=0.0,
    show_default=True,
    help="Correlation of a trial's duration with its config's numbers, -1 to 1.",
)
@click.option(
    "--suggestion-seconds",
    type=float,
    help="Simulated time of each decision, instead of its measured CPU time.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for cluster.json and a plot.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def cluster(**given: Any) -> None:
    """Simulate a search on many workers: their utilisation, and the best value over time.

    The clock is simulated; decisions are those of a real sweep. A decision takes its CPU time on
    this machine in simulated time; durations of trials have a heavy-tailed distribution.

    \b
    nasbo bench cluster --problem jenatton_large --workers 64 --trials 256
    nasbo bench cluster --problem jenatton_large --workers 1000 --method random
    """
    from nasbo.bench.cluster_report import plot_courses, summarise, verdicts

    courses = _simulate(given)
    summary = {"settings": {k: str(v) for k, v in given.items()}, **summarise(courses)}
    if given["out"] is not None:
        given["out"].mkdir(parents=True, exist_ok=True)
        text = json.dumps(summary, indent=1)
        (given["out"] / "cluster.json").write_text(text, encoding="utf-8")
        title = f"{given['method']} on {given['problem']}, {given['workers']} workers"
        plot_courses(courses, title, given["out"] / "cluster.png")
    if given["as_json"]:
        click.echo(json.dumps(summary, indent=1))
        return
    console().print(_cluster_table(summary))
    for line in verdicts(summary):
        click.echo(line)


def _simulate(given: dict[str, Any]) -> list[Any]:
    from nasbo.bench.cluster import Cluster, Durations, Simulation
    from nasbo.bench.lookup import find_problem
    from nasbo.bench.spec import parse_method

    spec, problem = parse_method(given["method"]), find_problem(given["problem"])
    both = given["schedule"] == "both"
    schedules = ("round", "async") if both else (given["schedule"],)
    trials = given["trials"] or 10 * given["workers"]
    shape = given["shape"] or (1.0 if given["tail"] == "lognormal" else 1.5)
    courses = []
    length = trials * given["seeds"] * len(schedules)
    with click.progressbar(length=length, label="trials", file=sys.stderr) as bar:
        for seed in range(given["seeds"]):
            durations = Durations(
                given["mean_seconds"], given["tail"], shape, given["correlation"], seed
            )
            for schedule in schedules:
                settings = Cluster(given["workers"], trials, schedule, durations, seed,
                                   given["suggestion_seconds"])  # fmt: skip
                course = Simulation(problem, spec, settings).run(lambda: bar.update(1))
                courses.append(course)
    return courses


def _cluster_table(summary: dict[str, Any]) -> Any:
    from rich.table import Table

    names = list(summary["schedules"])
    shown = Table(box=None, header_style="bold")
    for column in ("", *names):
        shown.add_column(column, justify="right" if column else "left")
    for label, key, form in _ROWS:
        numbers = [summary["schedules"][name][key] for name in names]
        shown.add_row(label, *[format(value, form) for value in numbers])
    hours = [one["end_s"] / 3600 for one in summary["schedules"].values()]
    shown.add_row("simulated hours", *[f"{value:.2f}" for value in hours])
    for mark in summary["schedules"][names[0]]["best"]:
        values = [summary["schedules"][name]["best"][mark] for name in names]
        cells = ["–" if value is None else f"{value:.5g}" for value in values]
        hours = summary["horizon_s"] * float(mark.rstrip("%")) / 100 / 3600
        shown.add_row(f"best value after {hours:.2f} h", *cells)
    return shown
