"""Command group nasbo bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nasbo.commands import bench_carry, bench_cluster, bench_runs, bench_trainer, problems


@click.group(invoke_without_command=True)
@bench_runs.bench_options
@click.pass_context
def bench(context: click.Context, /, **settings: Any) -> None:
    """Compare methods on problems, or measure the overhead of nasbo on this machine.

    Every method gets the same initial design and then chooses one config at a time. Each search is
    a cell. Finished cells are kept in DIR: the same command resumes an interrupted benchmark, and
    repeats cells of methods whose code has changed.

    \b
    nasbo bench --suite quick
    nasbo bench --problems jenatton_large,cash_steel --methods attnbo,gp,smac --seeds 5 --out runs/b
    nasbo bench --problems blocks --methods 'attnbo,attnbo[attention=off]' --out runs/ablation
    nasbo bench table runs/b --methods gp,smac
    """
    given = [
        name
        for name in settings
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if context.invoked_subcommand is None:
        if not given:
            click.echo(context.get_help())
            context.exit()
        bench_runs.run_benchmark(settings)
    elif given:
        raise click.UsageError(
            f"--{given[0].replace('_', '-')} belongs behind {context.invoked_subcommand!r}"
        )


bench.add_command(bench_runs.table)
bench.add_command(bench_runs.publish)
bench.add_command(bench_carry.carry)
bench.add_command(bench_runs.suites)
bench.add_command(bench_cluster.cluster)
bench.add_command(bench_trainer.trainer)


bench.add_command(problems.problems)
bench.add_command(problems.tabulate)
bench.add_command(problems.publish_values)


@bench.command("event-loop")
@click.option("--fit-seconds", default=10.0, show_default=True, help="Duration of a fit.")
def bench_event_loop(fit_seconds: float) -> None:
    """Measure how late Tune handles results during a long fit."""
    from nasbo.bench.event_loop import measure_event_loop

    found = measure_event_loop(fit_seconds)
    click.echo(
        f"{found.n_results} results during fits of {found.fit_s:g} s: handled after "
        f"{found.median_s:.3f} s (median), {found.worst_s:.3f} s (worst)"
    )


@bench.command("journal")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("."), help="Folder of the journal."
)
@click.option(
    "--trials", default=10_000, show_default=True, help="Trials in the journal that is opened."
)
def bench_journal(folder: Path, trials: int) -> None:
    """Measure the journal's time per trial, and the time to open a large one."""
    from nasbo.bench.journal import measure_journal

    found = measure_journal(folder, trials)
    click.echo(f"writing: {found.per_trial_ms:.2f} ms per trial (median, forced to disk)")
    click.echo(f"opening: {found.open_s:.2f} s for {found.n_trials} trials, {found.size_mb:.1f} MB")


@bench.command("cost")
@click.option(
    "--method", "-m", "methods", multiple=True, help="Method; may be repeated. [default: all]"
)
@click.option("--space", help="Name or file of a space. [default: Jenatton's small function]")
@click.option(
    "--size", "sizes", type=int, multiple=True, help="Number of results; may be repeated."
)
@click.option("--repeats", default=5, show_default=True, help="Timed suggestions of each method.")
def bench_cost(
    methods: tuple[str, ...], space: str | None, sizes: tuple[int, ...], repeats: int
) -> None:
    """Measure the CPU seconds per suggestion of each method, by number of results.

    The results are spread evenly over the subspaces. In a search most of them are in the best
    subspaces, where methods with one model per subspace cost more than this table shows.
    """
    from nasbo.bench.addtree_regression import SMALL_BALANCED
    from nasbo.bench.cost import SIZES, installed_methods, measure_costs, table

    def progress(line: str) -> None:
        click.echo(line, err=True)

    names = methods or installed_methods()
    where = space or SMALL_BALANCED
    costs = measure_costs(names, where, sizes or SIZES, repeats, progress)
    click.echo("\n".join(table(costs)))


