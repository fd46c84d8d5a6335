"""Start and resume of a sweep from the command line, with its progress and result."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from nasbo.errors import SweepError
from nasbo.history import History, Repeating, Trial, View
from nasbo.history.events import Budget, Event, RepeatsChanged
from nasbo.report.ending import has_result, result_line, what_next
from nasbo.report.forecast import (
    describe_begin,
    describe_forecast,
    describe_length,
    describe_needs,
    describe_options,
    describe_rungs,
)
from nasbo.report.plots import plot_best_so_far
from nasbo.report.progress import Progress
from nasbo.report.result import describe_best, describe_front
from nasbo.report.tensorboard import TensorboardLog
from nasbo.resources import known_here
from nasbo.search import Search
from nasbo.search.repeats import is_complete
from nasbo.search.rungs import room
from nasbo.space import Space
from nasbo.storage.mirror import open_journal, open_named, push
from nasbo.sweeps.checks import (
    calibrated,
    check_provenance,
    check_same,
    check_search,
    cluster_of,
    local_cpus,
    placement_of,
    prepare,
    prepare_data,
    provenance_of,
)
from nasbo.sweeps.folder import (
    ERROR_FILE,
    SETTINGS_FILE,
    SweepFolder,
    create_folder,
    trial_name,
)
from nasbo.sweeps.forecast import draw_forecast, simulate_rungs, sweep_length
from nasbo.sweeps.job import sweep_name
from nasbo.sweeps.past import read_past
from nasbo.sweeps.settings import Sweep, features_of, limits_of, parsed, read_settings
from nasbo.sweeps.signals import terminate_as_interrupt
from nasbo.sweeps.spending import budget_text, least_budget
from nasbo.sweeps.undo import files_of, taken_back
from nasbo.sweeps.valueless import first_crash, valueless_text
from nasbo.trainer import Trainer, check_outside, load_trainer

if TYPE_CHECKING:
    from nasbo.tune.run import Outcome

EXIT_CODES = {"finished": 0, "stopped": 0, "failed": 1, "lost": 3, "interrupted": 130}
PLOT_FILE = "best_so_far.png"
N_FORECAST = 200


@dataclass(frozen=True)
class Display:
    """Where a run is displayed: the terminal and, with a port, a live report on the loopback."""

    console: Console
    report_port: int | None = None


def start_sweep(
    file: str,
    folder: Path | None,
    given: Mapping[str, Any],
    display: Display,
    is_launched: bool = False,
) -> int:
    """Start a sweep; the exit code is 0 if it ended by itself, 130 if it was interrupted.

    Args:
        file: of the sweep, or of its space.
        folder: of the sweep; ``None`` for a new one.
        given: options of the command line.
        display: where it is displayed.
        is_launched: True: the address on the command line is for this run only, as a launcher's
            cluster may be gone when the sweep is resumed.
    """
    sweep, space = prepare(file, parsed(given), display.console)
    check_search(sweep, space)
    for words in _unchecked(sweep):
        display.console.print(Text(words), soft_wrap=True)
    prepare_data(sweep, display.console)
    sweep = replace(sweep, provenance=provenance_of(sweep, display.console))
    _tell_past(sweep, space, display.console)
    folder = folder or open_named(default_folder(sweep))
    _check_code(folder, sweep)  # else it could not be resumed
    address = read_settings(file).get("address") if is_launched else sweep.address
    is_lasting = address not in ("auto", "local")  # these have another meaning elsewhere
    before = files_of(folder)
    create_folder(folder, replace(sweep, address=address if is_lasting else None))
    with taken_back(folder, before):
        return run_in_words(SweepFolder(folder), sweep, None, display)


def start_or_resume(file: str, folder: Path, given: Mapping[str, Any], display: Display) -> int:
    """Start a sweep, or resume it if the folder has one: called by launchers.

    A resumed sweep takes machines, and additional trials, from the settings given now.
    """
    if not (folder / SETTINGS_FILE).exists():
        return start_sweep(file, folder, given, display, is_launched=True)
    settings = parsed(given)
    sweep, space = prepare(file, settings, display.console)
    check_same(folder, sweep, space)
    named = {**read_settings(file), **settings}.get("trials")
    n_trials = _more_trials(folder, named, display.console)
    return resume_sweep(folder, n_trials, display, placement_of(sweep))


def _more_trials(folder: Path, named: int | None, console: Console) -> int | None:
    """A new total of trials if it is given and above that of the folder, else ``None``."""
    held = SweepFolder(folder)
    if named is not None and named < held.budget:
        told = f"{held.name}: continues to its {held.budget} trials; trials = {named} removes none"
        console.print(told, highlight=False, soft_wrap=True)
    return named if named is not None and named > held.budget else None


def plan_sweep(file: str, given: Mapping[str, Any], console: Console) -> int:
    """Print the expected cost of a sweep without starting it."""
    sweep, space = prepare(file, parsed(given), console)
    check_search(sweep, space)
    _tell_past(sweep, space, console)
    limits = limits_of(sweep)
    forecast = draw_forecast(space, calibrated(sweep, space, console), limits, N_FORECAST)
    what = f"{sweep.trials} trials of {sweep.trainer} on {Path(sweep.space).stem}"
    console.print(describe_forecast(forecast, what, str(limits or "")), highlight=False)
    for words in describe_begin(sweep.begin, space):
        console.print(words, highlight=False, markup=False, soft_wrap=True)
    for words in describe_rungs(simulate_rungs(sweep, space), sweep.trials):
        console.print(words, highlight=False, soft_wrap=True)
    console.print(describe_length(sweep_length(forecast, sweep, space)), highlight=False)
    for words in _warnings(sweep):
        console.print(Text(words), soft_wrap=True)
    return 0


def _tell_past(sweep: Sweep, space: Space, console: Console) -> None:
    """Print how the sweep of a warm start differs from this one."""
    start = read_past(sweep, space)
    start.require_results()
    for line in start.remarks:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _warnings(sweep: Sweep) -> list[str]:
    """Warnings besides the forecast: unchecked options, missing resources."""
    cluster = cluster_of(sweep)
    have = {} if cluster else known_here(sweep.needs) | {"CPU": local_cpus(sweep)}
    return [*_unchecked(sweep), *describe_needs(sweep.needs, have, cluster)]


def _unchecked(sweep: Sweep) -> list[str]:
    """A line about options that the trainer does not check, if there are any."""
    is_checked = load_trainer(sweep.trainer).check_options is not None
    told = describe_options(sweep.trainer, sweep.trainer_options, is_checked)
    return [told] if told else []


def show_summaries(file: str, given: Mapping[str, Any], n: int, console: Console) -> None:
    """Print the distributions of sizes, times etc. of a space's configs."""
    sweep, space = prepare(file, parsed(given), console)
    limits = limits_of(sweep)
    describe = calibrated(sweep, space, console)
    forecast = draw_forecast(space, describe, limits, n, sweep.seed)
    what = f"{n} configs of {Path(sweep.space).stem}, described by {sweep.trainer}"
    console.print(describe_forecast(forecast, what, str(limits or "")), highlight=False)


