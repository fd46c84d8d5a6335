"""Writer of the tables of a benchmark by cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from nasbo.bench.curves.markdown import curves_markdown
from nasbo.bench.curves.results import load_curve_results
from nasbo.bench.curves.table import make_curve_table
from nasbo.bench.markdown import Table
from nasbo.bench.run import PLAN, read_record

TABLE_TEXT, TABLE_JSON = "table.md", "table.json"


def is_by_cost(out: Path) -> bool:
    """Whether a folder contains a benchmark by cost, according to its plan."""
    path = out / PLAN
    return path.is_file() and any("budget" in p["protocol"] for p in read_record(path)["parts"])


def write_curve_tables(
    out: Path, methods: Sequence[str] = (), problems: Sequence[str] = ()
) -> list[Table]:
    """Write ``table.md`` and ``table.json`` from the cells; returns the numbers, by protocol."""
    found = load_curve_results(out, methods, problems)
    tables = [make_curve_table(one) for one in found]
    text = curves_markdown(tables, f"Benchmark {out.name}", found[0].results.command)
    (out / TABLE_TEXT).write_text(text, encoding="utf-8")
    (out / TABLE_JSON).write_text(json.dumps(tables, indent=1), encoding="utf-8")
    return tables
