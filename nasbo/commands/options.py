"""Settings of a sweep as command-line options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nasbo.sweeps.declaration import Setting
from nasbo.sweeps.kinds import Kind
from nasbo.sweeps.settings import taken_by

F = TypeVar("F", bound=Callable[..., Any])


ranked_by = click.option(
    "--by",
    default="estimate",
    show_default=True,
    type=click.Choice(["estimate", "observed"]),
    help="Ranking of trials: by estimates of noise-free values, if the method has found noise, "
    "or by observed values.",
)


def sweep_options(name: str) -> Callable[[F], F]:
    """Options of a command, by its name; omitted ones come from the file or the defaults."""

    def decorate(command: F) -> F:
        for declared in reversed(taken_by(name)):
            command = _option(declared, name)(command)
        return command

    return decorate


def _option(declared: Setting, command: str) -> Callable[[F], F]:
    return click.option(
        *declared.flags,
        declared.name,
        type=_type(declared.kind),
        multiple=declared.kind.joins != "",
        metavar=declared.kind.metavar,
        help=declared.help_for(command),
    )


def _type(kind: Kind) -> Any:
    if isinstance(kind.word, tuple):
        return click.Choice(kind.word)
    return kind.word if kind.least is None else click.IntRange(min=kind.least)
