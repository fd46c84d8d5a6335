"""Records of finished benchmark cells, made from given numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

N_DESIGN = 2


def record(
    cell: tuple[str, str, int],
    scores: Sequence[float | None],
    *,
    values: Sequence[float | None] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Record of the cell (problem, method, seed); the first two scores are the design."""
    problem, label, seed = cell
    trials = len(scores) - N_DESIGN
    key = {
        "problem": problem,
        "problem_version": 1,
        "space": "space",
        "method": label,
        "options": {},
        "version": changes.pop("version", "1"),
        "seed": seed,
        "trials": trials,
        "batch": 1,
        "design": None,
        "protocol": 1,
    }
    made: dict[str, Any] = {
        "key": key,
        "label": label,
        "group": "g",
        "half": "tuning",
        "optimum": None,
        "is_noisy": values is not None,
        "n_subspaces": 2,
        "n_design": N_DESIGN,
        "scores": list(scores),
        "values": list(scores if values is None else values),
        "sources": ["design"] * N_DESIGN + ["model"] * trials,
        "subspaces": [0] * len(scores),
        "configs": [{} for _ in scores],
        "rounds": [[N_DESIGN + at, 1, 0.5] for at in range(trials)],
        "fallbacks": {},
        "seconds": 1.0,
        "made": 1.0,
    }
    return made | changes


def write_cells(out: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write records as the files of a folder, without a plan."""
    (out / "cells").mkdir(parents=True)
    for number, one in enumerate(records):
        (out / "cells" / f"{number:03}.json").write_text(json.dumps(one), encoding="utf-8")
