"""Data for the tests of all surrogates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nasbo.history.data import Data
from nasbo.testing.surrogates import observed

Observe = Callable[..., Data]


@pytest.fixture
def observe() -> Observe:
    """Uniform configs of a space with the scores of a function."""
    return observed
