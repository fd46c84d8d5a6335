"""Commands for sweeps: methods, run, resume, finalize, status, best, why, export."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nasbo.commands.folder_path import FolderPath
from nasbo.commands.options import ranked_by, sweep_options
from nasbo.commands.terminal import console

if TYPE_CHECKING:
    from nasbo.history import By
    from nasbo.sweeps import SweepFolder


@click.command()
def methods() -> None:
    """List the search methods with their sources and options (-m K=V)."""
    from nasbo.methods.registry import describe_method, known_methods

    for name in sorted(known_methods()):
        entry, options = describe_method(name)
        listed = ", ".join(f"{option}={default}" for option, default in options.items())
        click.echo(f"{name:<13} {entry.summary}")
        click.echo(f"{'':<13} source: {entry.source}")
        click.echo(f"{'':<13} options: {listed or 'none'}\n")


_LIVE_REPORT = click.option(
    "--live-report",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve a live report on this machine's loopback; 0 selects a free port.",
)


@click.command()
@click.argument("file")
@sweep_options("run")
@click.option("--dir", "folder", type=FolderPath(), help="Folder: a path, or a URL such as "
              "s3://bucket/runs/first. [default: runs/NAME-DATE]")  # fmt: skip
@click.option("--or-resume", is_flag=True, help="Resume if the folder already has this sweep.")
@click.option("--dry-run", is_flag=True, help="Print the expected cost, without a run.")
@_LIVE_REPORT
def run(
    file: str,
    folder: Path | None,
    or_resume: bool,
    dry_run: bool,
    live_report: int | None,
    **given: Any,
) -> None:
    """Run a sweep over a space (or over a sweep file, with its settings) on Ray.

    \b
    nasbo run nas_cifar10 -o recipe=proxy --trials 40
    nasbo run my_space.yaml --trainer my_module:train --metric loss --mode min --trials 60
    nasbo run nas_cifar10 -o recipe=proxy --constraint 'parameters<=2e6' --dry-run

    Options replace those of the sweep file, except for options that are merged with it or added
    to it, as their help says.

    The progress is shown here, in Ray's dashboard (its address is printed), by nasbo status DIR
    --watch and, with --live-report 8787, in a browser.
    """
    from nasbo.start import Display, plan_sweep, start_or_resume, start_sweep

    if dry_run:
        sys.exit(plan_sweep(file, given, console()))
    display = Display(console(), live_report)
    if or_resume and folder is not None:
        sys.exit(start_or_resume(file, folder, given, display))
    sys.exit(start_sweep(file, folder, given, display))


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@sweep_options("resume")
@_LIVE_REPORT
def resume(folder: Path, live_report: int | None, **given: Any) -> None:
    """Resume an interrupted sweep, or extend a finished one.

    A sweep may be resumed on another machine or cluster. Address and resources apply to this run
    only.

    \b
    nasbo resume runs/first --trials 80
    nasbo resume s3://bucket/runs/first --address local --slots 1 --gpus-per-trial 0
    nasbo resume /shared/runs/first --address HEAD:6379 --slots auto --gpus-per-trial 1
    """
    from nasbo.history import Repeating
    from nasbo.start import Display, resume_sweep
    from nasbo.sweeps.settings import SETTINGS, parsed

    settings = parsed(given)
    n_trials, repeats = settings.pop("trials", None), settings.pop("repeats", None)
    top = settings.pop("repeat_top", SETTINGS["repeat_top"].default)
    repeating = None if repeats is None else Repeating(repeats, top)
    display = Display(console(), live_report)
    sys.exit(resume_sweep(folder, n_trials, display, settings, repeating))


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option(
    "--top",
    default=3,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of best configs to train.",
)
@click.option(
    "--recipe", help="Recipe of the trainer. [default: the trainer's recipe for finalists]"
)
@click.option(
    "--seeds",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of trainings of each finalist, with different seeds.",
)
@click.option(
    "-o",
    "--option",
    "trainer_options",
    multiple=True,
    metavar="K=V",
    help="Option of the trainer, which overrides the recipe.",
)
@click.option(
    "--choose",
    default="validation",
    show_default=True,
    type=click.Choice(["validation", "test"]),
    help="Criterion for the best finalist if finalists are scored on a test set: its result in "
    "the search, or its test result, which is then biased (as the model card notes). Finalists "
    "that are scored as in the search are always chosen by the means of their final trainings.",
)
@ranked_by
@sweep_options("finalize")
def finalize(
    folder: Path, top: int, recipe: str | None, seeds: int, choose: str, by: By, **given: Any
) -> None:
    """Train the best configs of a sweep in full and write the best of them to DIR/best.

    The finalists are a separate sweep in DIR/final; if it is interrupted, the same command resumes
    it. The shipped trainer trains them on train and validation images together, scores the test
    set once, and writes weights, an ONNX file and a model card.

    \b
    nasbo finalize runs/first --top 3 --recipe strong --seeds 2
    """
    from nasbo.finish.finalists import Wish
    from nasbo.finish.finalize import finalize as end_sweep
    from nasbo.sweeps.settings import parsed

    settings = parsed(given)
    options = settings.pop("trainer_options", {})
    wish = Wish(top, recipe, seeds, options, choose, by, settings)
    sys.exit(end_sweep(folder, wish, console()))


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--json", "as_json", is_flag=True)
@click.option(
    "--watch", "is_watched", is_flag=True, help="Show a live table until the sweep has finished."
)
@click.option("--interval", "interval_s", default=1.0, show_default=True,
              help="Seconds between updates.",
              type=click.FloatRange(min=0.1))  # fmt: skip
@click.option("--paused", "is_paused", is_flag=True, help="List only the paused trials of a sweep "
              "with rungs, with the reason of each pause.")  # fmt: skip
def status(
    folder: Path, as_json: bool, is_watched: bool, interval_s: float, is_paused: bool
) -> None:
    """Show the status of a sweep.

    With rungs, a table shows for each rung the number of configs that reached it, the best value,
    the numbers of promoted, paused and failed ones, and the rank correlation with the next rung.
    """
    from nasbo.sweeps import SweepFolder
    from nasbo.sweeps.status import status as read_status

    if is_watched and as_json:
        raise click.UsageError("--watch and --json do not go together")
    if is_watched and is_paused:
        raise click.UsageError("--watch shows paused trials already, without --paused")
    if is_paused:
        _list_paused(SweepFolder(folder), as_json)
        return
    if is_watched:
        from nasbo.report.watch import watch

        watch(folder, console(), interval_s)
        return
    found = read_status(SweepFolder(folder))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print_status(found)


def _print_status(found: dict[str, Any]) -> None:
    best, rungs = found.pop("best"), found.pop("rungs", [])
    for key, value in found.items():
        if isinstance(value, dict):  # counts by cause
            value = ", ".join(f"{name} {n}" for name, n in value.items())
        if isinstance(value, list):
            value = "\n           ".join(value)
        if value != "":
            click.echo(f"{key:<10} {value}")
    if best:
        click.echo(f"{'best':<10} {_best_words(best)}")
    if rungs:
        from nasbo.report.rungs import rung_table
        from nasbo.sweeps.rungs import RungRow

        console().print(rung_table([RungRow(**row) for row in rungs]))


def _list_paused(sweep: SweepFolder, as_json: bool) -> None:
    from nasbo.report.rungs import waiting_table
    from nasbo.sweeps.rungs import waiting

    found = waiting(sweep.history)
    if as_json:
        click.echo(json.dumps([one.to_json() for one in found], indent=2))
    elif found:
        console().print(waiting_table(sweep.history, found))
    else:
        click.echo(f"{sweep.name}: no trial waits at a rung")


def _best_words(best: Mapping[str, Any]) -> str:
    observed = f"{best.get('last_value', best['value']):.6g}"
    if "step" in best:
        of = f" of {best['full']}" if "full" in best else ""
        observed += f" at step {best['step']}{of}"
    if "estimate" not in best:
        return f"{observed} (trial {best['trial']})"
    sure = f"{100 * best['certainty']:.0f} % sure"
    values = f"{best['estimate']:.6g} expected (observed {observed})"
    return f"trial {best['trial']}, {values}, {sure}"


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--json", "as_json", is_flag=True)
@click.option("--explain", "is_explained", is_flag=True, help="Also explain it, as nasbo why does.")
@click.option("--pick", "way", metavar="WAY", help="Another one: 'params<=2e6', the best inside a "
              "limit; knee, where the front bends; mnasnet:latency_ms=80, the best by MnasNet's "
              "formula.")  # fmt: skip
@ranked_by
def best(folder: Path, as_json: bool, is_explained: bool, way: str | None, by: By) -> None:
    """Show the best config of a sweep or, of several objectives, the front.

    If the method has found noise, this is the config with the best estimated noise-free value; its
    observed value is also shown.

    \b
    nasbo best runs/first --pick 'params<=2e6'
    nasbo best runs/first --pick knee
    """
    from nasbo.start import show_best, show_front
    from nasbo.sweeps import SweepFolder
    from nasbo.sweeps.pick import pick
    from nasbo.sweeps.status import estimate_columns, front_columns, partial_columns

    if as_json and is_explained:
        raise click.UsageError("--explain and --json do not go together")
    if way is not None and by == "observed":
        raise click.UsageError("--pick and --by observed do not go together")
    sweep = SweepFolder(folder)
    trial = sweep.best if way is None else pick(sweep, way)
    if by == "observed":
        trial = sweep.ranked(by)[0]
    if not as_json:
        if way is None and len(sweep.history.objectives) > 1:
            show_front(sweep, console())
        else:
            show_best(sweep, console(), trial)
        if is_explained:
            _explain(sweep, trial.id)
        return
    values = {"trial": trial.id, "value": trial.value}
    values |= partial_columns(trial, sweep.history) | estimate_columns(trial)
    values |= front_columns(sweep.history)
    click.echo(json.dumps({**values, "config": trial.config}))


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.argument("number", metavar="TRIAL", type=click.IntRange(min=0))
def why(folder: Path, number: int) -> None:
    """Explain a trial: prediction of the model, nearest configs, effects of parameters.

    \b
    nasbo why runs/first 17
    nasbo best runs/first --explain

    \b
    prediction   of the sweep's method, fitted to the results of the other trials; for an ended
                 trial next to its result
    improvement  expected improvement over the best of the other results
    nearest      known configs with the largest correlation in the model, and their differences
    parameters   gain or loss of the prediction relative to the parameter at its typical value
                 (the median, or the most frequent choice, of the other results)

    Numbers of trials are in nasbo export DIR and in the report. The model is fitted once, which
    takes as long as a suggestion of the method. The sweep is not changed.
    """
    from nasbo.sweeps import SweepFolder

    _explain(SweepFolder(folder), number)


def _explain(sweep: SweepFolder, number: int) -> None:
    from nasbo.report.why import describe_why

    console().print(describe_why(sweep, number), highlight=False)


@click.command()
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, which is the default; lists as JSON.")
@click.option("--json", "as_json", is_flag=True, help="As a JSON list; lists stay lists.")
@click.option("--measurements", is_flag=True, help="A row per report instead of one per trial.")
@click.option("--optuna", "study", type=click.Path(path_type=Path), metavar="FILE",
              help="Write it as a study of Optuna instead, for optuna-dashboard FILE.")  # fmt: skip
def export(
    folder: Path, as_csv: bool, as_json: bool, measurements: bool, study: Path | None
) -> None:
    """Print a row per trial, or per report with --measurements.

    \b
    A trial's row: trial, round, subspace, source, state, value, n_values, repeat_of, twin, step,
    attempts, seconds, seconds_by_attempt, message, predicted, predicted_low, predicted_high,
    estimate, estimate_sd, last_value, rung, on_front, metrics.NAME of the last report, config.NAME.
    A report's row: trial, step, time, value, metrics.NAME. With rungs value is that of a full
    training, last_value also that of a pause, and rung the highest one that the trial reached;
    without rungs the latter two are empty. In Python: nasbo.load_sweep(DIR).to_dataframe().
    """
    from nasbo.sweeps import SweepFolder
    from nasbo.sweeps.rows import measurement_rows, to_csv, trial_rows

    if as_csv and as_json:
        raise click.UsageError("--csv or --json, not both")
    if study is not None:
        if as_csv or as_json or measurements:
            raise click.UsageError("--optuna FILE is an export by itself")
        from nasbo.interchange.study import write_study

        n_trials = write_study(SweepFolder(folder), study)
        click.echo(f"{study}: {n_trials} trials; optuna-dashboard {study} shows them")
        return
    history = SweepFolder(folder).history
    rows = measurement_rows(history) if measurements else trial_rows(history)
    if as_json:
        click.echo(json.dumps(rows))
    else:
        click.echo(to_csv(rows, () if measurements else history.space.names), nl=False)
