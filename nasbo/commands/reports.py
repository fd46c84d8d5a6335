"""Commands for results: report, compare, grafana."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nasbo.commands.folder_path import FolderPath
from nasbo.commands.options import ranked_by

if TYPE_CHECKING:
    from nasbo.history import By


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--out", type=click.Path(path_type=Path), help="Default: DIR/report.html.")
@click.option("--figure", metavar="NAME", help="Write only this figure, with --png.")
@click.option("--png", type=click.Path(path_type=Path), help="PNG file of the figure.")
@click.option("--serve", is_flag=True, help="Serve a live report on this machine's loopback.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65535))
@ranked_by
def report(
    folder: Path,
    out: Path | None,
    figure: str | None,
    png: Path | None,
    serve: bool,
    port: int,
    by: By,
) -> None:
    """Write the report of a sweep as one HTML page, or one of its figures as PNG.

    \b
    nasbo report runs/first
    nasbo report runs/first --figure best-so-far --png best.png
    nasbo report runs/first --serve
    """
    if (figure is None) != (png is None):
        raise click.UsageError("--figure NAME and --png FILE go together")
    if sum((serve, out is not None, figure is not None)) > 1:
        raise click.UsageError("--serve, --out and --figure do not go together")
    if serve:
        from nasbo.report.serve import serve_report

        serve_report(folder, port, click.echo, by)
    elif figure is not None and png is not None:
        from nasbo.report.write import write_figure

        write_figure(folder, figure, png, by)
        click.echo(png)
    else:
        from nasbo.report.write import write_report
        from nasbo.sweeps import SweepFolder
        from nasbo.sweeps.valueless import valueless_text

        path = write_report(folder, out, by)
        click.echo(path)
        sweep = SweepFolder(folder)
        if out is None and sweep.location:
            click.echo(f"stored as {sweep.location.url}/{path.name}")
        if sweep.history.best is None:
            click.echo(f"{sweep.name}: {valueless_text(sweep.history)}", err=True)


@click.command()
@click.argument("folders", metavar="DIR DIR...", nargs=-1, type=FolderPath())
@click.option("--out", type=click.Path(path_type=Path), help="HTML file. [default: compare.html]")
def compare(folders: tuple[Path, ...], out: Path | None) -> None:
    """Write one HTML page that compares several sweeps (methods, seeds)."""
    from nasbo.report.compare import write_comparison

    click.echo(write_comparison(folders, out))


@click.command()
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder. [default: dashboards of the Ray on this machine]")  # fmt: skip
def grafana(out: Path | None) -> None:
    """Install nasbo's Grafana dashboard next to Ray's, and add it to Ray's page "Metrics".

    Run this on the machine of the cluster's head, after Ray was started, before or after Grafana.
    Ray rewrites its dashboards when it is started again; then repeat this command.
    """
    from nasbo.report.grafana import boards_folder, write_boards

    folder = out or boards_folder()
    for path in write_boards(folder):
        click.echo(path)
    settings = folder.parent / "grafana.ini"
    if settings.exists():
        click.echo(f"Grafana shows them: grafana-server --config {settings} web")
