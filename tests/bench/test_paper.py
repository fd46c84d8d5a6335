"""Claims of the paper, tested on synthetic cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.bench.attention_maps import draw_maps, map_shares
from nasbo.bench.claims import Claim
from nasbo.bench.paper import best_by_iteration, check_claims, write_paper
from nasbo.bench.results import load_results
from nasbo.bench.suites import (
    NAS,
    NO_EMBEDDING,
    PAPER_METHOD,
    PAPER_PEERS,
    PAPER_SETS,
    TOKEN_POOLING,
)
from nasbo.history import Trial
from nasbo.report.attention import AttentionMap
from nasbo.space import load_space
from tests.bench.records import record, write_cells


def cells(problem: str, finals: dict[str, float], n_seeds: int = 6) -> list[dict[str, Any]]:
    """Cells that end at a method's value, a little worse with each seed."""
    return [
        record((problem, method, seed), [9.0, 8.0, 7.0, value + 0.01 * seed])
        for method, value in finals.items()
        for seed in range(n_seeds)
    ]


def claims_of(tmp_path: Path, records: list[dict[str, Any]]) -> dict[tuple[str, str], Claim]:
    write_cells(tmp_path, records)
    found = check_claims(load_results(tmp_path), [])
    return {(claim.text, claim.method): claim for claim in found}


PEERS = {peer: 3.0 + index for index, peer in enumerate(PAPER_PEERS)}


def test_the_simulation_is_won_or_lost(tmp_path: Path) -> None:
    finals = PEERS | {"attnbo": 1.0, PAPER_METHOD: 3.5}
    found = claims_of(tmp_path, cells("jenatton_small", finals))
    assert found["best on the simulation", "attnbo"].verdict == "holds"
    lost = found["best on the simulation", PAPER_METHOD]
    assert lost.verdict == "does not hold"
    assert lost.numbers.startswith("mean rank at the end: bandits 1.00, ")
    assert found["best mean rank over the six sets, svm space", "attnbo"].verdict == "not run"


def test_ablations_and_spaces(tmp_path: Path) -> None:
    records = []
    for data in PAPER_SETS:
        variants = {PAPER_METHOD: 2.0, NO_EMBEDDING: 2.5, TOKEN_POOLING: 1.0}
        records += cells(f"svm_{data}", PEERS | variants | {"attnbo": 1.0})
    found = claims_of(tmp_path, records)
    structure = found["structure-aware embedding ahead of none, svm space", PAPER_METHOD]
    assert (structure.verdict, structure.numbers[:25]) == (
        "holds",
        "better/worse/tie 36/0/0, p"[:25],
    )
    pooling = found["mean pooling ahead of token pooling, svm space", PAPER_METHOD]
    assert pooling.verdict == "does not hold"
    assert found["ahead of Add-Tree", "attnbo"].verdict == "holds"
    assert found["structure-aware embedding ahead of none, cash space", PAPER_METHOD].verdict == (
        "not run"
    )


def test_iterations_count_a_batch_as_one(tmp_path: Path) -> None:
    batch = record((NAS, "attnbo@subspaces", 0), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0])
    batch["rounds"] = [[2, 2, 1.0], [4, 2, 1.0]]
    single = record((NAS, "addtree", 0), [9.0, 8.0, 7.5, 6.5, 3.0, 2.0])
    random = record((NAS, "random@subspaces", 0), [9.0, 8.0, 7.0, 6.6, 6.0, 5.5])
    random["rounds"] = [[2, 2, 1.0], [4, 2, 1.0]]
    write_cells(tmp_path, [batch, single, random])
    results = load_results(tmp_path)
    assert best_by_iteration(results, NAS, "attnbo@subspaces") == [8.0, 6.0, 4.0]
    assert best_by_iteration(results, NAS, "addtree") == [8.0, 7.5, 6.5, 3.0, 2.0]
    found = {claim.text: claim for claim in check_claims(results, [])}
    assert found["best at each BO iteration on the NAS space"].verdict == "holds"
    text = "random in batches ahead of Add-Tree, one config at a time"
    assert found[text].verdict == "holds"


def test_attention_is_shared_out_by_block() -> None:
    labels = ("op[1]", "op[2]", "op[3]", "op[4]", "learning_rate", "batch_size")
    weights = np.tile([0.2, 0.2, 0.2, 0.1, 0.15, 0.15], (6, 1)).tolist()
    one = map_shares(3, AttentionMap(Trial(0, {}, 0, "model"), labels, weights, True))
    assert one.early_blocks == pytest.approx(0.2)
    assert one.last_block == pytest.approx(0.1)
    assert one.optimisation == pytest.approx(0.15)
    assert one.mean == pytest.approx(1 / 6)
    assert [claim.verdict for claim in check_claims_of_maps([one])] == ["holds", "does not hold"]


def check_claims_of_maps(shares: list[Any]) -> list[Claim]:
    from nasbo.bench.results import Results

    return [claim for claim in check_claims(Results((), {}, {}), shares) if claim.figure == "12"]


def test_figures_and_claims_are_written(tmp_path: Path) -> None:
    finals = PEERS | {"attnbo": 1.0, PAPER_METHOD: 3.5, NO_EMBEDDING: 4.0}
    write_cells(tmp_path, cells("jenatton_small", finals, 2) + cells("svm_blood", finals, 2))
    text = write_paper(tmp_path)
    assert text == (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "**holds**" in text
    plain = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert {claim["verdict"] for claim in plain} >= {"holds", "not run"}
    drawn = {path.name for path in tmp_path.glob("figure_*.png")}
    assert drawn == {"figure_03.png", "figure_04.png", "figure_13_14.png", "figure_15.png"}


@pytest.mark.slow
def test_attention_maps_of_two_searches(tmp_path: Path) -> None:
    space, records = load_space("nas_cifar10"), []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        configs = [space.sample(rng) for _ in range(10)] + [space.subspace(0).sample_config(rng)]
        made = record((NAS, "attnbo@subspaces", seed), rng.random(11).tolist())
        made["configs"] = configs
        made["subspaces"] = [space.subspace_of(config).index for config in configs]
        records.append(made)
    write_cells(tmp_path, records)
    shares = draw_maps(load_results(tmp_path), tmp_path / "maps.png")
    assert [one.seed for one in shares] == [0, 1]
    assert all(0 < one.early_blocks < 1 for one in shares)
    assert (tmp_path / "maps.png").read_bytes()[:4] == b"\x89PNG"


def test_no_maps_are_drawn_of_published_cells_which_have_no_configs(tmp_path: Path) -> None:
    made = record((NAS, "attnbo@subspaces", 0), [0.5, 0.4])
    del made["configs"]
    write_cells(tmp_path, [made])
    assert draw_maps(load_results(tmp_path), tmp_path / "maps.png") == []
    assert not (tmp_path / "maps.png").exists()
