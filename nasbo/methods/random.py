"""Random search: uniform over the subspaces, then uniform inside."""

from __future__ import annotations

from nasbo.methods.base import Method, Suggestion, Task, draw_anywhere


class RandomSearch(Method):
    """Each config is drawn without looking at the results."""

    is_quick = True

    def propose(self, task: Task) -> list[Suggestion]:
        taken = task.taken.copy()
        chosen: list[Suggestion] = []
        while len(chosen) < task.n:
            config = draw_anywhere(self.space, taken, task.rng)
            if config is None:
                break
            taken.add(config)
            chosen.append(Suggestion(config))
        return chosen
