"""Command line entry point; the commands are in `nasbo/commands`."""

from __future__ import annotations

from typing import Any

import click

from nasbo.commands import benches, data, init, launch, reports, spaces, sweeps, tracking
from nasbo.errors import NasboError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Group(click.Group):
    """Group that prints expected errors as one line and exits with their code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NasboError as error:
            click.echo(f"nasbo: {error}", err=True)
            ctx.exit(error.exit_code)


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="nasbo")


@click.group(
    cls=_Group, context_settings=CONTEXT, invoke_without_command=True, no_args_is_help=True
)
@click.option("--version", "is_version", is_flag=True, help="Show the version and exit.")
@click.option("--verbose", "is_verbose", is_flag=True, help="With --version: of all that a bug "
              "report should name.")  # fmt: skip
@click.pass_context
def cli(ctx: click.Context, is_version: bool, is_verbose: bool) -> None:
    """Neural architecture search by attention-based Bayesian optimisation, on Ray.

    \b
    A first sweep, on this machine:
      nasbo data cifar10
      nasbo run nas_cifar10 -o recipe=proxy --trials 20 --dir runs/first
      nasbo status runs/first

    \b
    With a network and data of your own:
      nasbo init my_sweep
    """
    if is_version:
        from nasbo.installation import describe_installation, version

        lines = describe_installation() if is_verbose else [f"nasbo, version {version()}"]
        click.echo("\n".join(lines))
        ctx.exit()
    if is_verbose:
        raise click.UsageError("--verbose goes with --version")
    if ctx.invoked_subcommand is None:
        raise click.UsageError("a command is needed")


COMMANDS = (
    init.init,
    spaces.space, data.data, sweeps.methods, sweeps.run, sweeps.resume, sweeps.status, sweeps.best,
    sweeps.why, sweeps.export, sweeps.finalize, launch.launch, launch.stop, launch.logs,
    reports.report, reports.compare, reports.grafana, tracking.track,
    benches.bench,
)  # fmt: skip
for command in COMMANDS:
    cli.add_command(command)


if __name__ == "__main__":
    main()
