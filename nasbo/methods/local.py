"""Local search: from the best config to a better one that differs by one change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nasbo.history import Trial, config_key
from nasbo.methods.base import Method, Suggestion, Task, draw_untried
from nasbo.methods.exclusion import Excluded
from nasbo.methods.one_change import one_change_away
from nasbo.methods.options import check_choice
from nasbo.space import Config, Space

IMPROVEMENTS = ("first", "best")

Row = tuple[Trial, float]
Neighbour = tuple[str, Config]


@dataclass(frozen=True)
class Known:
    """What is known of configs, by their keys.

    Attributes:
        rows: trials with their scores.
        running: configs whose score is to come.
    """

    rows: dict[str, Row]
    running: set[str]


class LocalSearch(Method):
    """Local search with random restarts (White et al., UAI 2021).

    The neighbours of a config differ by one change: another value of a choice, of a structural
    parameter or of one with few levels; of other numbers, steps of three random lengths up and
    down, drawn once for each config. The first run starts at the best config of the design. When
    all neighbours of a run's best config have been tried, the next run starts at a random config.
    The info of a trial has its run (``restart``) and the trial that it is a neighbour of
    (``parent``); the state of all runs is read from these.

    Departures: known configs are not evaluated again, and a run moves to those that are better.
    With parallel trials, a run without untried neighbours waits for those that are running, and
    later runs go on meanwhile.

    Args:
        space: what to search.
        seed: of all random numbers.
        improvement: whether a run moves to the ``first`` better neighbour, or to the ``best`` one
            after all neighbours have been evaluated.
    """

    def __init__(self, space: Space, seed: int = 0, *, improvement: str = "first") -> None:
        super().__init__(space, seed)
        check_choice("improvement", improvement, IMPROVEMENTS)
        self.improvement = improvement
        self._around: dict[str, list[Neighbour]] = {}
        self._keys: dict[int, tuple[Config, str]] = {}

    def propose(self, task: Task) -> list[Suggestion]:
        return list(islice(self._steps(task, self._known_rows(task), task.taken.copy()), task.n))

    def _steps(self, task: Task, known: Known, taken: Excluded) -> Iterator[Suggestion]:
        """Untried neighbours of the centre of each run, then starts of new runs."""
        for restart, start in sorted(self._centres(task).items()):
            centre = self._climb(start, known, taken)
            for key, config in self._neighbours(centre):
                if _is_untried(key, config, known, taken):
                    taken.add(config)
                    known.running.add(key)
                    yield Suggestion(config, "model", {"parent": centre[0].id, "restart": restart})
        n_runs = 1 + max((_run_of(trial) for trial in task.suggested), default=0)
        for restart, config in enumerate(draw_untried(self.space, taken, task.rng), start=n_runs):
            yield Suggestion(config, "model", {"parent": None, "restart": restart})

    def _centres(self, task: Task) -> dict[int, Row]:
        """The best config that each run has moved to; that of run 0 may be of the design."""
        rows = {row[0].id: row for row in task.rows}
        centres: dict[int, Row] = {}
        for row in task.rows:
            run, parent = _run_of(row[0]), row[0].info.get("parent")
            visited = [row] if parent is None or self.improvement == "first" else []
            if parent in rows:
                visited.append(rows[parent])
            for one in visited:
                if run not in centres or one[1] > centres[run][1]:
                    centres[run] = one
        return centres

    def _climb(self, centre: Row, known: Known, taken: Excluded) -> Row:
        """The centre after all moves that the results allow."""
        while True:
            around = self._neighbours(centre)
            if self.improvement == "best" and any(
                key in known.running or _is_untried(key, config, known, taken)
                for key, config in around
            ):
                return centre
            rows = [known.rows[key] for key, _ in around if key in known.rows]
            best = max(rows, key=lambda row: row[1], default=centre)
            if best[1] <= centre[1]:
                return centre
            centre = best

    def _known_rows(self, task: Task) -> Known:
        rows = {self._key(row[0]): row for row in task.rows}
        running = {config_key(config) for config in task.pending}
        return Known(rows, running - {self._key(t) for t in task.suggested if not t.is_open})

    def _neighbours(self, centre: Row) -> list[Neighbour]:
        """All neighbours in the order in which they are tried, equal in every call."""
        key = self._key(centre[0])
        if key not in self._around:
            word = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
            rng = np.random.default_rng([self.seed, word])
            configs = one_change_away(self.space, centre[0].config, rng)
            self._around[key] = [(config_key(config), config) for config in configs]
        return self._around[key]

    def _key(self, trial: Trial) -> str:
        """The key of a trial's config, computed once."""
        config, key = self._keys.get(trial.id, (None, ""))
        if config is not trial.config:
            key = config_key(trial.config)
            self._keys[trial.id] = trial.config, key
        return key


def _run_of(trial: Trial) -> int:
    """The run that a trial belongs to; 0 for the design and results from elsewhere."""
    return int(trial.info.get("restart", 0))


def _is_untried(key: str, config: Config, known: Known, taken: Excluded) -> bool:
    return key not in known.rows and key not in known.running and config not in taken
