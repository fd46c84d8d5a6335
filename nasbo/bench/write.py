"""Writer of a benchmark's tables and plots, from its cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasbo.bench.figures import write_figures
from nasbo.bench.markdown import to_markdown
from nasbo.bench.results import Results, load_results
from nasbo.bench.table import make_table

TABLE_TEXT, TABLE_JSON = "table.md", "table.json"


def write_tables(
    out: Path, methods: Sequence[str] = (), problems: Sequence[str] = ()
) -> dict[str, Any]:
    """Remake ``table.md``, ``table.json`` and the plots from the cells alone.

    Args:
        out: folder of a benchmark.
        methods: labels to keep, the first one is compared with the others; default: all.
        problems: names to keep; default: all.

    Returns:
        The numbers of the tables.
    """
    results = load_results(out, methods, problems)
    return write_results(results, out)


def write_results(results: Results, out: Path) -> dict[str, Any]:
    """Write the tables and plots of loaded results."""
    table = make_table(results)
    text = to_markdown(table, f"Benchmark {out.name}", results.command)
    (out / TABLE_TEXT).write_text(text, encoding="utf-8")
    (out / TABLE_JSON).write_text(json.dumps(table, indent=1), encoding="utf-8")
    write_figures(results, out)
    return table