def default_folder(sweep: Sweep) -> str:
    """Default folder of a sweep: a path or a URL."""
    name = f"{Path(sweep.space).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    return f"{(sweep.storage_path or 'runs').rstrip('/')}/{name}"


def resume_sweep(
    folder: Path,
    n_trials: int | None,
    display: Display,
    placement: Mapping[str, Any] | None = None,
    repeating: Repeating | None = None,
) -> int:
    """Resume a sweep.

    Args:
        folder: of the sweep.
        n_trials: a new total of trials.
        display: where it is displayed.
        placement: settings for this run only, such as ``address`` and ``slots``; those in the
            folder are kept.
        repeating: how often the best configs are to be repeated from now on.
    """
    held = SweepFolder(folder)
    sweep = replace(held.settings, **{**(placement or {}), "working_folder": os.getcwd()})
    _check_trainer(held)
    check_provenance(folder, sweep, display.console)
    if repeating is not None:
        _note(held, RepeatsChanged(repeats=repeating.repeats, top=repeating.top))
    history = held.history
    if n_trials is not None and is_final(history):
        raise SweepError(f"{held.name} holds finalists: there are no more trials of them")
    budget = n_trials or held.budget
    if budget < (least := least_budget(history)):
        what = "trials" if history.rungs is None else "trainings' worth"
        raise SweepError(f"--trials must be at least {least}, the {what} so far, got {budget}")
    if is_complete(history, budget):
        if budget != held.budget:
            history = _note(held, Budget(trials=budget))
        ended = f"{held.name}: has finished, {budget_text(history, budget)}"
        display.console.print(ended if history.rungs else f"{ended} have ended")
        _conclude(held, history, display.console)
        return exit_code("finished", history)
    prepare_data(sweep, display.console)
    return run_in_words(held, sweep, budget, display)


