"""Values that trainers may return: numbers, and nothing that only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from nasbo.tune.trial import MissingMetricError, pick_value


@pytest.mark.parametrize("value", ["0.3", b"1", True, None, [0.3]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(MissingMetricError, match="must be a number"):
        pick_value({"loss": value}, "loss")
    with pytest.raises(MissingMetricError, match="must be a number"):
        pick_value(value, None)
