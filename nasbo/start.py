"""What ``nasbo run`` and ``nasbo resume`` do around a sweep: settings in, words and files out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.history import History
from nasbo.report.plots import plot_best_so_far
from nasbo.report.progress import Progress, duration
from nasbo.report.result import describe_best
from nasbo.report.tensorboard import TensorboardLog
from nasbo.space import Space, load_space
from nasbo.storage.mirror import open_mirror, push, shown
from nasbo.storage.place import is_url
from nasbo.sweep import Sweep, create_folder, make_sweep, open_folder, read_history, read_settings
from nasbo.trainer import Trainer, load_trainer

EXIT_CODES = {"finished": 0, "stopped": 0, "failed": 1, "lost": 3, "interrupted": 130}
PLOT_FILE = "best_so_far.png"


def start_sweep(file: str, folder: Path | None, given: Mapping[str, Any], console: Console) -> int:
    """Begin a sweep; the exit code is 0 if it ended by itself, 130 if it was interrupted."""
    sweep, space = plan_sweep(file, given)
    folder = folder or open_named(default_folder(sweep))
    is_named = sweep.address not in ("auto", "local")  # else it means another one elsewhere
    create_folder(folder, sweep if is_named else replace(sweep, address=None))
    return _run(folder, sweep, space, None, console)


def plan_sweep(file: str, given: Mapping[str, Any]) -> tuple[Sweep, Space]:
    """The sweep that a file and the options of the command line ask for, checked, with its space.

    Raises:
        NasboError: a setting, the space or the trainer cannot be used.
    """
    settings = {**read_settings(file), **_parsed(given)}
    sweep = make_sweep({**settings, "working_folder": os.getcwd()})
    trainer = load_trainer(sweep.trainer)
    sweep = replace(
        sweep,
        space=str(Path(sweep.space).resolve()),
        metric=sweep.metric or trainer.metric,
        mode="max" if (settings.get("mode") or trainer.mode) == "max" else "min",
    )
    return sweep, load_space(sweep.space)


def default_folder(sweep: Sweep) -> str:
    """Where a sweep goes for which no folder was named: a path, or a URL."""
    name = f"{Path(sweep.space).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    return f"{(sweep.storage_path or 'runs').rstrip('/')}/{name}"


def open_named(name: str) -> Path:
    """The folder of a path or a URL; that of a URL is a mirror on this machine."""
    return open_mirror(name) if is_url(name) else Path(name)


def resume_sweep(
    folder: Path, n_trials: int | None, console: Console, address: str | None = None
) -> int:
    """Continue a sweep."""
    sweep, space = open_folder(folder)
    sweep = replace(sweep, address=address or sweep.address, working_folder=os.getcwd())
    _check_trainer(folder, sweep)
    _, history = read_history(folder)
    budget = n_trials or history.budget or sweep.trials
    if budget < history.n_suggested:
        raise SweepError(
            f"--trials must be at least {history.n_suggested}, the trials so far, got {budget}"
        )
    if history.n_ended >= budget:
        console.print(
            f"{shown(folder)}: has finished, {history.n_ended} of {budget} trials have ended"
        )
        _conclude(folder, sweep, history, console)
        return 0
    return _run(folder, sweep, space, n_trials, console)


def _check_trainer(folder: Path, sweep: Sweep) -> None:
    """A folder from elsewhere runs no code but installed packages and this working directory."""
    try:
        load_trainer(sweep.trainer)
    except SweepError as error:
        raise SweepError(
            f"{error}; {shown(folder)} names the trainer {sweep.trainer}: "
            "resume where that module lies"
        ) from error


def show_best(folder: Path, console: Console) -> None:
    """Print the best config of a sweep."""
    sweep, history = read_history(folder)
    if history.best is None:
        raise SweepError(f"{folder}: nothing has finished yet")
    console.print(describe_best(history, history.best, _trainer_or_none(sweep)))


def _run(folder: Path, sweep: Sweep, space: Space, n_trials: int | None, console: Console) -> int:
    budget = n_trials or sweep.trials
    goal = "maximising" if sweep.mode == "max" else "minimising"
    what = f"{goal} {sweep.metric or 'the value'} of {sweep.trainer}"
    console.print(
        f"sweep {shown(folder)}: {sweep.method}, {budget} trials, {what}", highlight=False
    )
    console.print(f"space: {space.n_subspaces:,} subspaces; starting Ray ...", highlight=False)
    from nasbo.tune.run import run_sweep  # Ray takes seconds to import

    begin = time.monotonic()
    log = _tensorboard(folder, sweep)
    with Progress(console, budget) as progress:

        def watch(history: History, note: str) -> None:
            progress(history, note)
            log.update(history)

        outcome = run_sweep(folder, sweep, space, n_trials, watch)
    log.close()
    history = outcome.history
    n_failed = history.state_counts()["failed"]
    console.print(
        f"{outcome.state}: {history.n_ended} of {budget} trials in {len(history.rounds)} rounds, "
        f"{n_failed} failed, {duration(time.monotonic() - begin)}"
        + (f"; {outcome.reason}" if outcome.reason else ""),
        highlight=False,
    )
    _conclude(folder, sweep, history, console)
    push(folder)
    if outcome.state != "finished":
        console.print(f"continue with: nasbo resume {shown(folder)}", highlight=False)
    return EXIT_CODES[outcome.state]


def _tensorboard(folder: Path, sweep: Sweep) -> TensorboardLog:
    """The sweep's own curves; the paper's preset would train its encoder for each map: none."""
    maps_every = 0 if sweep.method_options.get("preset") == "paper" else 5
    metric = sweep.metric or "value"
    options = sweep.method_options
    return TensorboardLog(folder, metric, sweep.method, options, sweep.seed, maps_every)


def _conclude(folder: Path, sweep: Sweep, history: History, console: Console) -> None:
    best = history.best
    if best is None:
        console.print("no trial has finished with a value")
        return
    console.print(describe_best(history, best, _trainer_or_none(sweep)), highlight=False)
    label, place = sweep.metric or "value", shown(folder)
    plot_best_so_far(history, folder / PLOT_FILE, f"{folder.name}: {sweep.method}", label)
    console.print(f"plot:        {folder / PLOT_FILE}", highlight=False, soft_wrap=True)
    console.print(f"report:      nasbo report {place}", highlight=False)
    console.print(f"all trials:  nasbo export {place} --csv", highlight=False)
    console.print(f"more trials: nasbo resume {place} --trials N", highlight=False)
    console.print(f"curves:      tensorboard --logdir {folder}", highlight=False)


def _trainer_or_none(sweep: Sweep) -> Trainer | None:
    """The trainer, if it can be had where the result is looked at."""
    try:
        return load_trainer(sweep.trainer)
    except SweepError:
        return None


def _parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the command line as settings; those not given are left out."""
    settings = {key: value for key, value in given.items() if value not in (None, ())}
    for key in ("method_options", "trainer_options", "resources"):
        if key in settings:
            settings[key] = parse_pairs(settings[key])
    if "slots" in settings and settings["slots"] != "auto":
        settings["slots"] = _integer(settings["slots"])
    for key in ("time_limit_s", "report_timeout_s"):
        if key in settings:
            settings[key] = parse_duration(settings[key])
    return settings


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` words as a dict; values are read as YAML."""
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise SweepError(f"an option must be key=value, got {pair!r}")
        try:
            parsed[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise SweepError(f"the value of {key!r} cannot be read: {value!r}") from error
    return parsed


def parse_duration(text: str) -> float:
    """``90s``, ``30m``, ``12h`` or plain seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(text))
    if not match:
        raise SweepError(f"a time must be like 90s, 30m or 12h, got {text!r}")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise SweepError(f"slots must be a number or auto, got {text!r}") from error
