"""Words about trackers: track."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nasbo.commands.folder_path import FolderPath

NAMES = ("mlflow", "wandb", "tensorboard")


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--to", "to", required=True, type=click.Choice(NAMES), help="The tracker.")
@click.option("--follow", is_flag=True, help="Go on until the sweep is over, through times without "
              "a driver or without a server.")  # fmt: skip
@click.option("--tracking-uri", metavar="URI", help="Of an MLflow or W&B server, or a folder for "
              "TensorBoard. [default: $MLFLOW_TRACKING_URI, $WANDB_BASE_URL, "
              "tensorboard/NAME]")  # fmt: skip
@click.option("--experiment", "--project", "project", default="nasbo", show_default=True,
              metavar="NAME", help="Of MLflow or W&B.")  # fmt: skip
@click.option("--name", help="Of the sweep's run. [default: that of the folder]")
@click.option("--interval", "interval_s", default=2.0, show_default=True,
              type=click.FloatRange(min=0.1), help="Seconds between two looks.")  # fmt: skip
@click.option("--patience", metavar="TIME", help="With --follow: end when no driver has run the "
              "sweep for so long, e.g. 10m. [default: never]")  # fmt: skip
def track(
    folder: Path,
    to: str,
    follow: bool,
    tracking_uri: str | None,
    project: str,
    name: str | None,
    interval_s: float,
    patience: str | None,
) -> None:
    """Show a sweep in MLflow, W&B or TensorBoard: while it runs, or afterwards.

    \b
    nasbo track runs/first --to mlflow --tracking-uri http://127.0.0.1:5000 --follow
    nasbo track s3://bucket/runs/first --to wandb --project nas
    nasbo track runs/first --to tensorboard --tracking-uri /shared/tensorboard/first

    The sweep is a run, each trial a run below it, each repeat one below its trial; the finalists
    of nasbo finalize, too. It reads the journal: no sweep notices it. Killed and started again, it
    doubles nothing and misses nothing.
    """
    from nasbo.sweeps.parsing import parse_duration
    from nasbo.tracking import Plan, Wish, open_destination
    from nasbo.tracking import track as show

    wish = Wish(tracking_uri, project, name, click.echo)
    patience_s = None if patience is None else parse_duration(patience)
    if patience is not None and not follow:
        raise click.UsageError("--patience goes with --follow")
    try:
        destination = open_destination(to, wish)
        show(folder, destination, Plan(follow, interval_s, patience_s), click.echo)
    except KeyboardInterrupt:
        click.echo("ended here; the same command goes on")
        sys.exit(130)
