"""Tables of rungs and paused trials for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from nasbo.history import View
from nasbo.report.axes import number_text
from nasbo.report.progress import name_text, value_text
from nasbo.sweeps.rungs import RungRow, Waiting

COLUMNS = ("rung", "configs", "best", "went on", "paused", "failed", "agreement", "")


def rung_table(rows: Sequence[RungRow]) -> Table:
    """One row per rung, lowest first."""
    table = Table(box=None, header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        best = "-" if row.best is None else value_text(row.best)
        table.add_row(*rung_cells(row, best))
    return table


def rung_cells(row: RungRow, best: str) -> list[str]:
    """Cells of a rung's row, for ``COLUMNS``; ``best`` is its best value as text."""
    counts = [str(n) for n in (row.n_promoted, row.n_paused, row.n_failed)]
    agreement = "-"
    if row.agreement is not None:
        agreement = f"{number_text(row.agreement, 2)} of {row.n_common}"
    return [str(row.step), str(row.n_seen), best, *counts, agreement, "dropped" * row.is_dropped]


def waiting_table(history: View, found: Sequence[Waiting], most: int | None = None) -> Table:
    """The paused trials and why they are paused; at most ``most`` of them."""
    table = Table(box=None, header_style="bold")
    for name in ("paused", "subspace", "value", "waits as"):
        table.add_column(name, no_wrap=name != "subspace")
    for one in found[:most]:
        subspace = name_text(history.subspace(history.trial(one.trial)).id)
        table.add_row(f"trial {one.trial}", subspace, value_text(one.value), one.reason)
    if most is not None and len(found) > most:
        table.add_row(Text(f"and {len(found) - most:,} more", "dim"))
    return table