def is_final(history: View) -> bool:
    """Whether a sweep is the fixed queue of another sweep's finalists."""
    return any("search_trial" in trial.info for trial in history.trials[:1])


def _note(held: SweepFolder, change: Event) -> History:
    """Record a change of settings in the journal."""
    sweep, journal = held.settings, open_journal(held.path)
    known = {
        "rungs": held.history.rungs,
        "features": features_of(sweep, held.space),
        **({"objectives": sweep.objectives} if sweep.objectives else {"mode": sweep.mode}),
    }
    options = {**known, **sweep.method_options}
    with Search(held.space, sweep.method, seed=sweep.seed, journal=journal, **options) as search:
        search.record(change)
        held.forget()
        return search.history


def _check_trainer(held: SweepFolder) -> None:
    """Raise if the code would come from the sweep's folder, or cannot be imported here."""
    try:
        _check_code(held.path, held.settings)
        load_trainer(held.settings.trainer)
    except SweepError as error:
        raise SweepError(
            f"{error}; {held.name} names the trainer {held.settings.trainer}: "
            "resume in the folder of that module"
        ) from error


def _check_code(folder: Path, sweep: Sweep) -> None:
    check_outside(sweep.trainer, folder)
    for path in (sweep.method, *sweep.callbacks):
        if ":" in path:
            check_outside(path, folder)


def show_best(held: SweepFolder, console: Console, trial: Trial | None = None) -> None:
    """Print the best config of a sweep, or that of another trial."""
    told = describe_best(held.history, trial or held.best, _trainer_or_none(held))
    console.print(told, crop=False)


def show_front(held: SweepFolder, console: Console) -> None:
    """Print the front of a sweep of several objectives."""
    if held.history.best is None:
        raise SweepError(f"{held.name}: nothing has finished yet")
    console.print(describe_front(held.history), highlight=False)
    words = "one of them:  nasbo best {0} --pick knee, or --pick 'NAME<=NUMBER'"
    console.print(words.format(held.name), highlight=False, soft_wrap=True)


def run_in_words(held: SweepFolder, sweep: Sweep, n_trials: int | None, display: Display) -> int:
    """Run a sweep whose folder exists, and print its progress and result.

    Args:
        held: the sweep's folder.
        sweep: its settings, with those of this run only.
        n_trials: a new total of trials.
        display: where it is displayed.
    """
    console = display.console
    budget = n_trials or sweep.trials
    goal = "maximising" if sweep.mode == "max" else "minimising"
    what = f"{goal} {sweep.metric or 'the value'} of {sweep.trainer}"
    unit = "trainings' worth" if _has_rungs(held, sweep) else "trials"
    console.print(f"sweep {held.name}: {sweep.method}, {budget} {unit}, {what}", highlight=False)
    console.print(f"space: {held.space.n_subspaces:,} subspaces; starting Ray ...", highlight=False)
    begin = time.monotonic()
    try:
        with terminate_as_interrupt():
            outcome = _run(held, sweep, n_trials, display, budget)
    except KeyboardInterrupt:  # before the run could take it
        console.print(f"interrupted; continue with: nasbo resume {held.name}", highlight=False)
        return EXIT_CODES["interrupted"]
    history = outcome.history
    told = result_line(outcome, budget, time.monotonic() - begin)
    console.print(told, highlight=False, markup=False, soft_wrap=True)
    _conclude(held, history, console)
    push(held.path)
    if history.is_exhausted and room(history, budget) > 0:
        console.print(f"the space has no more than these {history.n_suggested} configs")
    if told := what_next(held.name, outcome, budget):
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    return exit_code(outcome.state, history)


