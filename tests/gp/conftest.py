"""Data for the tests of the parts of GPs."""

from __future__ import annotations

from tests.surrogates.conftest import Observe, observe

__all__ = ["Observe", "observe"]
