"""Regularised evolution: mutations of good configs among the latest ones."""

from __future__ import annotations

from numpy.random import Generator

from nasbo.errors import NasboError
from nasbo.history import Trial
from nasbo.history.front import front_ranks
from nasbo.methods.base import Method, Suggestion, Task, draw_anywhere
from nasbo.methods.exclusion import Excluded
from nasbo.methods.options import check_count
from nasbo.space import Config, Space
from nasbo.space.neighbours import complete, values_of

POPULATION = 25
TOURNAMENT = 5
_TRIES = 50


class Evolution(Method):
    """Regularised evolution (Real et al. 2019; sizes of appendix B.1 of the OptFormer paper).

    The population is the latest configs with results: the oldest are removed, however good. The
        best of a random tournament is mutated: one of its active parameters, each with the same
        probability, gets a new value, uniform over the others of its range. After a change of a
        structural value, parameters that still exist keep their values and new ones are drawn.
        Configs are random until there are as many as the population holds.

    Of several objectives, a tournament is won by the config on the better front (the non-dominated
    sorting of NSGA-II).

    Args:
        space: what to search.
        seed: of all random numbers.
        population: size of the population.
        tournament: how many are drawn from it to compete.
    """

    takes_several = True

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        population: int = POPULATION,
        tournament: int = TOURNAMENT,
    ) -> None:
        super().__init__(space, seed)
        check_count("population", population)
        check_count("tournament", tournament)
        if tournament > population:
            rule = "tournament <= population must hold"
            raise NasboError(f"{rule}, but got {tournament} and {population}")
        self.population, self.tournament = population, tournament

    def propose(self, task: Task) -> list[Suggestion]:
        taken = task.taken.copy()
        chosen: list[Suggestion] = []
        while len(chosen) < task.n:
            n_known = len(task.rows) + len(task.pending) + len(chosen)
            suggestion = self._child(task, taken) if n_known >= self.population else None
            if suggestion is None:
                config = draw_anywhere(self.space, taken, task.rng)
                if config is None:
                    break
                suggestion = Suggestion(config, "model", {"parent": None})
            taken.add(suggestion.config)
            chosen.append(suggestion)
        return chosen

    def _child(self, task: Task, taken: Excluded) -> Suggestion | None:
        """An untried mutation; ``None`` if none was found."""
        alive = _fitness(task)[-self.population :]
        for _ in range(_TRIES):
            n = min(self.tournament, len(alive))
            drawn = task.rng.choice(len(alive), size=n, replace=False)
            parent, _ = max((alive[int(at)] for at in drawn), key=lambda one: one[1])
            config = mutate(self.space, parent.config, task.rng)
            if config not in taken:
                return Suggestion(config, "model", {"parent": parent.id})
        return None


def _fitness(task: Task) -> list[tuple[Trial, float]]:
    """The rows with their scores or, with several objectives, the negative rank of their front."""
    if task.front is None:
        return task.rows
    ranks = front_ranks(task.front.scores)
    return [(trial, -float(rank)) for (trial, _), rank in zip(task.rows, ranks, strict=True)]


def mutate(space: Space, config: Config, rng: Generator) -> Config:
    """The config with a new value of one active parameter, structural ones included."""
    subspace = space.subspace_of(config)
    coordinates = [one for one in subspace.coordinates if one.parameter.n_levels != 1]
    if not coordinates:
        return config
    coordinate = coordinates[int(rng.integers(len(coordinates)))]
    values = values_of(subspace, config)
    here = values[coordinate.name, coordinate.index]
    fresh = coordinate.parameter.sample(rng)
    while fresh == here:
        fresh = coordinate.parameter.sample(rng)
    return complete(space, values | {(coordinate.name, coordinate.index): fresh}, rng)
