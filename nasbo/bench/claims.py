"""Claims of papers about methods, checked against benchmark results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from nasbo.bench.markdown import grid
from nasbo.bench.regret import regret_pairs, yardsticks
from nasbo.bench.results import Results
from nasbo.bench.statistics import Comparison, compare


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and whether the cells confirm it.

    Attributes:
        figure: where the paper makes the claim.
        verdict: ``holds``, ``does not hold``, ``undecided`` or ``not run``.
        numbers: the evidence for the verdict.
    """

    figure: str
    text: str
    method: str
    verdict: str
    numbers: str


def write_claims(out: Path, title: str, claims: Sequence[Claim]) -> str:
    """Write ``claims.md`` and ``claims.json`` into ``out``; returns the text."""
    rows = [[c.figure, c.text, c.method, f"**{c.verdict}**", c.numbers] for c in claims]
    table = grid(["where", "the paper says", "method", "here", "numbers"], rows)
    text = f"# {title}\n\n{table}\n"
    (out / "claims.md").write_text(text, encoding="utf-8")
    plain = json.dumps([asdict(claim) for claim in claims], indent=1)
    (out / "claims.json").write_text(plain, encoding="utf-8")
    return text


def only(results: Results, problems: Sequence[str], methods: Sequence[str]) -> Results | None:
    """The part of the results in which all of the methods were run on all of the problems."""
    known = {name: results.problems[name] for name in problems if name in results.problems}
    present = [m for m in methods if all(m in results.contestants(name) for name in known)]
    if not known or len(present) < 2:
        return None
    runs = {key: run for key, run in results.runs.items() if key[0] in known and key[1] in present}
    return Results(tuple(present), known, runs)


def is_ahead(
    results: Results,
    said: tuple[str, str],
    pair: tuple[str, str],
    problems: Sequence[str],
    at: int | None = None,
) -> Claim:
    """A claim that the first of two methods is better than the second, by Wilcoxon's test.

    Args:
        results: of all methods.
        said: where the claim is made, and its text.
        pair: the method of the claim, and the other one.
        problems: problems whose runs are pooled.
        at: number of trials after the design that is compared; the last if not given.
    """
    figure, text = said
    part = only(results, problems, pair)
    if part is None:
        return Claim(figure, text, pair[0], "not run", "")
    sticks, regrets = yardsticks(results), []  # the units of the tables
    for name, info in part.problems.items():
        pairs = regret_pairs(part, sticks, [name], min(at or info.trials, info.trials))
        regrets.append(pairs.regrets[:, :, -1])
    both = np.concatenate(regrets)
    found = compare(both[:, 0], both[:, 1])
    verdict = {"ahead": "holds", "behind": "does not hold", "even": "undecided"}[found.verdict]
    return Claim(figure, text, pair[0], verdict, counts(found))


def counts(found: Comparison) -> str:
    """A comparison as text."""
    return f"better/worse/tie {found.wins}/{found.losses}/{found.ties}, p = {found.p:.3f}"
