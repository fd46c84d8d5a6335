"""History comes in; the configs of the largest expected improvement under one global GP go out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from nasbo.acquisition import ACQUISITIONS, Acquisition, Chooser, Found, default_acquisition
from nasbo.errors import NasboError
from nasbo.gp.encoder import EMBEDDINGS, POOLINGS, Embedding, EncoderShape, Pooling
from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.modelled import NOTHING, expectation, prediction
from nasbo.methods.options import check_choice, check_count
from nasbo.space import Space, Subspace
from nasbo.surrogates.attention import AttentionGP, AttentionSettings, Training
from nasbo.surrogates.base import Surrogate
from nasbo.surrogates.structured import MAX_ROWS, StructuredGP
from nasbo.surrogates.wider import Wider

Array = NDArray[np.float64]

PRESETS = ("default", "paper")
ATTENTION = ("on", "off")
DOUBT = 0.5
"""How often a sated model is doubted. These two were chosen on the tuning half of the benchmark's
problems and on instances of `share` and `noshare` with other seeds."""
WIDER = (2.0, 4.0, 8.0, 16.0)
"""Doubt: standard deviations are so many times larger, as little as lets a config promise much."""


class AttnBO(Method):
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
        acquisition: ``auto``, ``log_ei``, ``sampled_log_ei`` or ``thompson``.
        visit_every: with ``log_ei``, where a batch cannot hold all subspaces, every so many configs
            one goes to the least tried subspace; never, if not given.
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
        visit_every: int | None = None,
        max_rows: int = MAX_ROWS,
    ) -> None:
        super().__init__(space, seed)
        attention = _switch(attention)
        check_choice("preset", preset, PRESETS)
        check_choice("embedding", embedding, EMBEDDINGS)
        check_choice("pooling", pooling, POOLINGS)
        check_choice("attention", attention, ATTENTION)
        if visit_every is not None:
            check_count("visit_every", visit_every)
        check_count("max_rows", max_rows)
        self.preset = preset
        self.acquisition = _acquisition(space, acquisition)
        self._settings = AttentionSettings(
            EncoderShape(embedding=cast(Embedding, embedding), pooling=cast(Pooling, pooling)),
            Training(_learning_rate(learning_rate, preset)),
        )
        _check_parts(preset, attention, max_rows, self._settings.shape)
        self._is_shared = attention == "on"
        self._max_rows, self._visit_every = max_rows, visit_every or 0
        self._structured: StructuredGP | None = None

    def propose(self, task: Task) -> list[Suggestion]:
        started = time.perf_counter()
        observations = task.data
        surrogate = self.make_surrogate(task.torch_seed)
        surrogate.fit(observations)
        fit_s = time.perf_counter() - started
        info = {"acquisition": self.acquisition, "preset": self.preset, "fit_s": round(fit_s, 3)}
        running = [self.space.subspace_of(config) for config in task.pending]
        places = [s.encode(config) for s, config in zip(running, task.pending, strict=True)]
        surrogate = surrogate.with_pending(running, places)

        def is_taken(subspace: Subspace, x: Array) -> bool:
            return subspace.decode(x) in task.taken

        chooser = Chooser(
            self.space, observations, task.rng, is_taken, running, places, self._visit_every
        )
        found = chooser.choose(surrogate, self.acquisition, task.n)
        if self._is_doubted(found, task):
            for factor in WIDER:
                doubted = chooser.choose(Wider(surrogate, factor), self.acquisition, task.n)
                found = doubted or found
                if max(one.score for one in found) >= NOTHING:
                    break
            info["reason"] = f"less sure by a factor of {factor:g}, as no improvement was expected"
        return [_suggestion(surrogate, one, info) for one in found]

    def _is_doubted(self, found: Sequence[Found], task: Task) -> bool:
        """Half of the times that no config of a batch is a visit or promises anything."""
        if self.preset == "paper" or self.acquisition == "thompson" or not found:
            return False
        is_sated = all(not one.is_visit and one.score < NOTHING for one in found)
        return is_sated and task.rng.random() < DOUBT

    def make_surrogate(self, seed: int = 0) -> Surrogate:
        """The surrogate of the chosen preset, not fitted."""
        if self.preset == "paper":
            return AttentionGP(self.space, self._settings, seed)
        if self._structured is None:
            self._structured = StructuredGP(self.space, self._is_shared, self._max_rows)
        return self._structured


def _suggestion(surrogate: Surrogate, found: Found, info: dict[str, Any]) -> Suggestion:
    with torch.no_grad():
        mean, variance = surrogate.posterior(found.subspace, torch.from_numpy(found.x[None]))
    score = "draw" if info["acquisition"] == "thompson" else "log_ei"
    thought = {score: found.score} | prediction(surrogate, mean, variance)
    if score == "log_ei":
        thought |= expectation(found.score)
    if found.is_visit:
        thought["reason"] = "visit to the least tried subspace"
    return Suggestion(found.subspace.decode(found.x), "model", info | thought)


def _acquisition(space: Space, name: str) -> Acquisition:
    check_choice("acquisition", name, ("auto", *ACQUISITIONS))
    if name == "auto":
        return default_acquisition(space)
    if name == "log_ei" and not space.is_listable:
        raise NasboError(
            f"acquisition 'log_ei' visits every subspace, but there are {space.n_subspaces}: "
            "use 'auto', 'sampled_log_ei' or 'thompson'"
        )
    return cast(Acquisition, name)


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


def _check_parts(preset: str, attention: str, max_rows: int, shape: EncoderShape) -> None:
    for name, usual in (("embedding", EMBEDDINGS[0]), ("pooling", POOLINGS[0])):
        value = getattr(shape, name)
        if preset != "paper" and value != usual:
            raise NasboError(f"{name} can be {value!r} in preset 'paper' only")
    if preset == "paper" and attention != "on":
        raise NasboError(f"attention can be {attention!r} in preset 'default' only")
    if preset == "paper" and max_rows != MAX_ROWS:
        raise NasboError("max_rows can be given in preset 'default' only")
