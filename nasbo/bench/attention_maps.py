"""Attention maps of the paper's encoder on the NAS space (figure 12 of the AttnBO paper).

The deep kernel of the paper is trained on the results of a search, once for each of two seeds. The
map is that of its first block, for the best network of four blocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nasbo.bench.figures import save
from nasbo.bench.lookup import find_entry
from nasbo.bench.results import Results, Run
from nasbo.bench.suites import NAS, NAS_METHODS
from nasbo.report.attention import AttentionMap, attention_maps
from nasbo.search import Search

N_SEEDS = 2
N_BLOCKS = 4
OPTIMISATION = ("batch_size", "learning_rate")


@dataclass(frozen=True)
class Shares:
    """Attention that tokens receive, averaged over the attending tokens; 1 / n if uniform.

    Attributes:
        early_blocks: mean over the tokens of the first three blocks.
        last_block: of the fourth.
        optimisation: of batch size and learning rate.
        mean: of all tokens.
    """

    seed: int
    early_blocks: float
    last_block: float
    optimisation: float
    mean: float


def draw_maps(results: Results, path: Path) -> list[Shares]:
    """Draw the maps of the first seeds side by side; empty if there are no NAS cells.

    Published cells have no configs, so no maps can be drawn from them.
    """
    runs = [run for run in results.of(NAS, NAS_METHODS[0]) if "configs" in run.record][:N_SEEDS]
    maps = [(run.seed, one) for run in runs if (one := _map_of(run)) is not None]
    if not maps:
        return []
    _draw(maps, path)
    return [map_shares(seed, one) for seed, one in maps]


def map_shares(seed: int, one: AttentionMap) -> Shares:
    """Shares of attention that the tokens of a map receive."""
    received = np.mean(np.array(one.weights), axis=0)
    matches = [re.fullmatch(r".*\[(\d+)\]", label) for label in one.labels]
    blocks = np.array([int(match[1]) if match else 0 for match in matches])
    is_setting = np.array([label in OPTIMISATION for label in one.labels])
    return Shares(
        seed,
        float(received[(blocks >= 1) & (blocks < N_BLOCKS)].mean()),
        float(received[blocks == N_BLOCKS].mean()),
        float(received[is_setting].mean()),
        float(received.mean()),
    )


def _map_of(run: Run) -> AttentionMap | None:
    search = Search(find_entry(run.problem).make().space, "random", seed=run.seed)
    for config, value in zip(run.record["configs"], run.record["values"], strict=True):
        if value is not None:
            search.observe(config, value)
    n = search.space.n_subspaces
    maps = attention_maps(search.history, "attnbo", {"preset": "paper"}, run.seed, n)
    wanted = (one for one in maps if one.trial and one.trial.config.get("nums_block") == N_BLOCKS)
    return next(wanted, None)


def _draw(maps: list[tuple[int, AttentionMap]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(8.0 * len(maps), 8.6), layout="constrained")
    FigureCanvasAgg(figure)
    for number, (seed, one) in enumerate(maps, start=1):
        axes = figure.add_subplot(1, len(maps), number)
        axes.imshow(one.weights, cmap="Blues")
        ticks = range(len(one.labels))
        axes.set_xticks(ticks, one.labels, rotation=90, fontsize=6)
        axes.set_yticks(ticks, one.labels, fontsize=6)
        axes.set_title(f"seed {seed}: row i attends to column j")
    save(figure, path)
