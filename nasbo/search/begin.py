"""Configs that a search begins with: named by the user, run before the design."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nasbo.errors import ConfigError, NasboError
from nasbo.history import View, config_key
from nasbo.methods import Suggestion
from nasbo.space import Config, Space

BEGIN = "begin"
"""In the info of a trial whose config the user named: the place of the config in the list."""


def checked(
    space: Space,
    configs: Iterable[Config],
    limits: Callable[[Config], bool] | None = None,
    places: Sequence[str] = (),
) -> list[Config]:
    """Configs to begin with as the space itself would write them.

    Args:
        space: to which they must belong.
        configs: all parameters of each.
        limits: whether a config may be suggested at all.
        places: where each of them stands, for messages.

    Raises:
        NasboError: one does not belong to the space, is outside the limits, or stands there twice;
            the message has its place.
    """
    found: dict[str, Config] = {}
    for number, config in enumerate(configs):
        place = places[number] if number < len(places) else "begin"
        place = f"{place}: config {number + 1}"
        try:
            known = space.canonical(config)
        except ConfigError as error:
            raise NasboError(f"{place}: {error}") from error
        if limits is not None and not limits(known):
            raise NasboError(f"{place}: must keep to the limits of the search, got {known}")
        if (key := config_key(known)) in found:
            first = list(found).index(key) + 1
            raise NasboError(f"{place}: is config {first} again: each is tried once")
        found[key] = known
    return list(found.values())


def suggestions(configs: Sequence[Config]) -> list[Suggestion]:
    """Configs to begin with as part of the initial design."""
    return [Suggestion(config, "design", {BEGIN: n}) for n, config in enumerate(configs)]


def has_only_begun(history: View) -> bool:
    """Whether no config but those that the user named has been decided on."""
    return all(BEGIN in trial.info for trial in history.suggested)
