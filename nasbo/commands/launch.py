"""Commands for launched sweeps: launch, stop, logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nasbo.commands.options import sweep_options


@click.command()
@click.argument("file", metavar="SWEEP.yaml")
@click.option(
    "--on",
    required=True,
    metavar="WHERE",
    help="local, slurm, kuberay, or the address of a Ray cluster.",
)
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    help="Folder on storage that every node sees: a path, "
    "or a URL such as s3://bucket/runs/first. [default: storage_path/NAME-DATE]",
)
@click.option(
    "-v",
    "--value",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="Of the recipe, e.g. partition=gpu; all are in its values.yaml.",
)
@click.option("--values", "values_file", type=click.Path(path_type=Path), help="File of values.")
@click.option(
    "-e",
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment of driver and workers; shown in dashboards, so no secrets.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print the exact actions, without a launch."
)
@sweep_options("run")
@click.pass_context
def launch(ctx: click.Context, /, file: str, on: str, is_dry: bool, **given: Any) -> None:
    """Launch a sweep on a cluster, in the background, or resume it if its folder has a journal.

    The working directory is shipped, so that every worker can import the trainer.

    \b
    nasbo launch sweep.yaml --on local --dir runs/first
    nasbo launch sweep.yaml --on http://127.0.0.1:8265 --dir /shared/runs/first
    nasbo launch sweep.yaml --on slurm --dir /shared/runs/first -v nodes=4 -v gpus_per_node=8
    nasbo launch sweep.yaml --on kuberay --dir s3://bucket/runs/first -v image=REGISTRY/nasbo
    """
    from nasbo.launch import verbs
    from nasbo.launch.order import Request

    folder, pairs, env, values_file = (given.pop(k) for k in _OWN)
    if given.pop("address", None):
        raise click.UsageError("--address is for nasbo run; here --on says where")
    values = verbs.values_of(on, values_file, pairs)
    request = Request(file, given, folder, _words(ctx, given), env, values)
    verbs.launch(request, on, is_dry, click.echo)


_OWN = ("folder", "pairs", "env", "values_file")


def _words(ctx: click.Context, given: dict[str, Any]) -> tuple[str, ...]:
    """The given options of the sweep, for the command on the cluster."""
    words: list[str] = []
    for parameter in ctx.command.params:
        value = given.get(parameter.name or "")
        if value is None or value == () or parameter.name not in given:
            continue
        for item in value if isinstance(value, tuple) else (value,):
            words += [max(parameter.opts, key=len), str(item)]
    return tuple(words)


_ON = click.option(
    "--on", metavar="WHERE", help="Where it runs, if it was not launched from this machine."
)


@click.command()
@click.argument("folder", metavar="DIR")
@_ON
def stop(folder: str, on: str | None) -> None:
    """Stop a launched sweep cleanly; its next launch resumes the running trials."""
    from nasbo.launch import verbs

    verbs.stop(folder, on, click.echo)


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the sweep has ended.")
@_ON
def logs(folder: str, follow: bool, on: str | None) -> None:
    """Print the output of a launched sweep's driver."""
    from nasbo.launch import verbs

    verbs.logs(folder, on, follow, lambda text: click.echo(text, nl=False))
