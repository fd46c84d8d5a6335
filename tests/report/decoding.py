"""Reads the data inside a report, as its scripts do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasbo.report.columns import ALPHABET


def decode(told: Mapping[str, Any]) -> list[Any]:
    """The values of a column, or of anything else that ``encode`` has written."""
    if "codes" in told:
        return [told["levels"][ALPHABET.index(sign)] for sign in told["codes"]]
    if "at" in told:
        return [told["levels"][at] for at in told["at"]]
    if "mask" in told:
        values = iter(told["values"])
        return [next(values) if bit == "1" else None for bit in told["mask"]]
    return list(told["values"])


def read_data(page: Path) -> dict[str, Any]:
    """The data of a report's trials, with decoded columns by their names."""
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="trial-data">(.*?)</script>', text)
    data: dict[str, Any] = json.loads(found)
    return data | {"columns": {one["name"]: decode(one) for one in data["columns"]}}


def curve_of(data: Mapping[str, Any], row: int) -> list[tuple[int, float]]:
    """The learning curve of a row."""
    curves = data["curves"]
    values = decode({"mask": curves["mask"], "values": curves["values"]})[row]
    if values is None:
        return []
    steps = curves["steps"][decode(curves["of"])[row]]
    return list(zip(steps[: len(values)], values, strict=True))
