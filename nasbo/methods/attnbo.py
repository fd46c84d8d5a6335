"""AttnBO: one GP over all subspaces, log-EI in each of them."""

from __future__ import annotations

import math
from typing import Any, cast

from nasbo.acquisition import (
    ACQUISITIONS,
    MAX_VISITED_SUBSPACES,
    Acquisition,
    ByPromise,
    Chooser,
    Found,
    LogEI,
)
from nasbo.acquisition.starts import Starts
from nasbo.acquisition.wider import Wider
from nasbo.errors import NasboError
from nasbo.gp.encoder import EMBEDDINGS, POOLINGS, Embedding, EncoderShape, Pooling
from nasbo.gp.free_features import FreeFeatures
from nasbo.history import Trial, View
from nasbo.methods.attention import token_maps, unit_maps
from nasbo.methods.base import Task
from nasbo.methods.explanation import AttentionMap
from nasbo.methods.modelled import NOTHING, SurrogateMethod, avoided
from nasbo.methods.options import check_choice, check_count
from nasbo.space import Space
from nasbo.surrogates.attention import AttentionGP, AttentionSettings, Training
from nasbo.surrogates.base import Surrogate
from nasbo.surrogates.curves import CurveGP
from nasbo.surrogates.structured import MAX_ROWS, StructuredGP, largeness

PRESETS = ("default", "paper")
ATTENTION = ("on", "off")
PLACES = ("equal", "promise")
CURVES = ("last", "joint")
PATIENCE = 4
"""With ``places="promise"``, a subspace is owed a place that had none of the last ``PATIENCE *
n_subspaces`` trials: as many as four rounds of one config per subspace have."""
DOUBT = 0.5
"""How often a model that expects no improvement is doubted. This and the next were chosen on the
tuning half of the benchmark and on instances of `share` and `noshare` with other seeds."""
WIDER = (2.0, 4.0, 8.0, 16.0)
"""Doubt: standard deviations are so many times larger, as little as lets a config promise much."""
N_PROMISING = 4
MAX_EXPLAINED_ROWS_PAPER = 48
"""The deep kernel is trained on so many rows for a picture: it should not take minutes."""
N_STARTS, FULL_STARTS, MIN_STARTS = 96, 16, 12
"""Uniform starts in each of up to ``FULL_STARTS`` subspaces; fewer where there are more of them."""


class AttnBO(SurrogateMethod):
    """Attention-based Bayesian optimisation over conditional spaces.

    One GP over all subspaces; log-EI is maximised in each of them (or in sampled ones, where there
    are too many), and the best config of each subspace is suggested, best first. With few results
    a GP is sure of the wrong thing now and then: where it is sure that nothing is left to gain,
    half of the batches, at random, go where most would be to gain if it were less sure, by as
    little as it takes.

    Args:
        space: what to search.
        seed: of all random numbers.
        preset: ``default`` is a sum of structured kernels, with attention between units;
            ``paper`` is the attention deep-kernel GP of the AttnBO paper, appendix B.1.
        learning_rate: of the paper preset's training: 0.001 (appendix B.1.3) if not given;
            section 5 of the paper has 0.01.
        embedding: of the paper preset's tokens, ``structure`` or ``none`` (appendix E).
        pooling: over the paper preset's tokens, ``mean`` or ``token`` (appendix E).
        attention: of the default preset. ``on``: units (the parameters under one parent value,
            blocks of a network) attend to the others of their type; ``off``: each to itself
            alone, with the priors of units that have no others.
        acquisition: ``auto`` (log-EI) or a name of ``nasbo.acquisition.ACQUISITIONS``.
        places: of a batch. ``equal``: one for each subspace, best first; ``promise``: one after the
            other to the most promising subspace, but a subspace that has had none for long
            (``PATIENCE``) gets one.
        curves: of the default preset, with rungs: what is learned from configs that were trained in
            part. ``last``: each one's last value, as if it were its score; ``joint``: a model of
            learning curves, on the values of all rungs.
        max_rows: of the default preset: on how many results predictions rest at most; the time of
            a decision grows with its cube.
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
        self._structured: StructuredGP | None = None
        self.uses_features = preset == "default"
        self.has_attention = self._is_shared
        if preset == "paper":
            self.max_explained_rows = MAX_EXPLAINED_ROWS_PAPER
            self.finds_noise = False  # so short a training leaves it near where it began

    def make_surrogate(self, task: Task) -> Surrogate:
        if self.preset == "paper":
            return AttentionGP(self.space, self._settings, task.torch_seed)
        if self._structured is None:
            free = None if self.features is None else FreeFeatures(self.space, self.features)
            self._structured = self._model(self.space, self._is_shared, self._max_rows, free)
        return self._structured

    def attention_maps(self, surrogate: Surrogate, history: View) -> tuple[list[AttentionMap], str]:
        if isinstance(surrogate, AttentionGP):
            return token_maps(surrogate, history), ""
        maps = unit_maps(surrogate) if isinstance(surrogate, StructuredGP) else []
        return maps, "" if maps else "the space has no two units of one type, which could attend"

    def make_acquisition(self) -> Acquisition:
        return ACQUISITIONS[self.acquisition]()

    def make_chooser(self, task: Task) -> Chooser:
        known = (self.space, task.data, task.rng, avoided(task), N_PROMISING, _starts)
        if self.places == "equal":
            return Chooser(*known)
        return ByPromise(*known, owed=_starved(self.space, task.suggested))

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        info: dict[str, Any] = {"acquisition": self.acquisition, "preset": self.preset}
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
        """Half of the times that no config of a batch promises anything."""
        is_sated = bool(found) and all(one.score < NOTHING for one in found)
        return self.preset != "paper" and is_sated and task.rng.random() < DOUBT


def _starved(space: Space, suggested: list[Trial]) -> list[int]:
    """Numbers of the subspaces that none of the last trials belongs to, once there are so many."""
    n_trials = PATIENCE * space.n_subspaces
    if len(suggested) < n_trials:
        return []
    served = {trial.subspace for trial in suggested[-n_trials:]}
    return [index for index in range(space.n_subspaces) if index not in served]


def _width(space: Space) -> float:
    """By which factor standard deviations count: sqrt(d / 3) in d > 3 free parameters.

    EI looks one result ahead and stays near the best so far, where a large space is best learned
    about elsewhere. Chosen on the tuning halves of the noisy and the full suite among 1, 2, 4,
    sqrt(d / 3), and a factor that follows the error of leave-one-out predictions.
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
    """YAML reads on and off as booleans."""
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
