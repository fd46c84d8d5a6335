"""Registry of benchmark suites by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nasbo.bench.cell import Protocol
from nasbo.bench.curves.cell import CurveProtocol
from nasbo.bench.plan import Part
from nasbo.bench.spec import parse_method
from nasbo.errors import NasboError

PEER_METHODS = (
    "gp", "hierarchical", "addtree", "independent", "smac", "tpe", "tpe-group", "hyperopt",
    "random",
)  # fmt: skip
ALL_METHODS = ("attnbo", *PEER_METHODS)

JENATTON = (
    "jenatton_small", "jenatton_small_shifted", "jenatton_large", "jenatton_large_shifted",
)  # fmt: skip
PAPER_SETS = ("blood", "diabetes", "steel", "wdbc", "banknote", "monks3")
"""The six OpenML tasks of the AttnBO paper. The other sets are harder
and chosen by this project."""
PAPER_SPACES = ("svm", "xgboost", "cash")
PAPER_METHOD = "attnbo[preset=paper]@subspaces"
"""The paper's model as written: one config per subspace and fit, as in its algorithm 1."""
PAPER_PEERS = ("bandits", "addtree", "smac", "hyperopt", "random")
NO_EMBEDDING = "attnbo[preset=paper,embedding=none]@subspaces"
TOKEN_POOLING = "attnbo[preset=paper,pooling=token]@subspaces"
NAS = "cifar10_proxy"
NAS_METHODS = ("attnbo@subspaces", "attnbo", "addtree", "bandits@subspaces", "random@subspaces",
               "tpe@subspaces", "tpe")  # fmt: skip
NOISY = (
    "nas_proxy", "nas_proxy_other", "nasbench201_cifar10_noisy", "nasbench201_cifar100_noisy",
    "cash_log_diabetes_noisy", "cash_log_steel_noisy", "pipeline_diabetes_noisy",
    "pipeline_monks2_noisy", "jenatton_small_shifted_noisy", "jenatton_large_shifted_noisy",
    "blocks_noisy", "share_noisy",
)  # fmt: skip
"""Each problem of the tuning half is followed by a held-out one."""
NOISY_METHODS = ("attnbo", "gp", "addtree", "tpe", "smac", "evolution", "random")

NAS_TABLES = ("nasbench201_cifar10", "nasbench201_cifar100", "nasbench201_imagenet")
"""Each value is that of one training run."""
NAS_MEANS = tuple(f"{name}_mean" for name in NAS_TABLES)
NAS_POOLS = ("accel_nasbench", "nasbench_graph_cora", "nas_proxy")
NAS_LIGHT_METHODS = ("attnbo", "local", "evolution", "random")
NAS_PEERS = ("gp", "tpe", "bananas[refit_every=10]")
SLOW_NAS_PEERS = ("smac",)
ALL_NAS_METHODS = (*NAS_LIGHT_METHODS, *NAS_PEERS, *SLOW_NAS_PEERS)
HARDWARE = ("hw_cifar10_params", "hw_cifar10_raspi4", "hw_cifar10_edgegpu")

CURVES = (
    "taskset_gru64", "taskset_lstm128", "taskset_irnn64", "mlp_epochs_diabetes",
    "mlp_epochs_monks1", "taskset_gru128", "taskset_lstm128_embed", "taskset_vrnn64",
    "mlp_epochs_steel", "mlp_epochs_monks2",
    "taskset_gru64_noisy", "taskset_gru128_noisy", "mlp_epochs_diabetes_noisy",
    "mlp_epochs_steel_noisy",
    "taskset_lstm128_lying", "taskset_lstm128_embed_lying", "mlp_epochs_diabetes_lying",
    "mlp_epochs_steel_lying",
)  # fmt: skip
"""Flat and conditional problems: without noise, with noise, and with misleading early values."""
CURVE_METHODS = (
    "attnbo+rungs", "attnbo", "attnbo+asha", "random", "random+rungs", "random+asha",
    "random+screen", "tpe", "tpe+rungs", "tpe+asha",
)  # fmt: skip
CURVE_PEERS = ("optuna+sh",)
SLOW_CURVE_PEERS = ("smac+mf", "dehb+hb")
"""Both are run by their own packages, on one worker."""
CURVES_OF_16 = ("taskset_gru128", "mlp_epochs_steel", "mlp_epochs_steel_noisy")
CURVES_OF_64 = ("taskset_gru128", "mlp_epochs_steel")


