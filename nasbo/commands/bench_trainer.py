"""Command nasbo bench trainer: speed of the shipped trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nasbo.errors import NasboError
from nasbo.shipped import use_shipped

if TYPE_CHECKING:
    from trainers.bench.networks import Measured


@click.command("trainer")
@click.option(
    "--batch", default=64, show_default=True, type=click.IntRange(min=2), help="Images per step."
)
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Measurements of either side.",
)
@click.option("--recipe", type=click.Choice(["paper", "proxy"]), help="Recipe. [default: both]")
@click.option(
    "--network",
    "names",
    multiple=True,
    help="Network, such as median; may be repeated. [default: all]",
)
def trainer(batch: int, rounds: int, recipe: str | None, names: tuple[str, ...]) -> None:
    """Measure the speed of the CIFAR-10 trainer, relative to a plain torchvision loop.

    The plain loop is torchvision's CIFAR10 with PIL transforms and a DataLoader, channels first.
    Both train the same networks on one thread, in turns; results are medians over the turns, in
    CPU seconds, so that other processes have little effect. The last column is the speed in FLOPs
    per second relative to that of a large matrix product in the same process.
    """
    use_shipped()
    from trainers.bench.measure import compare
    from trainers.bench.networks import networks

    chosen = _chosen(networks(batch), recipe, names)
    _check(chosen)
    click.echo(
        f"{'network':<62} {'recipe':<6} {'img/s':>6} {'plain':>6} ratio  input (plain)  peak"
    )
    for network in chosen:
        found = compare(network, rounds)
        click.echo(
            f"{found.network.label:<62} {found.network.recipe:<6} {found.ours:>6.0f} "
            f"{found.plain:>6.0f} {found.ratio:>5.2f} {found.input_share:>6.1%} "
            f"{found.plain_input_share:>7.1%} {found.peak_share:>5.0%}"
        )


def _chosen(
    known: Sequence[Measured], recipe: str | None, names: Sequence[str]
) -> Sequence[Measured]:
    """The networks of a recipe with given names; all by default."""
    fitting = [network for network in known if recipe in (None, network.recipe)]
    found = {network.name for network in fitting}
    if unknown := [name for name in names if name not in found]:
        raise NasboError(
            f"network must be one of {', '.join(sorted(found))}"
            + (f" with --recipe {recipe}" if recipe else "")
            + f", got {unknown[0]!r}"
        )
    return [network for network in fitting if not names or network.name in names]


def _check(chosen: Sequence[Measured]) -> None:
    """Raise before the table for missing data, and for batches larger than the data."""
    from trainers.architecture import InvalidArchitecture
    from trainers.data import DataError, open_cifar10
    from trainers.forecast import check

    try:
        open_cifar10()
        for network in chosen:
            check(network.config, {"recipe": network.recipe})
    except (DataError, InvalidArchitecture) as error:
        raise NasboError(str(error)) from error
