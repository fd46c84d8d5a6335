"""Method whose process dies whenever it is to propose a config."""

from __future__ import annotations

import os

from nasbo.methods.base import Method, Suggestion, Task


class DyingMethod(Method):
    def propose(self, task: Task) -> list[Suggestion]:
        os._exit(1)