@dataclass(frozen=True)
class Suite:
    """A named benchmark.

    Attributes:
        summary: one line.
        parts: what is run.
        claims: papers whose claims are checked with the cells: ``attnbo`` (with figures) or
            ``trees``.
    """

    summary: str
    parts: tuple[Part, ...]
    claims: Literal["", "attnbo", "trees"] = ""


def _paper_problems(*spaces: str) -> tuple[str, ...]:
    return tuple(f"{space}_{data}" for space in spaces for data in PAPER_SETS)


SUITES: dict[str, Suite] = {
    "quick": Suite(
        "the strongest peers on five problems, 3 seeds × 40 trials: about 15 minutes on 2 cores",
        (
            Part(
                ("jenatton_small_shifted", "jenatton_large", "share", "blocks", "cash_log_steel"),
                ("attnbo", "gp", "hierarchical", "addtree", "smac", "tpe-group", "random"),
                3,
                Protocol(trials=40),
            ),
        ),
    ),
    "full": Suite(
        "all peers on twelve problems, 5 seeds (10 on Jenatton's) × 80 trials: a few hours",
        (
            Part(JENATTON, ALL_METHODS, 10),
            Part(
                ("share", "noshare", "blocks", "tree_many", "cash_log_diabetes",
                 "cash_log_steel", "pipeline_diabetes", "pipeline_monks2"),
                ALL_METHODS,
                5,
            ),
        ),
    ),
    "jenatton": Suite(
        "what the papers of the tree GPs claim: Jenatton's functions, shared and not, 10 seeds",
        (
            Part(
                ("jenatton_small", "jenatton_large",
                 "jenatton_small_unshared", "jenatton_large_unshared"),
                ("tree", "addtree", "independent", "arc", "gp", "smac", "attnbo", "random"),
                10,
            ),
        ),
        claims="trees",
    ),
    "ablation": Suite(
        "what the parts of attnbo are worth, where branches agree and where not, 5 seeds",
        (
            Part(
                ("share", "noshare", "blocks", "jenatton_large_shifted"),
                ("attnbo", "attnbo[attention=off]", PAPER_METHOD),
                5,
            ),
        ),
    ),
    "attnbo-paper": Suite(
        "the figures of the AttnBO paper and which of its claims hold: days on 2 cores",
        (
            Part(("jenatton_small",), ("attnbo", PAPER_METHOD, *PAPER_PEERS), 10),
            Part(_paper_problems(*PAPER_SPACES), ("attnbo", PAPER_METHOD, *PAPER_PEERS), 3),
            Part(_paper_problems(*PAPER_SPACES), (NO_EMBEDDING, TOKEN_POOLING), 3),
            Part((NAS,), NAS_METHODS, 3, Protocol(trials=40)),
        ),
        claims="attnbo",
    ),
    "noisy": Suite(
        "how good what a method returns truly is where values are noisy, 12 problems × 5 seeds",
        (Part(NOISY, NOISY_METHODS, 5),),
    ),
    "nas": Suite(
        "networks: trials to the best cell of NAS-Bench-201 (300 trials, 100 seeds; 20 of the "
        "slower methods), then its noisy values, pools and a surrogate, and real training",
        (
            Part(NAS_MEANS, NAS_LIGHT_METHODS, 100, Protocol(trials=300)),
            Part(NAS_MEANS, NAS_PEERS, 20, Protocol(trials=300)),
            Part(NAS_MEANS, SLOW_NAS_PEERS, 10, Protocol(trials=150)),
            Part((*NAS_TABLES, *NAS_POOLS), ALL_NAS_METHODS, 20, Protocol(trials=200)),
            Part((NAS,), ALL_NAS_METHODS, 3, Protocol(trials=40)),
        ),
    ),
    "curves": Suite(
        "regret by cost, where trials can be trained in part: 18 problems × 5 seeds, 1 worker "
        "(3 seeds of SMAC and DEHB); then 3 on 16 and 2 on 64 workers × 3 seeds",
        (
            Part(CURVES, (*CURVE_METHODS, *CURVE_PEERS), 5, CurveProtocol()),
            Part(CURVES, SLOW_CURVE_PEERS, 3, CurveProtocol()),
            Part(CURVES_OF_16, CURVE_METHODS, 3, CurveProtocol(40, workers=16)),
            Part(CURVES_OF_64, CURVE_METHODS, 3, CurveProtocol(100, workers=64)),
        ),
    ),
    "hardware": Suite(
        "share of the hypervolume of error and cost on a device, 3 problems × 20 seeds: 15 minutes",
        (Part(HARDWARE, ("attnbo", "evolution", "random"), 20, Protocol(trials=90)),),
    ),
    "casmopolitan": Suite(
        "choices and numbers mixed, 200 evaluations, 5 seeds",
        (
            Part(
                ("func2c", "func3c", "ackley53", "pest_control"),
                ("casmopolitan", "attnbo", "tpe", "random"),
                5,
                Protocol(trials=180, design=20),
            ),
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Changes:
    """A user's changes to a suite; ``None`` and empty fields leave it as it is.

    Attributes:
        problems: run only these.
        methods: run these on every problem instead of the suite's own.
        workers: keep the parts with this number of workers, if trials are trained in part.
    """

    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: int | None = None
    trials: int | None = None
    batch: int | None = None
    design: int | None = None
    workers: int | None = None


def suite_parts(name: str, changes: Changes) -> list[Part]:
    """The parts of a suite, with a user's changes.

    Raises:
        NasboError: no such suite, or a problem that it does not have.
    """
    if name not in SUITES:
        raise NasboError(f"suite must be one of {', '.join(sorted(SUITES))}, got {name!r}")
    parts = SUITES[name].parts
    known = {problem for part in parts for problem in part.problems}
    if strangers := [problem for problem in changes.problems if problem not in known]:
        listed = ", ".join(sorted(known))
        raise NasboError(f"suite {name!r} has no problem {strangers[0]!r}; it has {listed}")
    if changes.workers is not None:
        parts = _with_workers(name, changes.workers)
    changed = [changed_part(part, changes) for part in parts]
    return [part for part in changed if part.problems]


def _with_workers(name: str, workers: int) -> tuple[Part, ...]:
    """The parts of a suite by cost with a given number of workers."""
    parts, protocols = SUITES[name].parts, [part.protocol for part in SUITES[name].parts]
    known = dict.fromkeys(one.workers for one in protocols if isinstance(one, CurveProtocol))
    if workers not in known:
        listed = ", ".join(map(str, known)) or "none: its trials are not trained in part"
        raise NasboError(f"workers of suite {name!r} must be one of {listed}; got {workers}")
    kept = zip(parts, protocols, strict=True)
    return tuple(p for p, how in kept if isinstance(how, CurveProtocol) and how.workers == workers)


def changed_part(part: Part, changes: Changes) -> Part:
    """One part with a user's changes."""
    problems = part.problems
    if changes.problems:
        problems = tuple(problem for problem in problems if problem in changes.problems)
    return Part(
        problems,
        changes.methods or part.methods,
        changes.seeds or part.seeds,
        _changed_protocol(part.protocol, changes),
    )


def _changed_protocol(
    protocol: Protocol | CurveProtocol, changes: Changes
) -> Protocol | CurveProtocol:
    wanted = {"trials": changes.trials, "batch": changes.batch, "design": changes.design}
    given = {name: value for name, value in wanted.items() if value is not None}
    if isinstance(protocol, Protocol):
        return replace(protocol, **given)
    if refused := given.keys() - {"trials"}:
        raise NasboError(f"by cost there is no {min(refused)}: free workers are the batch")
    return protocol if changes.trials is None else replace(protocol, budget=changes.trials)


def own_parts(problems: Sequence[str], methods: Sequence[str], changes: Changes) -> list[Part]:
    """The single part of a benchmark without a suite."""
    labels = tuple(parse_method(method).label for method in methods)
    part = Part(tuple(problems), labels, changes.seeds or 10)
    return [changed_part(part, replace(changes, problems=(), methods=()))]
