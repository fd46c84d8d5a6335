"""Words about the speed of the shipped trainer: nasbo bench trainer."""

from __future__ import annotations

import click


@click.command("trainer")
@click.option("--batch", default=64, show_default=True, help="Pictures per step.")
@click.option("--rounds", default=5, show_default=True, help="Turns of either side.")
@click.option(
    "--recipe", type=click.Choice(["paper", "proxy"]), help="Only this one; default both."
)
@click.option(
    "--network", "names", multiple=True, help="Only this one, such as median; may be repeated."
)
def trainer(batch: int, rounds: int, recipe: str | None, names: tuple[str, ...]) -> None:
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
