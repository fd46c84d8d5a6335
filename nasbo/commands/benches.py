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


@bench.command("trainer")
@click.option("--batch", default=64, show_default=True, help="Pictures per step.")
@click.option("--rounds", default=5, show_default=True, help="Turns of either side.")
@click.option(
    "--recipe", type=click.Choice(["paper", "proxy"]), help="Only this one; default both."
)
@click.option(
    "--network", "names", multiple=True, help="Only this one, such as median; may be repeated."
)
def bench_trainer(batch: int, rounds: int, recipe: str | None, names: tuple[str, ...]) -> None:
    """How fast the CIFAR-10 trainer is, against a plain torchvision loop.

    The plain loop is torchvision's CIFAR10 with PIL transforms and a DataLoader, channels first.
    Both train the same networks on one thread, in turn, and the medians of the turns count: CPU
    seconds, so that neighbours on the machine matter little. The last column is the share of what
    a large matrix product reaches in the same process.
    """
    from trainers.bench.measure import measure

    click.echo(
        f"{'network':<62} {'recipe':<6} {'img/s':>6} {'plain':>6} ratio  input (plain)  peak"
    )
    for found in measure(batch, rounds, recipe, names):
        click.echo(
            f"{found.network.label:<62} {found.network.recipe:<6} {found.ours:>6.0f} "
            f"{found.plain:>6.0f} {found.ratio:>5.2f} {found.input_share:>6.1%} "
            f"{found.plain_input_share:>7.1%} {found.peak_share:>5.0%}"
        )
