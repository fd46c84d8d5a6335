"""Tables of a benchmark by cost as Markdown text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nasbo.bench.curves.table import FULL_LENGTH
from nasbo.bench.markdown import Table, bold, comparison_words, grid, number
from nasbo.bench.statistics import TIE_DIGITS


def curves_markdown(tables: Sequence[Table], title: str, command: str = "") -> str:
    """All tables, with one section per protocol."""
    made = f"Made by `{command}`.\n\n" if command else ""
    what = (
        "Costs are full trainings' worth of steps, the initial design included. Regret is that of "
        "the noise-free value after a full training: 0 is the best config of the pool, or that any "
        "run returned, and 1 the median of random configs. Counted is the config that a search "
        "would return: the best of those trained furthest, or the best seen until there is one. "
        "± is one standard error: of regrets over pairs of problem and seed, of ranks over "
        f"problems. Regrets that agree to {TIE_DIGITS} digits are ties.\n\n"
        "Against a method: pairs that the first method won/lost/even, and p of Wilcoxon's "
        "signed-rank test, two-sided, not corrected for the number of tests. Budget: the median "
        "part of it after which the regret stays at or below that of full-length "
        f"{FULL_LENGTH} at the end, on the same problem and seed (pairs that get there). Best "
        "seen: mean regret of the config with the best value at any step so far."
    )
    parts = [f"# {title}", made + what, *(_one(table) for table in tables)]
    return "\n\n".join(parts) + "\n"


def regret_rows(table: Table) -> Iterator[list[str]]:
    """Mean regrets over all problems for the terminal: method, then one cell per mark."""
    overall = table["scopes"].get("overall") or {"methods": [], "at": {}}
    for method in overall["methods"]:
        yield [method, *[number(at[method]["regret"]["mean"], 4) for at in overall["at"].values()]]


def _one(table: Table) -> str:
    parts = [_head(table)]
    parts += [_scope(table, name, one) for name, one in table["scopes"].items() if one]
    parts += [_problems(table), _cells(table)]
    return "\n\n".join(part for part in parts if part)


def _head(table: Table) -> str:
    lines = [
        f"## {table['protocol']}",
        f"{len(table['methods'])} methods on {table['n_problems']} problems. "
        "The first method is compared with the others.",
    ]
    lines += [f"**Left out: {name}** ({reason})." for name, reason in table["left_out"].items()]
    lines += [f"**Note:** {note}." for note in table["notes"]]
    if missing := table["missing"]:
        more = " ..." if len(missing) > 10 else ""
        lines.append(f"**{len(missing)} cells are missing:** {'; '.join(missing[:10])}{more}")
    return "\n\n".join(lines)


def _scope(table: Table, name: str, one: Table) -> str:
    """Regrets, ranks, tests and shares over a set of problems."""
    first = one["methods"][0]
    head = ["method"]
    for mark in table["marks"]:
        head += [f"regret at {mark}", f"rank at {mark}", f"{first} against it"]
    head += [f"budget to {FULL_LENGTH}'s final value", "best seen, at the end"]
    rows = [_row(table, one, method) for method in one["methods"]]
    pairs = f"{one['n_pairs']} pairs of {one['n_problems']} problem(s)"
    return f"### {name}, {pairs}\n\n{grid(head, rows)}"


def _row(table: Table, one: Table, method: str) -> list[str]:
    cells = [method]
    for mark in map(str, table["marks"]):
        at = one["at"][mark]
        for what, digits in (("regret", 3), ("rank", 2)):
            best = min(
                other[what]["mean"] for other in at.values() if other[what]["mean"] is not None
            )
            cells.append(_with_error(at[method][what], best, digits))
        cells.append(comparison_words(at[method]["test"]))
    share = one["share"].get(method)
    cells.append("–" if share is None else _share(share))
    cells.append(number(one["seen"][str(table["marks"][-1])][method], 4))
    return cells


def _with_error(one: Table, best: float, digits: int) -> str:
    error = "" if one["error"] is None else f" ± {one['error']:.{digits}f}"
    return f"{bold(one['mean'], best, digits)}{error}"


def _share(share: Table) -> str:
    median = "never" if share["median"] is None else f"{share['median']:.0%}"
    return f"{median} ({share['reached']:.0%})"


def _problems(table: Table) -> str:
    """Mean final regret by problem."""
    last = str(table["marks"][-1])
    rows: list[list[str]] = []
    for name, one in table["problems"].items():
        if not one:
            continue
        means: dict[str, Any] = {m: found["regret"]["mean"] for m, found in one["at"][last].items()}
        best = min(mean for mean in means.values() if mean is not None)
        cells = [bold(means[m], best, 3) if m in means else "–" for m in table["methods"]]
        rows.append([name, *cells])
    return f"### Mean regret at {last}, by problem\n\n{grid(['', *table['methods']], rows)}"


def _cells(table: Table) -> str:
    head = ["method", "configs (median)", "trained in full (median)", "spent", "clock",
            "rungs dropped", "seconds per cell", "of them deciding", "fallbacks",
            "version"]  # fmt: skip
    rows = []
    for method, one in table["cells"].items():
        numbers = [f"{one['configs']:g}", f"{one['full']:g}", number(one["spent"], 4),
                   number(one["time"], 4), f"{one['dropped']:.0%}",
                   number(one["seconds"], 3), number(one["deciding"], 3)]  # fmt: skip
        fallbacks = f"{table['fallbacks'][method]:.1%}"
        rows.append([method, *numbers, fallbacks, ", ".join(table["versions"][method])])
    what = (
        "Spent: full trainings' worth, on average. Clock: when it was spent, where a full training "
        "takes 1. Rungs dropped: share of cells in which a rung was."
    )
    return f"### Cells\n\n{what}\n\n{grid(head, rows)}"
