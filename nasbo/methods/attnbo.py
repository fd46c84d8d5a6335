"""AttnBO: one GP over all subspaces, with log-EI maximised in each of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

from numpy.random import Generator

from nasbo.acquisition import (
    ACQUISITIONS,
    MAX_VISITED_SUBSPACES,
    Acquisition,
    ByPromise,
    Chooser,
    Found,
    LogEI,
)
from nasbo.acquisition.hypervolume import LogEHVI
from nasbo.acquisition.starts import Starts
from nasbo.acquisition.wider import Wider
from nasbo.errors import NasboError
from nasbo.gp.encoder import EMBEDDINGS, POOLINGS, Embedding, EncoderShape, Pooling
from nasbo.gp.free_features import FreeFeatures
from nasbo.history import Trial, View
from nasbo.history.data import Data
from nasbo.history.front import front_ranks
from nasbo.methods.attention import token_maps, unit_maps
from nasbo.methods.base import Task
from nasbo.methods.explanation import AttentionMap
from nasbo.methods.modelled import NOTHING, SurrogateMethod, avoided
from nasbo.methods.options import check_choice, check_count
from nasbo.space import Space
from nasbo.surrogates.attention import AttentionGP, AttentionSettings, Training
from nasbo.surrogates.base import Surrogate
from nasbo.surrogates.curves import CurveGP
from nasbo.surrogates.several import SeveralSurrogates
from nasbo.surrogates.structured import MAX_ROWS, StructuredGP, largeness

PRESETS = ("default", "paper")
ATTENTION = ("on", "off")
PLACES = ("equal", "promise")
CURVES = ("last", "joint")
PATIENCE = 4
"""With ``places="promise"``, a subspace that had none of the last ``PATIENCE * n_subspaces`` trials
is guaranteed one. This is as many trials as four rounds of one config per subspace."""
DOUBT = 0.5
"""Probability of exploring with an inflated standard deviation once no config promises an
improvement. This and ``WIDER`` were chosen on the tuning half of the benchmark and on instances of
`share` and `noshare` with other seeds."""
WIDER = (2.0, 4.0, 8.0, 16.0)
"""Inflation factors of the standard deviation, tried in order until some config's
log-EI reaches ``NOTHING``."""
N_PROMISING = 4
MAX_EXPLAINED_ROWS_PAPER = 48
"""Rows that the deep kernel is trained on for an attention map, so that
it does not take minutes."""
N_STARTS, FULL_STARTS, MIN_STARTS = 96, 16, 12
"""Uniform starts per subspace, for up to ``FULL_STARTS`` subspaces; fewer where there are more."""


class AttnBO(SurrogateMethod):
    """Attention-based Bayesian optimisation over conditional spaces.

    One GP models all subspaces. log-EI is maximised in each of them (or in a sample, where there
    are many), and the best config of each subspace is suggested, best first. A GP with few results
    can be overconfident. So if no config of a batch promises an improvement, then with probability
    ``DOUBT`` the batch is chosen again under inflated standard deviations, by the smallest factor
    of ``WIDER`` under which some config does.

    Args:
        space: what to search.
        seed: of all random numbers.
        preset: ``default`` is a sum of structured kernels, with attention between units; ``paper``
            is the attention deep-kernel GP of the AttnBO paper, appendix B.1.
        learning_rate: of the paper preset's training: 0.001 (appendix B.1.3) if not given; section
            5 of the paper has 0.01.
        embedding: of the paper preset's tokens, ``structure`` or ``none`` (appendix E).
        pooling: over the paper preset's tokens, ``mean`` or ``token`` (appendix E).
        attention: of the default preset. ``on``: units (the parameters under one parent value,
            blocks of a network) attend to the others of their type; ``off``: each attends to itself
            alone, with the priors of units that have no others.
        acquisition: ``auto`` (log-EI) or a name of ``nasbo.acquisition.ACQUISITIONS``.
        places: how a batch is divided. ``equal``: one config per subspace, best first; ``promise``:
            one config after the other from the most promising subspace, and one from each subspace
            that has had none for long (``PATIENCE``).
        curves: of the default preset, with rungs: what is learned from configs that were trained in
            part. ``last``: the last value of each, as if it were its score; ``joint``: a model of
            learning curves, on the values of all rungs.
        max_rows: of the default preset: maximum number of results that the posterior is conditioned
            on; the time of a decision grows with its cube.
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        preset: str = "default",
        learning_rate: float | None = None,
        embedding: str = "structure",
        pooling: str = "mean",
        attention: str | bool = "on",
        acquisition: str = "auto",
        places: str = "equal",
        curves: str = "last",
        max_rows: int = MAX_ROWS,
    ) -> None:
        super().__init__(space, seed)
        attention = _switch(attention)
        check_choice("preset", preset, PRESETS)
        check_choice("embedding", embedding, EMBEDDINGS)
        check_choice("pooling", pooling, POOLINGS)
        check_choice("attention", attention, ATTENTION)
        check_choice("places", places, PLACES)
        check_choice("curves", curves, CURVES)
        check_count("max_rows", max_rows)
        self.preset, self.places = preset, places
        self.acquisition = _acquisition(space, acquisition)
        self._settings = AttentionSettings(
            EncoderShape(embedding=cast(Embedding, embedding), pooling=cast(Pooling, pooling)),
            Training(_learning_rate(learning_rate, preset)),
        )
        _check_parts(preset, attention, max_rows, curves, self._settings.shape)
        self._is_shared, self._max_rows = attention == "on", max_rows
        self._width = 1.0 if preset == "paper" else _width(space)
        self._model = CurveGP if curves == "joint" else StructuredGP
        self._structured: list[StructuredGP] = []
        self.uses_features = preset == "default"
        self.takes_several = preset == "default" and acquisition == "auto"
        self.has_attention = self._is_shared
        if preset == "paper":
            self.max_explained_rows = MAX_EXPLAINED_ROWS_PAPER
            self.finds_noise = False  # so short a training leaves it near where it began

    def make_surrogate(self, task: Task) -> Surrogate:
        if self.preset == "paper":
            return AttentionGP(self.space, self._settings, task.torch_seed)
        if task.front is None:
            return self._structured_at(0)
        columns = task.front.trained_columns
        return SeveralSurrogates([self._structured_at(k) for k in range(len(columns))], columns)

    def _structured_at(self, number: int) -> StructuredGP:
        """The structured GP of a trained objective, built once."""
        while len(self._structured) <= number:
            free = None if self.features is None else FreeFeatures(self.space, self.features)
            model = self._model(self.space, self._is_shared, self._max_rows, free)
            self._structured.append(model)
        return self._structured[number]

    def attention_maps(self, surrogate: Surrogate, history: View) -> tuple[list[AttentionMap], str]:
        if isinstance(surrogate, AttentionGP):
            return token_maps(surrogate, history), ""
        maps = unit_maps(surrogate) if isinstance(surrogate, StructuredGP) else []
        return maps, "" if maps else "the space has no two units of one type, which could attend"

    def make_acquisition(self) -> Acquisition:
        return ACQUISITIONS[self.acquisition]()

    def acquisition_for(self, task: Task) -> Acquisition:
        front = task.front
        if front is None:
            return self.make_acquisition()
        columns = (front.trained_columns, front.known_columns)
        return LogEHVI(front.worst, *columns, front.known_scores, self._width)

    def make_chooser(self, task: Task) -> Chooser:
        data = task.data if task.front is None else _by_front(task.data, task.rng)
        known = (self.space, data, task.rng, avoided(task), N_PROMISING, _starts)
        if self.places == "equal":
            return Chooser(*known)
        return ByPromise(*known, owed=_starved(self.space, task.suggested))

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        name = self.acquisition if task.front is None else acquisition.name
        info: dict[str, Any] = {"acquisition": name, "preset": self.preset}
        if self.places != "equal":
            info["places"] = self.places
        if not isinstance(acquisition, LogEI):
            return chooser.choose(acquisition, surrogate, task.n), info
        if self._width > 1.0:
            info["width"] = round(self._width, 2)
        found = chooser.choose(Wider(acquisition, self._width), surrogate, task.n)
        if not self._is_doubted(found, task):
            return found, info
        for factor in WIDER:
            wider = Wider(acquisition, factor * self._width)
            found = chooser.choose(wider, surrogate, task.n) or found
            if max(one.score for one in found) >= NOTHING:
                break
        reason = f"less sure by a factor of {factor:g}, as no improvement was expected"
        return found, info | {"reason": reason}

    def _is_doubted(self, found: list[Found], task: Task) -> bool:
        """Whether to explore: true with probability ``DOUBT`` if no config
        promises an improvement.
        """
        is_sated = bool(found) and all(one.score < NOTHING for one in found)
        return self.preset != "paper" and is_sated and task.rng.random() < DOUBT


