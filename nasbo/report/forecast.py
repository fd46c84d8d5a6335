"""Table and text of ``nasbo run --dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nasbo.report.progress import duration
from nasbo.space import Config, Space
from nasbo.sweeps.forecast import SECONDS, SHARES, Forecast, Length, Stretches


def describe_forecast(forecast: Forecast, what: str, limits: str = "") -> RenderableType:
    """Distribution of every number in the trainer's summary."""
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
    """Expected duration of the sweep, as text."""
    if length is None:
        return f"length: unknown, as the trainer has no summary(config) with {SECONDS!r}"
    low, median, high = map(duration, (length.low_s, length.median_s, length.high_s))
    return (
        f"length: about {median} ({low} to {high}) for {length.n_trainings} trainings on "
        f"{length.slots} slots like this machine's, without the method's own time"
    )


def describe_rungs(stretches: Stretches | None, trials: int) -> list[str]:
    """What the budget buys with rungs, as text; empty without rungs."""
    if stretches is None:
        return []
    rungs = stretches.rungs
    n_steps = sum(stretches.steps)
    return [
        f"rungs: {rungs}, one in {rungs.eta} goes on: {trials} trainings' worth is about "
        f"{stretches.n_configs:,} configs, {stretches.n_full} of them trained in full, {n_steps:,} "
        f"epochs instead of {stretches.n_configs * rungs.full:,}"
    ]


def describe_begin(begin: Sequence[Config] | str, space: Space) -> list[str]:
    """The configs that a sweep begins with, in words; nothing without any."""
    if not begin or isinstance(begin, str):
        return []
    lines = [f"begins with {len(begin)} {'config' if len(begin) == 1 else 'configs'}:"]
    for config in begin:
        values = ", ".join(f"{name}={value}" for name, value in config.items())
        lines.append(f"  subspace {space.subspace_of(config).index}: {values}")
    return lines


def describe_options(path: str, options: Mapping[str, Any], is_checked: bool) -> str:
    """Options that the trainer does not check, so that typing errors go unnoticed."""
    if is_checked or not options:
        return ""
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"options for {path}, not checked by it: {words}"


def describe_needs(
    needs: Mapping[str, float], have: Mapping[str, float], cluster: str = ""
) -> list[str]:
    """Resources that are missing, or not known to exist.

    Args:
        needs: resources of one trial, by Ray's names.
        have: known resources of this machine.
        cluster: address of the cluster that is to run the trials; "" for this machine.
    """
    lines = []
    for name, need in needs.items():
        begin = f"a trial needs {need:g} {name}"
        if cluster and name != "CPU":
            lines.append(f"{begin}: the cluster at {cluster} was not looked at")
        elif not cluster and name not in have:
            lines.append(f"{begin}: whether this machine has it is known once Ray runs")
        elif not cluster and have[name] < need:
            found = f"has {have[name]:g}" if have[name] else f"has no {name}"
            lines.append(f"warning: {begin}, this machine {found}: no trial would run here")
    return lines


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
