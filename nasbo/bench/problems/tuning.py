"""Families of tuning problems: one space and learner on each OpenML data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from typing import Any

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.openml import SETS, load_set
from nasbo.bench.problems.scoring import N_REPEATS, log_loss
from nasbo.bench.problems.store import Store
from nasbo.errors import NasboError
from nasbo.space import Space


@dataclass(frozen=True)
class Package:
    """A package that a problem needs.

    Attributes:
        module: module to import.
        install: distribution to install.
        others: further distributions that provide the same module.
    """

    module: str
    install: str
    others: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise if the package is missing."""
        if util.find_spec(self.module) is None:
            raise NasboError(
                f"the package {self.install} is needed: pip install {self.install}, "
                "or pip install 'nasbo[bench]' for all of them"
            )

    @property
    def version(self) -> str:
        """The module's name and version; "absent" if it is missing."""
        for distribution in (self.install, *self.others):
            try:
                return f"{self.module} {metadata.version(distribution)}"
            except metadata.PackageNotFoundError:
                continue
        return f"{self.module} absent"


SKLEARN = Package("sklearn", "scikit-learn")
XGBOOST = Package("xgboost", "xgboost-cpu", ("xgboost",))


@dataclass(frozen=True)
class Family:
    """Problems of one space on all data sets.

    Attributes:
        name: prefix of its problems' names.
        space: builds the space.
        learner: builds an unfitted classifier from a config and the number of features.
    """

    name: str
    group: str
    space: Callable[[], Space]
    learner: Callable[[Config, int], Any]
    summary: str
    packages: Sequence[Package] = (SKLEARN,)
    version: int = 2

    def entries(self) -> dict[str, Entry]:
        """An entry per data set."""
        return {f"{self.name}_{data}": self._entry(data) for data in SETS}

    def _entry(self, data: str) -> Entry:
        packages = ", ".join(package.install for package in self.packages)
        return Entry(
            make=lambda: self.problem(data),
            group=self.group,
            half=SETS[data].half,
            summary=f"{self.summary} on {data}",
            cost="< 1 s",
            needs=f"openml/{SETS[data].file}; {packages}",
            check=lambda: self.check(data),
            store=lambda: self.store(data),
        )

    def check(self, data: str) -> None:
        """Raise if a package or the data set is missing."""
        for package in self.packages:
            package.check()
        load_set(data)

    def store(self, data: str) -> Store:
        """Store of the values, by version of this code and of the packages."""
        made_with = ", ".join(package.version for package in self.packages)
        return Store(f"{self.name}_{data}-{self.version}", made_with)

    def measure(self, config: Config, data: str, splits: Iterable[int] = range(N_REPEATS)) -> float:
        """Log-loss of a config's learner on one data set, averaged over splits into folds."""
        table = load_set(data)
        return log_loss(lambda: self.learner(config, table.features.shape[1]), table, splits)

    def problem(self, data: str) -> Problem:
        """The problem on one data set; its values are stored on disk."""
        space, store = self.space(), self.store(data)

        def evaluate(config: Config, rng: np.random.Generator) -> float:
            own = space.canonical(config)
            key = json.dumps(own, sort_keys=True)
            return store.value(key, lambda: self.measure(own, data))

        return Problem(f"{self.name}_{data}", space, evaluate, version=self.version)