def _by_front(data: Data, rng: Generator) -> Data:
    """Data whose first scores are higher on better fronts, within one in random order: the
    optimiser starts around the best configs.
    """
    ranks = front_ranks(data.y)
    return replace(data, y=rng.random(len(data)) - ranks)


def _starved(space: Space, suggested: list[Trial]) -> list[int]:
    """Indices of the subspaces without any of the last trials, once there are enough trials."""
    n_trials = PATIENCE * space.n_subspaces
    if len(suggested) < n_trials:
        return []
    served = {trial.subspace for trial in suggested[-n_trials:]}
    return [index for index in range(space.n_subspaces) if index not in served]


def _width(space: Space) -> float:
    """Inflation factor of standard deviations: sqrt(d / 3) for d > 3 free parameters, else 1.

    EI looks one result ahead and stays near the incumbent; a large space needs more exploration.
    Chosen on the tuning halves of the noisy and the full suite among 1, 2, 4, sqrt(d / 3), and a
    factor that follows the error of leave-one-out predictions.
    """
    return math.sqrt(largeness(space))


def _starts(n_subspaces: int) -> Starts:
    return Starts(uniform=max(MIN_STARTS, N_STARTS * FULL_STARTS // max(n_subspaces, FULL_STARTS)))


def _acquisition(space: Space, name: str) -> str:
    check_choice("acquisition", name, ("auto", *ACQUISITIONS))
    if name == "auto":
        return "log_ei" if space.n_subspaces <= MAX_VISITED_SUBSPACES else "sampled_log_ei"
    if not ACQUISITIONS[name].is_sampled and not space.is_listable:
        others = ", ".join(repr(other) for other, kind in ACQUISITIONS.items() if kind.is_sampled)
        raise NasboError(
            f"acquisition {name!r} visits every subspace, but there are {space.n_subspaces}: "
            f"use 'auto' or one of {others}"
        )
    return name


def _learning_rate(value: float | None, preset: str) -> float:
    if value is None:
        return Training().learning_rate
    if preset != "paper":
        raise NasboError(f"learning_rate is for preset 'paper', got it with {preset!r}")
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise NasboError(f"0 < learning_rate <= 1 must hold, but got {value!r}")
    return float(value)


def _switch(value: str | bool) -> str:
    """The option as text: YAML reads on and off as booleans."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _check_parts(
    preset: str, attention: str, max_rows: int, curves: str, shape: EncoderShape
) -> None:
    for name, usual in (("embedding", EMBEDDINGS[0]), ("pooling", POOLINGS[0])):
        value = getattr(shape, name)
        if preset != "paper" and value != usual:
            raise NasboError(f"{name} can be {value!r} in preset 'paper' only")
    if preset == "paper" and attention != "on":
        raise NasboError(f"attention can be {attention!r} in preset 'default' only")
    if preset == "paper" and curves != "last":
        raise NasboError(f"curves can be {curves!r} in preset 'default' only")
    if preset == "paper" and max_rows != MAX_ROWS:
        raise NasboError("max_rows can be given in preset 'default' only")
