"""Commands for benchmarks of methods: nasbo bench, nasbo bench table, nasbo bench suites."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nasbo.commands.terminal import console

_OWN_METHODS = "attnbo,gp,hierarchical,addtree,tpe-group,random"


def bench_options(command: Any) -> Any:
    """Options of ``nasbo bench`` itself."""
    options = [
        click.option("--suite", help="A named benchmark; nasbo bench suites lists them."),
        click.option("--problems", metavar="A,B", help="See nasbo bench problems; or "
                     "module:function for a user-defined problem."),
        click.option("--methods", metavar="A,B", help="The first is compared with the others. "
                     "Options and batch size: 'attnbo[attention=off]@4'; "
                     f"@subspaces is one config per subspace. [default: {_OWN_METHODS}]"),
        click.option("--seeds", type=click.IntRange(1), help="[default: 10]"),
        click.option("--trials", type=click.IntRange(1), help="Trials after the initial design; "
                     "in the suite curves total full trainings. [default: 80; 20]"),
        click.option("--batch", type=click.IntRange(1), help="Configs per suggestion. "
                     "[default: 1]"),
        click.option("--design", type=click.IntRange(2), help="Size of the initial design. "
                     "[default: two per subspace, as in the AttnBO paper]"),
        click.option("--workers", type=click.IntRange(1), help="In the suite curves, only the "
                     "searches with this number of workers."),
        click.option("--out", type=click.Path(path_type=Path), help="Folder of the results; a "
                     "second run completes missing cells; tables show the requested ones. "
                     "[default: runs/bench-SUITE]"),
        click.option("--jobs", default=2, show_default=True, type=click.IntRange(1),
                     help="Concurrent processes, one thread each."),
        click.option("--skip-missing", is_flag=True, help="Skip methods whose package is "
                     "missing, with a note in the table, instead of an error."),
        click.option("--fresh", is_flag=True, help="Run finished cells again."),
        click.option("--any-version", is_flag=True, help="Keep cells of earlier versions of a "
                     "method's code, with a note in the table."),
        click.option("--published", is_flag=True, help="Use the cells that are shipped with "
                     "nasbo, and run only the missing ones."),
        click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def run_benchmark(settings: dict[str, Any]) -> None:
    """Run, write the tables, print the summary; exit code 1 if cells are missing."""
    from nasbo.bench.plan import make_plan
    from nasbo.bench.run import Settings, run_plan

    out = settings["out"] or Path("runs") / f"bench-{settings['suite'] or 'own'}"
    plan = make_plan(_parts(settings), settings["skip_missing"])
    if settings["published"]:
        from nasbo.bench.published import adopt_cells

        click.echo(f"{adopt_cells(out)} published cells came to {out}", err=True)
    command = "nasbo " + " ".join(map(_quoted, sys.argv[1:]))
    how = Settings(out, settings["jobs"], settings["fresh"], settings["any_version"], command)
    try:
        with Course() as course:
            state = run_plan(plan, how, course.update)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command finishes what is missing", err=True)
        sys.exit(130)
    _print_crashes(state.crashes)
    if state.n_run + state.n_cached == 0:
        click.echo("every cell crashed: there is nothing to make a table of", err=True)
        sys.exit(1)
    _write_and_print(out, as_json=settings["as_json"])
    _write_claims(settings["suite"], out)
    sys.exit(1 if state.crashes else 0)


def _write_and_print(
    out: Path, methods: Sequence[str] = (), problems: Sequence[str] = (), as_json: bool = False
) -> None:
    """Write the tables of a folder, over trials or by cost, and print their summary."""
    from nasbo.bench.curves.write import is_by_cost, write_curve_tables
    from nasbo.bench.write import write_tables

    if is_by_cost(out):
        _print_costs(write_curve_tables(out, methods, problems), out, as_json)
    else:
        _print_summary(write_tables(out, methods, problems), out, as_json)


def _print_costs(tables: list[dict[str, Any]], out: Path, as_json: bool) -> None:
    """Print mean regrets over all problems, for each protocol."""
    if as_json:
        click.echo(json.dumps(tables, indent=1))
        return
    from rich.table import Table

    from nasbo.bench.curves.markdown import regret_rows

    for one in tables:
        click.echo(f"Mean regret, {one['protocol']}:")
        shown = Table(box=None, header_style="bold")
        shown.add_column("method")
        for mark in one["marks"]:
            shown.add_column(f"at {mark}", justify="right")
        for row in regret_rows(one):
            shown.add_row(*row)
        console().print(shown)
        if one["missing"]:
            click.echo(f"{len(one['missing'])} cells are missing: see {out / 'table.md'}")
    click.echo(f"{out / 'table.md'} and table.json")


def _print_crashes(crashes: dict[Any, str]) -> None:
    """Print each traceback once, below the cells that ended with it."""
    for text in dict.fromkeys(crashes.values()):
        for cell, own in crashes.items():
            if own == text:
                click.echo(f"crashed: {cell.problem} {cell.method} seed {cell.seed}", err=True)
        click.echo(f"{text.rstrip()}\n", err=True)


def _quoted(word: str) -> str:
    return f"'{word}'" if set(word) & set("[]*? ") else word


def _parts(settings: dict[str, Any]) -> Any:
    from nasbo.bench.spec import parse_methods, split_outside_brackets
    from nasbo.bench.suites import Changes, own_parts, suite_parts

    problems = tuple(split_outside_brackets(settings["problems"] or ""))
    methods = tuple(spec.label for spec in parse_methods(settings["methods"] or ""))
    numbers = {name: settings[name] for name in ("seeds", "trials", "batch", "design")}
    changes = Changes(problems, methods, **numbers, workers=settings["workers"])
    if settings["suite"]:
        return suite_parts(settings["suite"], changes)
    if not problems:
        raise click.UsageError("--suite NAME or --problems A,B must be given")
    if settings["workers"] is not None:
        raise click.UsageError("--workers belongs to --suite curves")
    return own_parts(problems, methods or _OWN_METHODS.split(","), changes)


def _write_claims(suite: str | None, out: Path) -> None:
    from nasbo.bench.paper import write_paper
    from nasbo.bench.suites import SUITES
    from nasbo.bench.tree_papers import write_tree_papers

    writers = {"attnbo": write_paper, "trees": write_tree_papers}
    if suite and SUITES[suite].claims:
        click.echo(writers[SUITES[suite].claims](out), err=True)


def _print_summary(table: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return
    from rich.table import Table

    from nasbo.bench.markdown import summary_rows

    overall = table["ranks"].get("overall", {})
    shown = Table(box=None, header_style="bold", title="Mean rank over all problems")
    shown.add_column("method")
    for at in overall:
        shown.add_column(f"{at} trials", justify="right")
    for row in summary_rows(table):
        shown.add_row(*row)
    console().print(shown)
    for name, reason in table["left_out"].items():
        click.echo(f"left out: {name} ({reason})")
    if table["missing"]:
        click.echo(f"{len(table['missing'])} cells are missing: see {out / 'table.md'}")
    click.echo(f"{out / 'table.md'}, table.json and plots beside them")


class Course:
    """Progress bar with the time left; on a pipe, a line from time to time."""

    EVERY_S = 30.0

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Course:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                console=Console(stderr=True), speed_estimate_period=600,
            )  # fmt: skip
            self._bar.start()
        return self

    def update(self, state: Any) -> None:
        """Show the progress of a run."""
        n_done = state.n_run + len(state.crashes)
        words = f"cells ({state.n_cached} found" + (
            f", {len(state.crashes)} crashed)" if state.crashes else ")"
        )
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(words, total=state.n_cells - state.n_cached)
            self._bar.update(self._task, completed=n_done, description=words)
        elif time.monotonic() - self._last > self.EVERY_S or not state.n_left or not n_done:
            self._last = time.monotonic()
            click.echo(f"{n_done} of {state.n_cells - state.n_cached} {words}", err=True)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


@click.command("table")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--methods", default="", metavar="A,B", help="Keep these, the first against the rest."
)
@click.option("--problems", default="", metavar="A,B", help="Keep these.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def table(folder: Path, methods: str, problems: str, as_json: bool) -> None:
    """Remake the tables and plots of a benchmark from its cells alone."""
    from nasbo.bench.spec import parse_methods, split_outside_brackets

    labels = [spec.label for spec in parse_methods(methods)]
    _write_and_print(folder, labels, split_outside_brackets(problems), as_json)


@click.command("publish")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE.jsonl.xz", type=click.Path(path_type=Path))
def publish(folder: Path, file: Path) -> None:
    """Put the cells of a benchmark, without their configs, into one file to give away."""
    from nasbo.bench.published import publish_cells

    n_cells = publish_cells(folder, file)
    click.echo(f"{n_cells} cells in {file}, {file.stat().st_size / 1e3:.0f} kB")


@click.command("suites")
def suites() -> None:
    """List the named benchmarks: problems, methods, seeds and trials."""
    from nasbo.bench.suites import SUITES

    for name, suite in SUITES.items():
        click.echo(f"{name:<13} {suite.summary}")
        for part in suite.parts:
            click.echo(f"{'':<13} {', '.join(part.problems)}")
            numbers = f"{part.seeds} seeds × {part.protocol}"
            click.echo(f"{'':<15} {numbers}: {', '.join(part.methods)}")
        click.echo("")
