"""Segments that make up the journal, after any interleaving of writers."""

from __future__ import annotations

import random

import pytest

from nasbo.errors import JournalError
from nasbo.storage.segments import Segment, chain, last_epoch, parse


def test_names_are_read_back_and_strangers_left_out() -> None:
    parts = [Segment(1, 0, 0), Segment(1, 0, 120), Segment(2, 120, 130)]
    names = [part.name for part in parts]
    assert parse([*names, "lease.json", "journal/readme.txt", "trials/00001/a"]) == parts
    assert last_epoch(parts) == 2
    assert last_epoch([]) == 0


def test_the_chain_follows_the_bytes() -> None:
    parts = [Segment(1, 0, 0), Segment(1, 0, 10), Segment(1, 10, 30), Segment(2, 30, 30)]
    random.Random(0).shuffle(parts)
    assert chain(parts) == [Segment(1, 0, 10), Segment(1, 10, 30)]
    assert chain([]) == []


def test_an_old_writer_that_wakes_up_is_not_heard() -> None:
    """The second writer began at byte 30; the first one stored more,
    longer and shorter segments.
    """
    own = [Segment(1, 0, 30), Segment(2, 30, 30), Segment(2, 30, 44), Segment(2, 44, 60)]
    late = [Segment(1, 30, 41), Segment(1, 41, 90)]
    assert chain([*own, *late]) == [Segment(1, 0, 30), Segment(2, 30, 44), Segment(2, 44, 60)]


def test_a_joined_journal_replaces_its_parts_even_if_they_were_not_all_deleted() -> None:
    parts = [Segment(1, 0, 10), Segment(1, 10, 30), Segment(2, 30, 50)]
    joined = Segment(3, 0, 50)
    assert chain([*parts, joined, Segment(3, 50, 60)]) == [joined, Segment(3, 50, 60)]
    assert chain([parts[1], joined]) == [joined]


def test_a_gap_is_an_error_that_names_the_bytes() -> None:
    with pytest.raises(JournalError, match="bytes from 10 to 30 are missing"):
        chain([Segment(1, 0, 10), Segment(1, 30, 40)])
