"""Explanation of a trial as text and tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nasbo.errors import NasboError
from nasbo.history import PREDICTION, Trial
from nasbo.methods.explanation import Effect, Neighbour, Why
from nasbo.report.axes import is_finite, number_text
from nasbo.space import Value
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rungs import at_step

MAX_DIFFERENCES = 6
MAX_EFFECTS = 12


def describe_why(sweep: SweepFolder, number: int) -> RenderableType:
    """The explanation of a trial by the sweep's method.

    Args:
        sweep: the sweep of the trial.
        number: of the trial, or of one of its runs.

    Raises:
        NasboError: there is no such trial, or no explanation; the message says why.
    """
    n_runs = sweep.history.n_runs
    if number >= n_runs:
        known = f"they go from 0 to {n_runs - 1}" if n_runs else "there are none yet"
        raise NasboError(f"{sweep.name}: no trial {number}: {known}")
    trial = sweep.history.trial(number)
    why = sweep.method.why(sweep.history, trial)
    if why.reason or why.prediction is None:
        method = sweep.settings.method
        raise NasboError(f"{sweep.name}: {method} cannot explain trial {trial.id}: {why.reason}")
    table = Table(show_header=False, box=None)
    for name, words in _lines(sweep, why, why.prediction):
        table.add_row(Text(name, "cyan"), Text(words))
    return Group(
        Text(f"trial {trial.id} ({sweep.history.subspace(trial).id})"),
        table,
        *_neighbours(sweep, why.nearest),
        *_effects(why.effects),
    )


def _lines(
    sweep: SweepFolder, why: Why, prediction: tuple[float, float, float]
) -> list[tuple[str, str]]:
    value, low, high = (_number(one) for one in prediction)
    trial, metric = why.trial, sweep.metric
    noise = "" if why.noise_sd is None else f"; noise of a result: {number_text(why.noise_sd, 3)}"
    lines = [
        ("suggested", _suggested(trial)),
        ("prediction", f"{metric} {value}, from the {why.n_results} other results"),
        ("", f"{low} to {high} within one standard deviation{noise}"),
        ("result", _result(sweep, trial, prediction)),
    ]
    if why.improvement is not None:
        gain = number_text(why.improvement, 3)
        lines.append(("improvement", f"{gain} expected, beyond the best of the other results"))
    return lines


def _suggested(trial: Trial) -> str:
    """Source of a trial, and its prediction at the time."""
    words = trial.source if trial.round < 0 else f"round {trial.round}, {trial.source}"
    told = [trial.info.get(key) for key in PREDICTION]
    value, low, high = (_number(one) if is_finite(one) else "" for one in told)
    if value and low and high:
        words += f", predicted {value} ({low} to {high})"
    if trial.acquisition:
        name, score = trial.acquisition
        words += f", {name} {_number(score)}"
    reason = trial.info.get("reason")
    return f"{words}, {reason}" if reason else words


def _result(sweep: SweepFolder, trial: Trial, prediction: tuple[float, float, float]) -> str:
    if trial.partial is not None:
        where = at_step(sweep.history, trial)
        return f"{_number(trial.partial.value)}{where}, {trial.cause or trial.state}"
    if trial.value is None:
        return (
            f"none yet, {trial.state}" if trial.is_open else f"none, {trial.cause or trial.state}"
        )
    _, low, high = prediction
    words = "inside the interval"
    if not low <= trial.value <= high:
        nearest = low if trial.value < low else high
        is_better = sweep.history.objectives.is_better(trial.value, nearest)
        words = f"{'better' if is_better else 'worse'} than the interval"
    return f"{_number(trial.value)}, {words}"


def _neighbours(sweep: SweepFolder, nearest: Sequence[Neighbour]) -> list[RenderableType]:
    if not nearest:
        return [Text("no known config is near it in the model's eyes")]
    table = Table("trial", "correlation", sweep.metric, "its values, where they differ", box=None)
    for one in nearest:
        value = _known(sweep, one.trial)
        table.add_row(str(one.trial.id), f"{one.correlation:.2f}", Text(value), _differing(one))
    return [Text("nearest known configs", "bold"), table]


def _known(sweep: SweepFolder, trial: Trial) -> str:
    """The last value of a trial, or why it has none."""
    if trial.last_value is None:
        return trial.cause or "-"
    return _number(trial.last_value) + at_step(sweep.history, trial)


def _differing(one: Neighbour) -> Text:
    # Parameters that exist in only one of the configs follow from a structural difference: last.
    pairs = sorted(one.differences.items(), key=lambda pair: None in pair[1])
    parts = [f"{label} {_text(there)} (here {_text(here)})" for label, (here, there) in pairs]
    n_more = len(parts) - MAX_DIFFERENCES
    more = [f"{n_more} more"] if n_more > 0 else []
    return Text(", ".join([*parts[:MAX_DIFFERENCES], *more]) or "none")


def _effects(effects: Sequence[Effect]) -> list[RenderableType]:
    if not effects:
        return [Text("all parameters are at their typical values")]
    table = Table("parameter", "value", "typical", "prediction with this value", box=None)
    for one in effects[:MAX_EFFECTS]:
        words = f"{abs(one.gain):.3g} {'better' if one.gain >= 0 else 'worse'}"
        style = "green" if one.gain >= 0 else "red"
        value, typical = (Text(_text(each)) for each in (one.value, one.typical))
        table.add_row(Text(one.parameter, "cyan"), value, typical, Text(words, style))
    parts: list[RenderableType] = [Text("what speaks for it and against it", "bold"), table]
    if rest := effects[MAX_EFFECTS:]:
        most = f"{abs(rest[0].gain):.3g}"
        parts.append(Text(f"{len(rest)} more parameters, none with more than {most}"))
    return parts


def _text(value: Value) -> str:
    if value is None:
        return "-"
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return number_text(value, 5)
