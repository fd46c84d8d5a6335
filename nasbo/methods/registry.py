"""Registry of methods by name. Their modules are imported on demand."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nasbo.errors import NasboError, shorten
from nasbo.methods.base import Method
from nasbo.space import Space

logger = logging.getLogger(__name__)

PLUGIN_GROUP = "nasbo.methods"
"""Entry points of this group, in any installed package, are methods: ``name = module:Class``."""


@dataclass(frozen=True)
class Entry:
    """Import path, one-line summary and source of a method."""

    path: str
    summary: str
    source: str


METHODS: dict[str, Entry] = {
    "addtree": Entry(
        "nasbo.methods.addtree:AddTree",
        "one GP with a kernel per vertex of the tree, summed along the paths; UCB or log-EI",
        "Ma and Blaschko, AISTATS 2020",
    ),
    "arc": Entry(
        "nasbo.methods.arc:Arc",
        "one GP with the arc kernel: inactive parameters at the centre of a cylinder; log-EI",
        "Swersky et al., Raiders of the Lost Architecture, 2014",
    ),
    "attnbo": Entry(
        "nasbo.methods.attnbo:AttnBO",
        "one GP over all subspaces with attention between their units, log-EI in each of them",
        "Modeling All Response Surfaces in One for Conditional Search Spaces, AAAI 2025",
    ),
    "bananas": Entry(
        "nasbo.methods.bananas:Bananas",
        "an ensemble of neural networks, Thompson sampling among mutations of the best configs",
        "White et al., BANANAS, AAAI 2021",
    ),
    "bandits": Entry(
        "nasbo.methods.bandits:BanditsBO",
        "one GP per subspace, hyperparameters by slice sampling, Thompson sampling over subspaces",
        "Nguyen et al., AAAI 2020; appendix B.2 of the AttnBO paper",
    ),
    "casmopolitan": Entry(
        "nasbo.methods.casmopolitan:Casmopolitan",
        "overlap and Matérn kernels, trust regions around the best config, UCB restarts",
        "Wan et al., Think Global and Act Local, ICML 2021",
    ),
    "evolution": Entry(
        "nasbo.methods.evolution:Evolution",
        "regularised evolution: the best of a random tournament is mutated, the oldest die",
        "Real et al., AAAI 2019; appendix B.1 of the OptFormer paper",
    ),
    "gp": Entry(
        "nasbo.methods.gp:FlatGP",
        "one GP on the one-hot, imputed vector, log-EI: blind to the structure",
        "baseline of Jenatton et al., ICML 2017",
    ),
    "independent": Entry(
        "nasbo.methods.independent:Independent",
        "one GP per subspace, log-EI, the best over all subspaces: no sharing",
        "baseline of Jenatton et al., ICML 2017, and of Ma and Blaschko, AISTATS 2020",
    ),
    "local": Entry(
        "nasbo.methods.local:LocalSearch",
        "local search: neighbours by one change, a random restart at each local optimum",
        "White et al., UAI 2021",
    ),
    "random": Entry(
        "nasbo.methods.random:RandomSearch",
        "uniform over the subspaces, then uniform inside",
        "Bergstra and Bengio, JMLR 2012",
    ),
    "smac": Entry(
        "nasbo.methods.smac:Smac",
        "random forest and EI, through the package smac",
        "Hutter et al., LION 2011; Lindauer et al., JMLR 2022",
    ),
    "tpe": Entry(
        "nasbo.methods.tpe:Tpe",
        "tree-structured Parzen estimators, through the package optuna",
        "Bergstra et al., NeurIPS 2011",
    ),
    "tree": Entry(
        "nasbo.methods.tree:Tree",
        "a GP per leaf, tied by a linear model of the path; two-step EI",
        "Jenatton et al., ICML 2017",
    ),
}


def known_methods() -> dict[str, Entry]:
    """nasbo's methods and those of other packages' entry points.

    A name of nasbo cannot be overridden by another package.
    """
    methods = dict(METHODS)
    for point in importlib.metadata.entry_points(group=PLUGIN_GROUP):
        if point.name in METHODS:
            logger.warning("method %r of %r is left out: nasbo has one", point.name, point.value)
            continue
        package = point.dist.name if point.dist is not None else "another package"
        methods[point.name] = Entry(point.value, "", f"package {package}")
    return methods


def make_method(name: str, space: Space, seed: int = 0, **options: Any) -> Method:
    """Build a method.

    Args:
        name: a key of ``known_methods()``, or ``module:Class`` for a custom method.
        space: what it searches.
        seed: of its random numbers.
        options: its own settings.

    Raises:
        NasboError: an unknown name or option; the message lists the known ones.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise NasboError(f"seed must be an integer >= 0, got {seed!r}")
    build = check_method_options(name, options)
    method = build(space, seed, **options)
    if not isinstance(method, Method):
        raise NasboError(f"{name!r} must make a Method, got {shorten(method)}")
    return method


def check_method_options(name: str, options: Mapping[str, Any]) -> Any:
    """The class of a method, after a check of its options.

    Raises:
        NasboError: an unknown name or option; the message lists the known ones.
    """
    build = _find(_path(name))
    known = method_options(build)
    if unknown := [option for option in options if option not in known]:
        listed = ", ".join(known) or "none"
        raise NasboError(f"{name!r} has no option {unknown[0]!r}; known: {listed}")
    return build


def describe_method(name: str) -> tuple[Entry, Mapping[str, Any]]:
    """A method's entry and options, for lists of methods.

    A plug-in is described by the first line of its class' docstring, or by the error on import.
    """
    entry = known_methods()[name]
    try:
        build = _find(entry.path)
    except NasboError as error:
        return replace(entry, summary=f"cannot be loaded: {error}"), {}
    first = (inspect.getdoc(build) or "no description").partition("\n")[0]
    return replace(entry, summary=entry.summary or first), method_options(build)


def method_options(build: Any) -> dict[str, Any]:
    """Options of a method's class with their defaults, from its signature."""
    parameters = inspect.signature(build).parameters
    return {n: p.default for n, p in parameters.items() if n not in ("space", "seed")}


def _path(name: str) -> str:
    if name in METHODS:  # the usual case does not look at the installed packages
        return METHODS[name].path
    if ":" in name:
        return name
    methods = known_methods()
    if name not in methods:
        raise NasboError(f"unknown method {name!r}; known: {', '.join(sorted(methods))}")
    return methods[name].path


def _find(path: str) -> Any:
    """The class at ``module:Class``, or the function that makes a method as a class would."""
    module, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise NasboError(f"a method of one's own must be module:Class, got {path!r}")
    try:
        build = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a foreign module may raise anything
        raise NasboError(f"no method {path!r}: {error}") from error
    try:
        inspect.signature(build).bind_partial("space", 0)
    except (TypeError, ValueError) as error:
        raise NasboError(f"no method {path!r}: it must take (space, seed): {error}") from error
    return build
