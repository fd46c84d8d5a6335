"""Words about benchmarks: nasbo bench and its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nasbo.commands import bench_cluster, bench_runs


@click.group(invoke_without_command=True)
@bench_runs.bench_options
@click.pass_context
def bench(context: click.Context, /, **settings: Any) -> None:
    """Compare methods on problems, or measure what nasbo costs on this machine.

    Every method gets the same initial design and then chooses one config at a time. Each search is
    a cell; finished cells are kept in DIR, so that the same command continues where it was stopped
    and runs anew what has changed.

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
bench.add_command(bench_runs.suites)
bench.add_command(bench_cluster.cluster)


@bench.command("event-loop")
@click.option("--fit-seconds", default=10.0, show_default=True, help="How long a fit takes.")
def bench_event_loop(fit_seconds: float) -> None:
    """How late Tune handles results while a long fit is under way."""
    from nasbo.bench.event_loop import measure_event_loop

    found = measure_event_loop(fit_seconds)
    click.echo(
        f"{found.n_results} results during fits of {found.fit_s:g} s: handled after "
        f"{found.median_s:.3f} s (median), {found.worst_s:.3f} s (worst)"
    )


@bench.command("journal")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("."), help="Its disk.")
@click.option("--trials", default=10_000, show_default=True, help="Size of the journal opened.")
def bench_journal(folder: Path, trials: int) -> None:
    """What the journal costs per trial, and how long a large one takes to open."""
    from nasbo.bench.journal import measure_journal

    found = measure_journal(folder, trials)
    click.echo(f"writing: {found.per_trial_ms:.2f} ms per trial (median, forced to disk)")
    click.echo(f"opening: {found.open_s:.2f} s for {found.n_trials} trials, {found.size_mb:.1f} MB")
