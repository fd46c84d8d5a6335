"""Common behaviour of all GPs of methods: fit, conditioning, and errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nasbo.history.data import Data
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.arc import ArcGP
from nasbo.surrogates.attention import AttentionGP
from nasbo.surrogates.base import FitError
from nasbo.surrogates.curves import CurveGP
from nasbo.surrogates.independent import IndependentGPs
from nasbo.surrogates.mixed import MixedGP
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP
from nasbo.surrogates.tree import TreeGP
from nasbo.testing import SurrogateCase, SurrogateContract

from .test_attention import QUICK

CLOSE = {"max_error": 0.1, "max_variance": 0.05, "max_pending": 0.3}
CASES = {
    "add_tree_se": SurrogateCase(AddTreeGP),
    "add_tree_matern": SurrogateCase(partial(AddTreeGP, kernel="matern")),
    "arc": SurrogateCase(ArcGP),
    "attention": SurrogateCase(
        # After so short a training it explains much as noise, and it computes in float32.
        partial(AttentionGP, settings=QUICK),
        max_error=0.9,
        max_variance=0.3,
        min_contrast=1.0,
        max_pending=1.0,
        precision=5e-6,
        step=1e-2,
    ),
    "independent": SurrogateCase(IndependentGPs),
    "mixed": SurrogateCase(MixedGP),
    "one_hot": SurrogateCase(OneHotGP),
    "structured": SurrogateCase(StructuredGP, **CLOSE),
    "structured_alone": SurrogateCase(partial(StructuredGP, is_shared=False), **CLOSE),
    "curve": SurrogateCase(CurveGP, **CLOSE),
    "tree": SurrogateCase(TreeGP),
    "tree_fourier": SurrogateCase(partial(TreeGP, features="fourier")),
}


class TestGPs(SurrogateContract):
    @pytest.fixture(params=sorted(CASES))
    def case(self, request: pytest.FixtureRequest) -> SurrogateCase:
        return CASES[request.param]

    def test_unusable_scores_are_named(self, case: SurrogateCase, seen: Data) -> None:
        for scores in ([1.0, np.nan, 2.0, 3.0], [1.0]):
            n = len(scores)
            bad = Data(seen.space, seen.subspaces[:n], seen.x[:n], np.array(scores))
            with pytest.raises(FitError, match="at least two finite scores"):
                case.make(seen.space).fit(bad)
