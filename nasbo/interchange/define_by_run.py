"""Spaces of define-by-run studies, as far as their trials have shown them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.errors import ConfigError, SpaceError
from nasbo.interchange.columns import Column
from nasbo.interchange.distributions import hull
from nasbo.interchange.grow import MAX_LEVELS, grow
from nasbo.interchange.infer import infer
from nasbo.interchange.inner_names import inner_names
from nasbo.interchange.listing import ALWAYS, Entry, Translation
from nasbo.space import Config, Parameter, Space, Value
from nasbo.space.walk import Key


@dataclass(frozen=True)
class SeenSpace:
    """The space that trials of a study have shown.

    Attributes:
        columns: by the names of the study.
        translation: the tree, and the names of the study.
        loose: parameters whose condition could not be inferred; the tree always has them.
    """

    columns: Mapping[str, Column]
    translation: Translation
    loose: frozenset[str]

    @staticmethod
    def of(trials: Iterable[Any]) -> SeenSpace | None:
        """The space of completed trials; ``None`` without any."""
        known = [trial for trial in trials if trial.params]
        distributions: dict[str, Any] = {}
        for trial in known:
            for name, one in trial.distributions.items():
                distributions[name] = (
                    hull(distributions[name], one) if name in distributions else one
                )
        wide = {name: one for name, one in distributions.items() if not one.single()}
        if not wide:
            return None
        columns = {name: Column.of(inner, wide[name]) for name, inner in inner_names(wide).items()}
        codes = [
            {
                name: columns[name].code(value)
                for name, value in trial.params.items()
                if name in wide
            }
            for trial in known
        ]
        return _grown(columns, codes)

    @property
    def space(self) -> Space:
        return self.translation.space

    @property
    def distributions(self) -> dict[str, Any]:
        """What Optuna is told of the parameters that are chosen together."""
        return {name: column.distribution for name, column in self.columns.items()}

    def explains(self, trial: Any) -> bool:
        """Whether a completed trial shows nothing new."""
        for name, one in trial.distributions.items():
            held = self.columns.get(name)
            if held is None and not one.single():
                return False
            if held is not None and hull(held.distribution, one) != held.distribution:
                return False
        return self.config_of(trial.params) is not None

    def config_of(
        self, params: Mapping[str, Any], instead: Mapping[str, Any] | None = None
    ) -> Config | None:
        """The config of a trial's parameters; ``None`` if they are not one of this space.

        Args:
            params: of the trial.
            instead: values expected for parameters that the trial has not suggested yet.
        """
        known = {name: value for name, value in params.items() if name in self.columns}
        used: set[str] = set()

        def decide(parameter: Parameter, key: Key) -> Value:
            name = self.translation.names[key, parameter.name]
            used.add(name)
            if name in known:
                return self.columns[name].inner(known[name])
            if instead is not None and name in instead:
                return self.columns[name].inner(instead[name])
            if instead is not None or name in self.loose:
                return parameter.middle()
            raise ConfigError(f"{name!r} is missing")

        try:
            config = self.space.build_config(decide)
        except (ConfigError, ValueError):  # Optuna's own, for what is no choice any more
            return None
        return config if used >= set(known) else None

    def params_of(self, config: Config) -> dict[str, Any]:
        """Inverse of ``config_of``."""
        values = self.translation.values(config)
        return {name: self.columns[name].outer(value) for name, value in values.items()}


def _grown(columns: dict[str, Column], codes: Sequence[Mapping[str, float]]) -> SeenSpace:
    parameters = {name: column.parameter for name, column in columns.items()}
    inferred = infer(codes, parameters)
    wide = {n for n, one in parameters.items() if not 0 < one.n_levels <= MAX_LEVELS}
    on_wide = {
        name
        for name, some in inferred.exists.items()
        if any(c.parent in wide for a in some for c in a)
    }
    loose = frozenset(on_wide | set(inferred.unexplained))
    entries = [Entry(name, one, inferred.exists[name]) for name, one in parameters.items()]
    try:
        return SeenSpace(columns, grow(entries).translation, loose)
    except SpaceError:  # conditions on many parameters together: no tree of a sensible size
        flat = [Entry(name, one, ALWAYS) for name, one in parameters.items()]
        return SeenSpace(columns, grow(flat).translation, frozenset(parameters))
