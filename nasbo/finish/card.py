"""Model card of the best finalist, and the table of all finalists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nasbo.finish.finalist import Finalist
from nasbo.sweeps.settings import Sweep

CARD_FILE, FACTS_FILE = "README.md", "card.json"
TABLE_FACTS = ("params", "flops", "latency_ms", "onnx_latency_ms", "onnx_difference")
"""Facts from the trainer that the table of finalists shows, if present."""


def mean_text(values: Sequence[float]) -> str:
    """Mean of values; for several also standard deviation and number."""
    if len(values) < 2:
        return f"{values[0]:.4f}" if values else "-"
    return f"{fmean(values):.4f} ± {stdev(values):.4f} ({len(values)})"


def searched_text(finalist: Finalist) -> str:
    """Values of a finalist in the search and, under noise, its estimate there."""
    info = finalist.trial.info
    expected = info.get("search_estimate")
    text = mean_text(info.get("search_values") or [])
    if "search_step" in info:  # it was trained in part
        text = f"{info['search_last']:.4f} at step {info['search_step']}"
    return text if expected is None else f"{text}, {expected:.4f} expected"


def describe_finalists(
    finalists: Sequence[Finalist], best: Finalist, sweep: Sweep
) -> RenderableType:
    """Table of the finalists."""
    header, rows = _table(finalists, best, sweep.metric or "value")
    table = Table(box=None, header_style="bold")
    for name in header:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*map(Text, row))
    return Group(Text("finalists, by their rank in the search:"), table)


def write_card(
    folder: Path,
    target: Path,
    best: Finalist,
    finalists: Sequence[Finalist],
    facts: Mapping[str, Any],
) -> None:
    """Write ``README.md`` and, for programs, ``card.json``.

    Args:
        folder: where to write.
        target: final path of the folder.
        best: the finalist of the card.
        finalists: all of them.
        facts: about the search, the data and the versions.
    """
    told = {**facts, "finalists": [_told(one) for one in finalists], "best": best.rank}
    text = json.dumps(told, indent=2, allow_nan=False)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")
    lines = [*_head(best, finalists, facts), *_numbers(best, facts), *_use(best, target)]
    lines += _origin(facts)
    (folder / CARD_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _told(finalist: Finalist) -> dict[str, Any]:
    return {
        "rank": finalist.rank,
        "search_trial": finalist.trial.info.get("search_trial"),
        "search_values": finalist.trial.info.get("search_values"),
        "search_last": finalist.trial.info.get("search_last"),
        "search_step": finalist.trial.info.get("search_step"),
        "search_estimate": finalist.trial.info.get("search_estimate"),
        "values": finalist.values,
        "trainings": [dict(one.metrics) for one in finalist.trainings],
        "facts": finalist.facts,
        "config": finalist.trial.config,
    }


def chosen_how(best: Finalist, finalists: Sequence[Finalist], facts: Mapping[str, Any]) -> str:
    """How the best finalist was chosen, to follow "was chosen"."""
    metric, n = facts["metric"], len(finalists)
    if facts["chosen_by"] == "search":
        return (
            f"by its {facts['search_metric']} in the search; its {metric} was measured afterwards "
            "and decided nothing"
        )
    if facts["chosen_by"] == "test":
        return f"by its {metric} among {n} finalists, which makes that number optimistic"
    return (
        f"by its {metric}, the best mean of {n} finalists over their final trainings "
        f"({len(best.values)} of this one); its {metric} in the search decided only that it became "
        "a finalist"
    )


def _head(best: Finalist, finalists: Sequence[Finalist], facts: Mapping[str, Any]) -> Iterable[str]:
    header, rows = _table(finalists, best, facts["metric"])
    return [
        "# Model card",
        "",
        f"Finalist {best.rank} of {len(finalists)} of a search by {facts['method']} over "
        f"{facts['n_trials']} trials, chosen {chosen_how(best, finalists, facts)}.",
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def _numbers(best: Finalist, facts: Mapping[str, Any]) -> Iterable[str]:
    yield from ("## Numbers", "")
    yield f"- {facts['search_metric']} in the search: {searched_text(best)}"
    yield f"- {facts['metric']} of the finished network: {mean_text(best.values)}"
    for training in best.trainings:
        seed = training.metrics.get("trial_seed", f"of trial {training.number}")
        yield f"  - seed {seed}: {training.value:.6f}"
    first = best.trainings[0].metrics.get("trial_seed", f"of trial {best.trainings[0].number}")
    yield (
        f"- the files here, and the numbers that come again from them, are those of the first of "
        f"these {len(best.trainings)} trainings, seed {first}"
    )
    for name, value in best.facts.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"- {name}: {_number(value)}"
    yield ""


def _use(best: Finalist, target: Path) -> Iterable[str]:
    """How to load the network and reproduce its numbers, from the trainer."""
    for title, key in (("Use", "usage"), ("The same numbers again", "regenerate")):
        if text := best.facts.get(key):
            words = str(text).replace("{folder}", str(target))
            yield from (f"## {title}", "", "```", words, "```", "")


def _origin(facts: Mapping[str, Any]) -> Iterable[str]:
    yield from ("## Where it comes from", "", "```", str(facts["command"]), "```", "")
    for title, key in (
        ("trainer", "trainer"),
        ("options of the finalists", "options"),
        ("options of the search", "search_options"),
        ("data of the finalists", "provenance"),
        ("data of the search", "search_provenance"),
        ("versions", "versions"),
    ):
        yield f"- {title}: {_plain(facts[key])}"


def _table(
    finalists: Sequence[Finalist], best: Finalist, metric: str
) -> tuple[list[str], list[list[str]]]:
    names = [n for n in TABLE_FACTS if any(n in one.facts for one in finalists)]
    header = ["finalist", "trial", "in the search", metric, *names]
    rows = []
    for one in finalists:
        info = one.trial.info
        rank = f"{one.rank} (best/)" if one is best else str(one.rank)
        row = [rank, str(info.get("search_trial", "-")), searched_text(one)]
        known = (one.facts.get(name) for name in names)
        rows.append([*row, mean_text(one.values), *(_number(value) for value in known)])
    return header, rows


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return "-"
    is_whole = isinstance(value, int) or (value.is_integer() and value < 2**53)
    return f"{int(value):,}" if is_whole else f"{value:.4g}"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "-"
    return str(value)
