"""Benchmark tables as Markdown text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nasbo.bench.statistics import LEVEL, SIGNIFICANT, TIE_DIGITS

Table = dict[str, Any]


def to_markdown(table: Table, title: str = "Benchmark", command: str = "") -> str:
    """All tables as Markdown, the summary first."""
    sections = [
        _head(table, title, command),
        _summary(table),
        _ranks(table),
        _tests(table),
        _reach(table),
        _optimum(table),
        _regrets(table),
        _chosen(table),
        _returned(table),
        _costs(table),
        _methods(table),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside of cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def number(value: float | None, digits: int = 3, missing: str = "–") -> str:
    """A number as short text."""
    if value is None:
        return missing
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    is_tiny = 0 < abs(value) < 10 ** (1 - digits)
    return f"{value:.{digits - 1}{'g' if is_tiny else 'f'}}"


def _head(table: Table, title: str, command: str) -> str:
    problems = table["problems"]
    lines = [f"# {title}", ""]
    if command:
        lines += [f"Made by `{command}`.", ""]
    seeds = sorted({n for one in problems.values() for n in one["seeds"].values()})
    trials = sorted({one["trials"] for one in problems.values()})
    lines.append(
        f"{len(table['methods'])} methods on {len(problems)} problems, {_span(seeds)} seeds, "
        f"{_span(trials)} trials after the initial design, which is the same for all. "
        f"Intervals are {LEVEL:.0%} bootstrap intervals of the mean; regrets that agree to "
        f"{TIE_DIGITS} digits are ties. The first method is compared with the others."
    )
    for name, reason in table["left_out"].items():
        lines.append(f"\n**Left out: {name}** ({reason}).")
    for note in table["notes"]:
        lines.append(f"\n**Note:** {note}.")
    if table["missing"]:
        shown = "; ".join(table["missing"][:10])
        more = " ..." if len(table["missing"]) > 10 else ""
        lines.append(f"\n**{len(table['missing'])} cells are missing:** {shown}{more}")
    return "\n".join(lines)


def _ranks(table: Table) -> str:
    parts = ["## Mean rank (1 is best)"]
    rows, head = [], [""]
    for scope, found in table["ranks"].items():
        for at, one in found.items():
            best = _least(one["mean"].values())
            cells = [bold(one["mean"].get(m), best, 2) for m in table["methods"]]
            pairs = f"{one['n_pairs']} pairs of {one['n_problems']} problem(s)"
            rows.append([f"{scope}, {at} trials", *cells, pairs])
    head += [*table["methods"], "over"]
    parts.append(grid(head, rows))
    lost = {
        m for found in table["ranks"].values() for one in found.values() for m in one["unranked"]
    }
    if lost:
        names = ", ".join(sorted(lost))
        parts.append(f"Not ranked where problems are missing from their runs: {names}.")
    return "\n\n".join(parts)


def _tests(table: Table) -> str:
    first, *peers = table["methods"]
    if not peers:
        return ""
    rows = []
    for scope, found in table["tests"].items():
        for at, tested in found.items():
            rows.append(
                [f"{scope}, {at} trials", *[comparison_words(tested.get(peer)) for peer in peers]]
            )
    what = (
        f"Pairs of problem and seed in which {first} is better/worse/even, and the p of Wilcoxon's "
        f"signed-rank test, two-sided, not corrected for the number of tests; a word stands where "
        f"p < {SIGNIFICANT}."
    )
    return f"## {first} against each\n\n{what}\n\n{grid(['', *peers], rows)}"


def comparison_words(one: Table | None) -> str:
    """Wins, losses, ties and p of a comparison, and a word if it is significant."""
    if one is None:
        return "–"
    word = "" if one["verdict"] == "even" else f" **{one['verdict']}**"
    return f"{one['wins']}/{one['losses']}/{one['ties']} {_p(one['p'])}{word}"


def _reach(table: Table) -> str:
    reach = table["reach"]
    if not reach["problems"]:
        return ""
    rows = [
        [
            name,
            one["peer"],
            number(one["target"], 5),
            _trials(one["trials"]),
            f"{one['share']:.0%}",
            _trials(one["exact"]),
        ]
        for name, one in reach["problems"].items()
    ]
    head = ["problem", "best peer", "its final median", "trials needed (median)", "runs that do",
            "to the last digit"]  # fmt: skip
    median = f"**{_trials(reach['median'])}**, to the last digit {_trials(reach['median_exact'])}"
    title = f"## Trials that {table['methods'][0]} needs for the best peer's final value"
    return f"{title}\n\nMedian over the problems: {median}.\n\n{grid(head, rows)}"


def _optimum(table: Table) -> str:
    rows = []
    for name, found in table["optimum"].items():
        ones = {method: found[method] for method in table["methods"] if method in found}
        is_reached = any(one["share_optimum"] > 0 for one in ones.values())
        for method, one in ones.items():
            near = f"{_trials(one['trials_to_near'])} ({one['share_near']:.0%})"
            exact = _to_optimum(one) if is_reached else "–"
            right = f"{one['right_subspace']:.0%}"
            log10, at = number(one["median_log10"]), str(found["at"])
            rows.append([name, method, near, exact, right, log10, at])
    if not rows:
        return ""
    head = ["problem", "method", "trials to regret 0.01 (runs that do)",
            "trials to the optimum: median, mean (runs that do)", "in the best subspace",
            "median log10 regret", "at trial"]  # fmt: skip
    what = (
        "On the way to the optimum itself, a run that never gets there counts as its number of "
        "trials plus one; – where no run does."
    )
    return f"## Known optima\n\n{what}\n\n{grid(head, rows)}"


def _to_optimum(one: Table) -> str:
    median, mean = one["trials_to_optimum"], one["mean_trials_to_optimum"]
    return f"{median:g}, {mean:.1f} ({one['share_optimum']:.0%})"


def _regrets(table: Table) -> str:
    parts = ["## Regret"]
    for name, methods in table["regret"].items():
        info = table["problems"][name]
        is_log = info["is_optimum"]
        kind = "log10 of the regret" if is_log else "regret, 0 is the best value found"
        what = f"{kind}; 1 is {info['reference']}" if not is_log else kind
        checkpoints = list(next(iter(methods.values())))
        best = {
            at: _least(one[at]["log10" if is_log else "regret"]["mean"] for one in methods.values())
            for at in checkpoints
        }
        rows = []
        for method, found in methods.items():
            ones = [(at, found[at]["log10" if is_log else "regret"]) for at in checkpoints]
            cells = [f"{bold(o['mean'], best[at], 3)} [{number(o['low'])}, {number(o['high'])}]"
                     for at, o in ones]  # fmt: skip
            rows.append([method, *cells])
        half = f"group {info['group']}, {info['half']} half"
        if info["is_returned"]:
            half += "; true values of the configs that the methods return"
        parts.append(f"### {name}\n\n{half}; {what}\n\n{grid(['', *checkpoints], rows)}")
    return "\n\n".join(parts)


def _chosen(table: Table) -> str:
    if not table["chosen"]:
        return ""
    rows = [
        [name, *[_interval(found.get(method)) for method in table["methods"]]]
        for name, found in table["chosen"].items()
    ]
    what = "True regret at the end of the config that was measured best: what a user would take."
    return f"## With noise\n\n{what}\n\n{grid(['', *table['methods']], rows)}"


_RETURNED = {
    "returned": "returned",
    "observed": "best value",
    "tried": "best tried",
}


def _returned(table: Table) -> str:
    if not table["returned"]:
        return ""
    rows = [
        [f"{name}, {words}", *[_interval(found[m][kind] if m in found else None)
                               for m in table["methods"]]]
        for name, found in table["returned"].items()
        for kind, words in _RETURNED.items()
    ]  # fmt: skip
    what = (
        "True regret at the end of the config that the method returned, by which it is scored, of "
        "the one with the best (noisy) value, and of the best one that it tried, where that is "
        "known."
    )
    return f"## Returned configs\n\n{what}\n\n{grid(['', *table['methods']], rows)}"


def _costs(table: Table) -> str:
    parts = ["## Processor seconds per suggested config (median / 95th percentile)"]
    for scope, found in table["cost"].items():
        marks = list(dict.fromkeys(mark for one in found.values() for mark in one))
        marks.sort(key=int)
        if scope.startswith("half") or not marks:
            continue
        rows = [
            [method, *[_cost(one.get(mark)) for mark in marks]]
            for method, one in found.items()
            if one
        ]
        parts.append(f"{scope}, around n observations:\n\n{grid(['', *marks], rows)}")
    return "\n\n".join(parts)


def _methods(table: Table) -> str:
    rows = [
        [method, f"{table['fallbacks'][method]:.1%}", ", ".join(table["versions"][method])]
        for method in table["methods"]
    ]
    return f"## Methods\n\n{grid(['method', 'fallbacks', 'version'], rows)}"


def _summary(table: Table) -> str:
    """Summary of the first method against the best of the others, in three lines."""
    first, *peers = table["methods"]
    overall = table["ranks"].get("overall", {})
    if not peers or not overall:
        return ""
    lines = ["## In short", ""]
    for at, one in overall.items():
        others = {m: rank for m, rank in one["mean"].items() if m != first}
        if first in one["mean"] and others:
            best = min(others, key=lambda method: others[method])
            mine, theirs = one["mean"][first], others[best]
            word = "lowest" if mine < theirs else "not the lowest"
            numbers = f"{first} {mine:.2f}, best peer {best} {theirs:.2f}"
            lines.append(f"- Mean rank overall at {at} trials is {word}: {numbers}.")
    behind = [
        f"{peer} ({scope}, {at} trials)"
        for scope, found in table["tests"].items()
        for at, tested in found.items()
        for peer, one in tested.items()
        if one["verdict"] == "behind"
    ]
    lines.append(f"- {first} is significantly behind: {', '.join(behind) or 'none'}.")
    needed = table["reach"]["median"]
    when = "not reached" if needed is None else f"reached after {needed:g} trials"
    exact = _trials(table["reach"]["median_exact"])
    lines.append(
        f"- In the median over the problems, the best peer's final value is {when}, ties as in the "
        f"ranks (to the last digit: {exact})."
    )
    return "\n".join(lines)


def _span(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def bold(value: float | None, best: float | None, digits: int) -> str:
    """A number, bold if it is the best."""
    text = number(value, digits + 1)
    is_best = value is not None and best is not None and value <= best + 1e-9
    return f"**{text}**" if is_best else text


def _interval(one: Table | None) -> str:
    return (
        "–"
        if one is None
        else f"{number(one['mean'])} [{number(one['low'])}, {number(one['high'])}]"
    )


def _cost(one: Table | None) -> str:
    return "–" if one is None else f"{one['median']:.3f} / {one['p95']:.3f}"


def _trials(value: float | None) -> str:
    return "never" if value is None else f"{value:g}"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def summary_rows(table: Table) -> Iterator[list[str]]:
    """Overall ranks for the terminal: method, then one cell per checkpoint."""
    found = table["ranks"].get("overall", {})
    for method in table["methods"]:
        yield [method, *[number(one["mean"].get(method), 3) for one in found.values()]]
