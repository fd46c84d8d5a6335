"""Words about benchmarks: nasbo bench and its parts."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def bench() -> None:
    """Measure what nasbo costs and brings, on this machine."""


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


@bench.command("overhead")
@click.option("--trials", default=1000, show_default=True, type=click.IntRange(min=2))
def bench_overhead(trials: int) -> None:
    """What nasbo adds to a trial: trivial trials on two slots, bare Tune against a sweep."""
    from nasbo.bench.overhead import measure_overhead

    found = measure_overhead(trials)
    click.echo(f"bare Tune: {1e3 * found.bare_s:.1f} ms per trial ({trials} trials)")
    click.echo(
        f"a sweep:   {1e3 * found.nasbo_s:.1f} ms per trial, {found.ratio:.2f} times as much"
    )
    click.echo(f"memory:    the driver grew by {found.growth_mb:.0f} MB")
