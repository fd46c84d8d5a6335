"""Command ``make chaos``: inject all faults that are possible on one machine, and print a table."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from tests.chaos.audit import N_STEPS, Audit
from tests.chaos.drivers import kill_drivers
from tests.chaos.nodes import break_nodes, describe
from tests.chaos.storage import fill_disk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--driver-kills", type=int, default=10, help="per seed")
    parser.add_argument("--node-faults", type=int, default=12)
    parser.add_argument("--only", choices=["drivers", "nodes", "disk"])
    parser.add_argument("--rungs", action="store_true", help="trials pause at 2 of 6 steps")
    parser.add_argument("--keep", type=Path, help="a folder for the sweeps, kept afterwards")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # the searches are compared bit by bit
    console, rungs = Console(), (2, N_STEPS) if chosen.rungs else None
    total = Audit()
    with contextlib.ExitStack() as stack:
        root = chosen.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="nasbo-"))
        if chosen.only in (None, "disk"):
            found = fill_disk(Path(root) / "disk", 0, 60)
            console.print(f"disk: {dict(found.faults)}, clean: {found.is_clean}")
            total += found
        if chosen.only in (None, "drivers"):
            wanted, n_kills = chosen.seeds * chosen.driver_kills, 0
            for seed in itertools.count():
                if n_kills >= wanted:  # a sweep may finish before its last kill
                    break
                found = kill_drivers(
                    Path(root) / f"d{seed}", seed, chosen.driver_kills, 36, "attnbo", rungs
                )
                console.print(f"seed {seed}: {dict(found.faults)}, clean: {found.is_clean}")
                n_kills += sum(n for kind, n in found.faults.items() if kind.startswith("driver"))
                total += found
        if chosen.only in (None, "nodes"):
            found, delays = break_nodes(Path(root) / "nodes", 0, chosen.node_faults, 240, rungs)
            console.print(f"nodes: {dict(found.faults)}, clean: {found.is_clean}")
            console.print(f"from fault to requeue: {describe(delays)}")
            total += found
    table = Table("what", "count")
    for row in total.rows():
        table.add_row(*row)
    console.print(table)
    return 0 if total.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