@bench.command("figure4")
@click.option("--out", type=click.Path(path_type=Path), default=Path("figure4.png"), help="Plot.")
@click.option("--seeds", default=10, show_default=True, help="Number of data sets.")
@click.option(
    "--size",
    "sizes",
    type=int,
    multiple=True,
    help="Observations; may be repeated. [default: 8, 12, ... 64]",
)
def bench_figure4(out: Path, seeds: int, sizes: tuple[int, ...]) -> None:
    """Reproduce figure 4 of the Add-Tree paper: regression error by number of observations.

    A GP with the Add-Tree covariance, independent GPs and the tree-structured GP are fitted to
    Jenatton's small function. Writes the plot and a CSV file of all errors next to it.
    """
    from nasbo.bench.addtree_regression import SIZES, reproduce

    for line in reproduce(out, sizes or SIZES, seeds):
        click.echo(line)


@bench.command("predict")
@click.option(
    "--method", "-m", "methods", multiple=True, help="Method; may be repeated. [default: GPs]"
)
@click.option(
    "--problem", "problems", multiple=True, help="Problem; may be repeated. [default: synthetic]"
)
@click.option(
    "--size",
    "sizes",
    type=int,
    multiple=True,
    help="Observations; may be repeated. [default: 20, 50, 100]",
)
@click.option("--seeds", default=5, show_default=True, help="Number of sets of observations.")
def bench_predict(
    methods: tuple[str, ...], problems: tuple[str, ...], sizes: tuple[int, ...], seeds: int
) -> None:
    """Measure accuracy and calibration of surrogates on held-out configs.

    All are fitted to the same random observations. Errors are in standard deviations of the
    held-out scores (of all of them, and of their best quarter). The log density is in nats; larger
    is better. The calibration error is the difference between the level of a predicted quantile
    and the share of scores below it.

    \b
    nasbo bench predict --problem share --problem blocks --size 50
    nasbo bench predict -m attnbo -m 'attnbo[max_rows=2000]' --problem share --size 2000 --seeds 2
    """
    from nasbo.bench.prediction import METHODS, PROBLEMS, SIZES, measure_predictions, table

    def progress(line: str) -> None:
        click.echo(line, err=True)

    rows = measure_predictions(
        methods or METHODS, problems or PROBLEMS, sizes or SIZES, seeds, progress
    )
    click.echo("\n".join(table(rows)))


@bench.command("overhead")
@click.option("--trials", default=1000, show_default=True, type=click.IntRange(min=2))
@click.option("--rungs", is_flag=True, help="Measure what a promotion costs instead.")
def bench_overhead(trials: int, rungs: bool) -> None:
    """Measure nasbo's overhead per trial: trivial trials on two slots, in Tune and in a sweep."""
    from nasbo.bench.overhead import measure_overhead

    if rungs:
        click.echo(_promotions_in_words(trials))
        return

    found = measure_overhead(trials)
    click.echo(f"bare Tune: {1e3 * found.bare_s:.1f} ms per trial ({trials} trials)")
    click.echo(
        f"a sweep:   {1e3 * found.nasbo_s:.1f} ms per trial, {found.ratio:.2f} times as much"
    )
    click.echo(f"memory:    the driver grew by {found.growth_mb:.0f} MB")


def _promotions_in_words(n_trainings: int) -> str:
    import numpy as np

    from nasbo.bench.promotions import measure_promotions

    found = measure_promotions(n_trainings)
    median, late = np.quantile(found.waits, [0.5, 0.95])
    return (
        f"{found.n_configs} configs, {found.n_promotions} promotions\n"
        f"a stretch between rungs: {1e3 * found.per_stretch_s:.1f} ms of a slot\n"
        f"from a promotion's start to its first report: median {1e3 * median:.1f} ms, "
        f"95 % within {1e3 * late:.1f} ms"
    )
