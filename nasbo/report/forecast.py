"""A forecast comes in; the table and the words of ``nasbo run --dry-run`` go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nasbo.report.progress import duration
from nasbo.sweeps.forecast import SECONDS, SHARES, Forecast, Length


def describe_forecast(forecast: Forecast, what: str, limits: str = "") -> RenderableType:
    """The distribution of every number that the trainer's summary has."""
    parts: list[RenderableType] = [Text(what)]
    if limits:
        share = forecast.n_allowed / forecast.n_drawn
        kept = f"{forecast.n_allowed} of {forecast.n_drawn} drawn configs ({share:.1%})"
        parts.append(Text(f"constraints: {limits}: kept by {kept}"))
    if not forecast.numbers:
        parts.append(
            Text("nothing is known beforehand: the trainer has no summary(config) with numbers")
        )
        return Group(*parts)
    table = Table(box=None, header_style="bold")
    for name in ("per trial", *SHARES):
        table.add_column(Text(name), justify="left" if name == "per trial" else "right")
    for name in forecast.numbers:
        table.add_row(name, *(_number(value) for value in forecast.shares(name).values()))
    return Group(*parts, table)


def describe_length(length: Length | None) -> str:
    """How long the sweep will take, in words."""
    if length is None:
        return f"length: unknown, as the trainer has no summary(config) with {SECONDS!r}"
    low, median, high = map(duration, (length.low_s, length.median_s, length.high_s))
    return (
        f"length: about {median} ({low} to {high}) for {length.n_trainings} trainings on "
        f"{length.slots} slots like this machine's, without the method's own time"
    )


def describe_options(path: str, options: Mapping[str, Any], is_checked: bool) -> str:
    """The options that a trainer is handed but does not check: a typing error stays in them."""
    if is_checked or not options:
        return ""
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"options for {path}, not checked by it: {words}"


def describe_gpus(needed: float, have: int, cluster: str = "") -> str:
    """What stands in the way of trials that need GPUs, or is not known.

    Args:
        needed: by one trial.
        have: how many this machine has.
        cluster: the address of the cluster that is to run the trials; "" for this machine.
    """
    if not needed:
        return ""
    if cluster:
        return f"a trial needs {needed:g} GPU: the cluster at {cluster} was not looked at"
    if have >= needed:
        return ""
    found = f"has {have}" if have else "has no GPU"
    return f"warning: a trial needs {needed:g} GPU, this machine {found}: no trial would run here"


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
