"""Random search: uniform over the subspaces, then uniform inside."""

from __future__ import annotations

from itertools import islice

from nasbo.methods.base import Method, Suggestion, Task, draw_untried


class RandomSearch(Method):
    """Random search: configs are drawn without looking at the results."""

    is_quick = True
    takes_several = True

    def propose(self, task: Task) -> list[Suggestion]:
        drawn = draw_untried(self.space, task.taken.copy(), task.rng)
        return list(map(Suggestion, islice(drawn, task.n)))
