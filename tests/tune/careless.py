"""Method that ignores limits: its suggestions must be filtered later."""

from __future__ import annotations

import numpy as np

from nasbo.history import History
from nasbo.methods import Method, Suggestion, Task


class Careless(Method):
    """Suggests the same configs, whatever the limits are."""

    def propose(self, task: Task) -> list[Suggestion]:
        return []

    def suggest(self, history: History, n: int) -> list[Suggestion]:
        rng = np.random.default_rng(history.n_suggested)
        return [Suggestion(self.space.sample(rng)) for _ in range(n)]
