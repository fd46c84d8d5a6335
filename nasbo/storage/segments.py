"""Segments of a journal in a bucket, and which of them are valid (pure functions).

A segment holds the bytes of the journal from ``start`` to ``end``. Each writer has an epoch, higher
than all before it, and starts at the end of the journal when it took over. Segments that an older
writer stores from there on, because it does not know yet, are not part of the journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from nasbo.errors import JournalError

FOLDER = "journal"
_NAME = re.compile(rf"{FOLDER}/(\d+)-(\d+)-(\d+)\.jsonl")


class Segment(NamedTuple):
    """A part of the journal; an empty one marks the start of an epoch."""

    epoch: int
    start: int
    end: int

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.epoch:06d}-{self.start:012d}-{self.end:012d}.jsonl"


def parse(names: Iterable[str]) -> list[Segment]:
    """The segments among object names."""
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted(Segment(*map(int, match.groups())) for match in matches if match)


def last_epoch(segments: Iterable[Segment]) -> int:
    """The epoch of the latest writer; 0 if there was none."""
    return max((segment.epoch for segment in segments), default=0)


def chain(segments: Iterable[Segment]) -> list[Segment]:
    """The valid segments of the journal, in order.

    Raises:
        JournalError: a part is missing in the middle.
    """
    valid = [segment for segment in _before_takeover(list(segments)) if segment.end > segment.start]
    by_start = {segment.start: segment for segment in sorted(valid)}
    found: list[Segment] = []
    position = 0
    while position in by_start:
        found.append(by_start[position])
        position = found[-1].end
    beyond = [segment for segment in valid if segment.start > position]
    if beyond:
        raise JournalError(f"the journal's bytes from {position} to {beyond[0].start} are missing")
    return found


def _before_takeover(segments: list[Segment]) -> list[Segment]:
    """Drop segments that an older writer stored after a newer one had started."""
    begins: dict[int, int] = {}
    for segment in segments:
        begins[segment.epoch] = min(segment.start, begins.get(segment.epoch, segment.start))
    limits: dict[int, float] = {}
    limit = float("inf")
    for epoch in sorted(begins, reverse=True):
        limits[epoch] = limit
        limit = min(limit, begins[epoch])
    return [segment for segment in segments if segment.start < limits[segment.epoch]]
