"""Commands for benchmark problems: nasbo bench problems, nasbo bench tabulate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from nasbo.commands.terminal import console

_SHOWN = ("problem", "group", "half", "subspaces", "parameters", "optimum", "cost", "needs")


@click.command("problems")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as JSON.")
def problems(as_json: bool) -> None:
    """List the benchmark problems.

    Settings of nasbo's own methods were chosen on the half "tuning" only. An optimum of "?" is
    unknown; ± marks noisy evaluations.
    """
    from nasbo.bench.problems.listing import problem_rows

    rows = problem_rows()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        console().print(_table(rows))


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for column in _SHOWN:
        is_number = column in ("subspaces", "parameters", "optimum")
        width = max(len(column), *(len(_cell(row, column)) for row in rows))
        table.add_column(
            column,
            justify="right" if is_number else "left",
            no_wrap=True,
            min_width=None if column == "needs" else width,
        )
    for row in rows:
        table.add_row(*(_cell(row, column) for column in _SHOWN))
    return table


def _cell(row: dict[str, Any], column: str) -> str:
    if column != "optimum":
        return str(row[column])
    known = "?" if row["optimum"] is None else f"{row['optimum']:.4g}"
    return known + (" ±" if row["noise"] else "")


@click.command("tabulate")
@click.argument("problem")
@click.option("--n", default=2000, show_default=True, type=click.IntRange(min=1),
              help="Random configs to evaluate.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--processes", type=click.IntRange(min=1), help="Number of processes. [default: one per core]"
)
def tabulate(problem: str, n: int, seed: int, processes: int | None) -> None:
    """Evaluate random configs of a problem and keep their values on disk.

    Config k depends only on the seed and k, so that a table can be interrupted, resumed and
    extended. Values are stored in $NASBO_TABLES (default: $NASBO_DATA/tables) and are used by
    `nasbo bench` for every method and seed that evaluates the same config.
    """
    from nasbo.bench.tabulate import tabulate as run

    n_processes = processes or os.cpu_count() or 1
    with click.progressbar(length=n, label=problem, show_pos=True) as bar:
        found = run(problem, n, seed, n_processes, lambda: bar.update(1))
    click.echo(str(found))


@click.command("publish-values")
@click.argument("problem")
@click.argument("file", metavar="FILE.jsonl.xz", type=click.Path(path_type=Path))
def publish_values(problem: str, file: Path) -> None:
    """Write the stored values of a problem to one file for publication.

    A file in nasbo/bench/published/values with the name of the store is used by all installations.
    """
    from nasbo.bench.problems import PROBLEMS
    from nasbo.errors import NasboError

    entry = PROBLEMS.get(problem)
    if entry is None or entry.store is None:
        stored = sorted(name for name, one in PROBLEMS.items() if one.store is not None)
        raise NasboError(f"{problem!r}: no problem with stored values; those: {', '.join(stored)}")
    store = entry.store()
    n = store.publish(file)
    click.echo(f"{n} values of {store.name} in {file}, {file.stat().st_size / 1e3:.0f} kB")
