"""Configs that a sweep begins with, from its file or one of their own, checked with their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nasbo.errors import NasboError, SweepError, shorten
from nasbo.limits import Limits
from nasbo.search.begin import checked
from nasbo.space import Config, Space
from nasbo.space.document import Node, read_file
from nasbo.sweeps.settings import Sweep, limits_of
from nasbo.trainer import DATA, Trainer, cause_of

NAME = "begin"
SHAPE = "must be a list of configs, each a mapping of all its parameters"


def begin_configs(sweep: Sweep, file: str, space: Space, trainer: Trainer) -> list[Config]:
    """The configs that ``begin`` lists or names a file of, as the space writes them.

    Args:
        sweep: its settings.
        file: the sweep file, in which a list stands.
        space: to which they must belong.
        trainer: which must be able to build them.

    Raises:
        SweepError: with the place, where one cannot be the first of a sweep.
    """
    if not sweep.begin:
        return []
    given, places = _located(sweep.begin, file)
    try:
        configs = checked(space, given, places=places)
    except NasboError as error:
        raise SweepError(str(error)) from error
    if sweep.rungs == "off" and len(configs) > sweep.trials:
        raise SweepError(
            f"trials >= {len(configs)} must hold, the configs to begin with, got {sweep.trials}"
        )
    limits = limits_of(sweep)
    for number, config in enumerate(configs):
        place = f"{places[number] if places else NAME}: config {number + 1}"
        _check(config, place, limits, sweep, trainer)
    return configs


def _check(
    config: Config, place: str, limits: Limits | None, sweep: Sweep, trainer: Trainer
) -> None:
    """Refuse what would end as ``invalid`` before the sweep has begun."""
    if limits is not None and (broken := limits.violation(config)) is not None:
        raise SweepError(f"{place}: {broken}")
    try:
        trainer.check_config(config, sweep.trainer_options)
    except Exception as error:  # a user's function may raise anything
        if cause_of(error) != DATA:  # only the workers may have the data
            raise SweepError(f"{place}: {sweep.trainer} refuses it: {error}") from error


def _located(begin: list[Any] | str, file: str) -> tuple[list[Any], list[str]]:
    """The configs, and the place of each as far as it is known."""
    if isinstance(begin, list):
        return begin, _places(_below(file))
    try:
        root = read_file(Path(begin).expanduser())
    except NasboError as error:
        raise SweepError(str(error)) from error
    root = _listed_in(root) or root
    nodes = root.value if root.is_list else [root]
    if not nodes or not all(node.is_mapping for node in nodes):
        raise SweepError(f"{root.place}: {SHAPE}, got {shorten(root.plain())}")
    return [node.plain() for node in nodes], [node.place for node in nodes]


def _below(file: str) -> Node | None:
    """The node of ``begin`` in a sweep file; ``None`` where the file has none."""
    try:
        return _listed_in(read_file(Path(file)))
    except NasboError:  # a space by its name, or YAML that only settings may have
        return None


def _listed_in(root: Node) -> Node | None:
    """The list ``begin`` of a document that is a sweep's settings."""
    pairs = {key.value: node for key, node in root.pairs()} if root.is_mapping else {}
    listed = pairs.get(NAME) if "space" in pairs else None
    return listed if listed is not None and listed.is_list else None


def _places(node: Node | None) -> list[str]:
    return [one.place for one in node.value] if node is not None and node.is_list else []