def _run(
    held: SweepFolder, sweep: Sweep, n_trials: int | None, display: Display, budget: int
) -> Outcome:
    """Run a sweep with its displays."""
    from nasbo.tune.observers import Observers
    from nasbo.tune.run import run_sweep  # Ray takes seconds to import

    log = _tensorboard(held)
    with _live_report(held.path, display) as url, Progress(display.console, budget) as progress:
        called = (progress, lambda history, note: log.update(history))
        observers = Observers(called, progress.tell, url)
        outcome = run_sweep(held.path, sweep, held.space, n_trials, observers)
    with suppress(OSError):  # reported when it could not be written
        log.close()
    return outcome


def exit_code(state: str, history: History) -> int:
    """The exit code of a run; a sweep without any result has failed."""
    code = EXIT_CODES[state]
    return EXIT_CODES["failed"] if code == 0 and not has_result(history) else code


def _has_rungs(held: SweepFolder, sweep: Sweep) -> bool:
    """Whether the sweep has rungs, from the journal or, before its start, from the settings."""
    return held.history.rungs is not None or bool(sweep.notes().get("rungs"))


@contextmanager
def _live_report(folder: Path, display: Display) -> Iterator[str]:
    """The address of the report while it is served; "" if it was not requested."""
    if display.report_port is None:
        yield ""
        return
    from nasbo.report.serve import served_report

    with served_report(folder, display.report_port) as url:
        display.console.print(f"live report: {url}", highlight=False)
        yield url


def _tensorboard(held: SweepFolder) -> TensorboardLog:
    """TensorBoard log of the sweep's curves and attention maps."""
    sweep = held.settings
    return TensorboardLog(held.path, held.metric, sweep.method, sweep.method_options, sweep.seed)


def _conclude(held: SweepFolder, history: History, console: Console) -> None:
    best = history.best
    if best is None:
        told = valueless_text(history)
        if (crashed := first_crash(history)) is not None:
            told += f"; traceback: {held.name}/{trial_name(crashed.id)}/{ERROR_FILE}"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
        return
    if best.value is None:
        console.print("no trial has been trained in full; the best of those trained furthest:")
    if len(history.objectives) > 1:
        console.print(describe_front(history), highlight=False)
    found = describe_best(history, best, _trainer_or_none(held))
    console.print(found, highlight=False, crop=False)
    plot, title = held.path / PLOT_FILE, f"{sweep_name(held.path)}: {held.settings.method}"
    try:
        plot_best_so_far(history, plot, title, held.metric)
        console.print(f"plot:        {plot}", highlight=False, soft_wrap=True)
    except OSError as error:  # the sweep has ended: a full disk only costs the plot
        console.print(f"plot:        none, {error}", highlight=False, soft_wrap=True)
    console.print(f"report:      nasbo report {held.name}", highlight=False)
    console.print(f"all trials:  nasbo export {held.name} --csv", highlight=False)
    if not is_final(history):
        console.print(f"more trials: nasbo resume {held.name} --trials N", highlight=False)
    console.print(f"curves:      tensorboard --logdir {held.path}", highlight=False)


def _trainer_or_none(held: SweepFolder) -> Trainer | None:
    """The trainer, if it can be imported here."""
    try:
        return held.trainer
    except SweepError:
        return None
