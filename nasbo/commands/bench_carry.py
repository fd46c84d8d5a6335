"""Command nasbo bench carry: transfer of published cells to the present code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nasbo.commands.bench_runs import Course
from nasbo.commands.terminal import console

if TYPE_CHECKING:
    from nasbo.bench.carry import Carrying, Group

_WORDS = {
    "waiting": "to replay",
    "equal": "carried",
    "refused": "refused",
    "left out": "not carried",
    "current": "current already",
}


@click.command("carry")
@click.option(
    "--old",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Checkout of the commit whose code made the cells.",
)
@click.option(
    "--published",
    "file",
    metavar="FILE.jsonl.xz",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of cells, which is rewritten. [default: the shipped one]",
)
@click.option("--methods", default="", metavar="A,B", help="Carry only these, by label.")
@click.option("--problems", default="", metavar="A,B", help="Carry only cells of these.")
@click.option(
    "--sample",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="Cells to replay of each method, problem and batch.",
)
@click.option(
    "--jobs",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="Concurrent processes, one thread each.",
)
@click.option(
    "--out",
    default=Path("runs/bench-carry"),
    show_default=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the replays; a second run resumes.",
)
@click.option("--dry-run", is_flag=True, help="Print the replays and their expected duration.")
def carry(file: Path | None, methods: str, problems: str, dry_run: bool, **settings: Any) -> None:
    """Keep published cells after a change of code that changes no decision.

    Cells are keyed by a hash of the deciding code, so any change of that code invalidates them.
    This command repeats a sample of them with the code that made them and with the present code,
    both on this machine, since numbers differ between machines even with the same code. If both
    give the same bits, the cells are stored under the present version, with a note in "carried".
    If a method differs on one problem, none of its cells of that batch size are carried.

    Cells are listed but not carried if the data of their problem are missing, or if their values
    require hours of training and are not stored. Exit code 1 if anything was refused.

    \b
    git worktree add --detach ../old COMMIT
    nasbo bench carry --old ../old --dry-run
    nasbo bench carry --old ../old --methods random,gp --jobs 8
    git worktree remove ../old
    """
    from nasbo.bench.carry import Carriage, Carrying
    from nasbo.bench.published import SHIPPED
    from nasbo.bench.spec import parse_methods, split_outside_brackets

    labels = tuple(spec.label for spec in parse_methods(methods))
    names = tuple(split_outside_brackets(problems))
    target = file or SHIPPED / "cells.jsonl.xz"
    carrying = Carrying(Carriage(file=target, methods=labels, problems=names, **settings))
    if dry_run:
        _print_groups(carrying.groups)
        click.echo(_estimate(carrying))
        return
    try:
        _replay(carrying)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on", err=True)
        sys.exit(130)
    n_cells = carrying.write()
    _print_groups(carrying.groups)
    click.echo(f"{n_cells} cells carried in {target}" if n_cells else f"{target} is as it was")
    sys.exit(1 if any(group.state == "refused" for group in carrying.groups) else 0)


def _replay(carrying: Carrying) -> None:
    """Replay with a progress bar, and a line for each method and batch."""
    click.echo(_estimate(carrying), err=True)
    with Course() as course:

        def tell(unit: list[Group]) -> None:
            (label, batch), refused = unit[0].unit, [g for g in unit if g.state == "refused"]
            found = f"differs: {refused[0].reason}" if refused else "equal"
            click.echo(f"{label}, batch {batch}, on {len(unit)} problems: {found}", err=True)

        carrying.replay(course.update, tell)


def _estimate(carrying: Carrying) -> str:
    """Duration of the replays, estimated from the recorded seconds of the cells."""
    waiting = [group for unit in carrying.units for group in unit]
    missing = [record for group in waiting for record in carrying.missing(group)]
    n_stored = 2 * sum(len(group.sample) for group in waiting) - len(missing)
    minutes = sum(record["seconds"] for record in missing) / carrying.carriage.jobs / 60
    return (
        f"{len(missing)} replays to run, {n_stored} stored: about {minutes:.1f} min with "
        f"{carrying.carriage.jobs} jobs"
    )


def _print_groups(groups: Iterable[Group]) -> None:
    """Print one row per method, batch and outcome."""
    from rich.table import Table

    rows: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        rows.setdefault((*group.unit, group.state, group.reason), []).append(group)
    table = Table(box=None, header_style="bold")
    for name in ("method", "batch", "problems", "cells", "replays", "outcome"):
        table.add_column(name, overflow="fold")
    for (label, batch, state, reason), mine in rows.items():
        problems = ", ".join(dict.fromkeys(group.key["problem"] for group in mine))
        n_cells = sum(len(group.records) for group in mine)
        is_run = state in ("waiting", "equal", "refused") and bool(mine[0].version)
        n_replays = 2 * sum(len(group.sample) for group in mine) if is_run else 0
        outcome = _WORDS[str(state)] + (f": {reason}" if reason else "")
        table.add_row(str(label), str(batch), problems, str(n_cells), str(n_replays), outcome)
    console().print(table)
