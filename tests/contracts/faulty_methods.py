"""Methods with one fault each, and one without a fault."""

from __future__ import annotations

import os

import numpy as np

from nasbo.history import History
from nasbo.methods import Method, Suggestion, Task
from nasbo.methods.exclusion import Excluded
from nasbo.space import Config


class Sound(Method):
    """Uniform configs, from a generator whose seed also depends on the best config."""

    def propose(self, task: Task) -> list[Suggestion]:
        return self.draw(task, task.rng.integers(2**31), task.taken)

    def draw(self, task: Task, seed: int, taken: Excluded) -> list[Suggestion]:
        rng = np.random.default_rng([int(seed), self.best(task)])
        taken, chosen = taken.copy(), list[Config]()
        for config in (self.space.sample(rng) for _ in range(10_000)):
            if len(chosen) == task.n:
                break
            if config not in taken:
                taken.add(config)
                chosen.append(config)
        return [Suggestion(config) for config in chosen]

    def best(self, task: Task) -> int:
        """Number of the best trial."""
        return max(task.rows, key=lambda row: row[1])[0].id


class SuggestsTaken(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return [Suggestion(task.rows[at % len(task.rows)][0].config) for at in range(task.n)]


class Invalid(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return [Suggestion(one.config | {"extra": 1}) for one in super().propose(task)]


class IgnoresTheSeed(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return self.draw(task, np.random.default_rng().integers(2**31), task.taken)


class UsesTheGlobalGenerator(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return self.draw(task, np.random.randint(2**31), task.taken)


class DependsOnTheProcess(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return self.draw(task, os.getpid(), task.taken)


class KeepsState(Sound):
    n_calls = 0

    def propose(self, task: Task) -> list[Suggestion]:
        self.n_calls += 1
        return self.draw(task, self.n_calls, task.taken)


class SuggestsTwins(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return super().propose(task)[:1] * task.n


class IgnoresRunning(Sound):
    """The same config until there are more results."""

    def propose(self, task: Task) -> list[Suggestion]:
        known = Excluded()
        known.add(*(trial.config for trial, _ in task.rows))
        return self.draw(task, len(task.rows), known)


class StaysAtTheBest(Sound):
    """Only configs that differ from the best one in one number."""

    def propose(self, task: Task) -> list[Suggestion]:
        best, _ = max(task.rows, key=lambda row: row[1])
        subspace = self.space.subspace(best.subspace)
        x = subspace.encode(best.config)
        points = np.tile(x, (50, 1))
        points[np.arange(50), np.arange(50) % len(x)] = task.rng.random(50)
        return [Suggestion(subspace.decode(point)) for point in subspace.snap(points)]


class SkipsTheDesign(Sound):
    def suggest(self, history: History, n: int) -> list[Suggestion]:
        rng, taken = np.random.default_rng(self.seed), Excluded(history.keys)
        return self.propose(Task(self.space, history.rows(), [], taken, n, rng, 0))


class DividesByTheSpread(Sound):
    def best(self, task: Task) -> int:
        scores = [score for _, score in task.rows]
        return int(1e3 / (max(scores) - min(scores)))


class NeedsEveryResult(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        if task.pending:
            raise ValueError("a trial has no score")
        return super().propose(task)


class IgnoresResults(Sound):
    def best(self, task: Task) -> int:
        return 0


class IgnoresLimits(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        return self.draw(task, task.rng.integers(2**31), task.taken.with_limits(None))


class FailsOften(Sound):
    def propose(self, task: Task) -> list[Suggestion]:
        if len(task.rows) % 3 == 0:
            raise ArithmeticError("not positive definite")
        return super().propose(task)


class StopsEarly(Sound):
    def suggest(self, history: History, n: int) -> list[Suggestion]:
        return [] if history.n_suggested >= 4 else super().suggest(history, n)
