"""Journal with all kinds of damage, with two writers, and on a failing disk."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from nasbo.errors import JournalError
from nasbo.history.journal import Journal, read_events

EVENTS = [
    {"event": "settings", "seed": 0, "text": "a-M\u00e9"},
    {"event": "round", "round": 0, "size": 2},
    {"event": "suggested", "trial": 0, "config": {"x": -0.25, "op": [None, 1]}},
    {"event": "suggested", "trial": 1, "config": {"x": 1e-30}},
    {"event": "finished", "trial": 0, "value": -1.5},
]


def _write(path: Path) -> bytes:
    """A journal of a settings line, a transaction of three lines, and a last line."""
    with Journal(path) as journal:
        journal.append(EVENTS[0])
        journal.append(*EVENTS[1:4])
        journal.append(EVENTS[4])
    return path.read_bytes()


def _plain(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in e.items() if key != "lines"} for e in events]


def _python(code: str, *arguments: str | int | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_events_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    data = _write(path)
    assert _plain(read_events(path)) == EVENTS
    assert [json.loads(line)["event"] for line in data.splitlines()] == [e["event"] for e in EVENTS]
    with Journal(path) as journal:
        assert _plain(journal.events) == EVENTS
        journal.append({"event": "later"})
    assert _plain(read_events(path)) == [*EVENTS, {"event": "later"}]


def test_missing_journal_is_empty(tmp_path: Path) -> None:
    assert read_events(tmp_path / "journal.jsonl") == []


def test_cut_at_every_byte(tmp_path: Path) -> None:
    data = _write(tmp_path / "whole.jsonl")
    line_ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    known_at = {0: 0, line_ends[0]: 1, line_ends[3]: 4, line_ends[4]: 5}
    path = tmp_path / "cut.jsonl"
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        good = max(end for end in known_at if end <= size)
        with Journal(path) as journal:
            assert _plain(journal.events) == EVENTS[: known_at[good]], size
            assert path.stat().st_size == good
            journal.append({"event": "after"})
        assert _plain(read_events(path)) == [*EVENTS[: known_at[good]], {"event": "after"}]


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x40, 0x80, 0xFF, "\r", "\n", "0"])
def test_damage_at_every_byte(mask: int | str, tmp_path: Path) -> None:
    data = _write(tmp_path / "whole.jsonl")
    last = data.rindex(b"\n", 0, -1) + 1
    path = tmp_path / "damaged.jsonl"
    for at, byte in enumerate(data):
        new = byte ^ mask if isinstance(mask, int) else ord(mask)
        if new == byte:
            continue
        path.write_bytes(data[:at] + bytes([new]) + data[at + 1 :])
        line = data.count(b"\n", 0, at) + 1
        try:
            events = read_events(path)
        except JournalError as error:
            message = str(error)
        else:
            assert _plain(events) == EVENTS[:4], at
            assert at >= last, "damage before the last line must never be taken for a torn tail"
            continue
        assert message.startswith(f"{path}:{line}: "), (at, message)


def test_damage_is_left_for_a_human_to_see(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    data = bytearray(_write(path))
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(JournalError, match=r"journal.jsonl:1: the line is damaged"):
        Journal(path)
    assert path.read_bytes() == data
    path.unlink()
    Journal(path).close()


def test_lines_of_another_journal_are_refused(tmp_path: Path) -> None:
    data = _write(tmp_path / "journal.jsonl")
    lines = data.splitlines(keepends=True)
    for mixed in (lines[::-1], lines[1:], [*lines, lines[-1]], [lines[0], *lines[2:]]):
        path = tmp_path / "mixed.jsonl"
        path.write_bytes(b"".join(mixed))
        with pytest.raises(JournalError, match="is damaged"):
            read_events(path)


@pytest.mark.parametrize(
    "content", [b"my notes", b"my notes\n", b"\x00", b"[1, 2]", b"\n", b"{}\n"]
)
def test_other_files_are_not_taken_for_journals(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"notes.txt:1: "):
        Journal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"x"])
def test_only_plain_finite_values(value: object, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    before = _write(path)
    with Journal(path) as journal, pytest.raises(JournalError, match="plain finite values"):
        journal.append({"event": "good"}, {"event": "bad", "value": value})
    assert path.read_bytes() == before


def test_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as first:
        with pytest.raises(
            JournalError, match=r"is being written by this process itself: close\(\)"
        ):
            Journal(path)
        first.append({"event": "still mine"})
    Journal(path).close()


def test_lock_ends_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    code = """
        import sys, time
        from nasbo.history.journal import Journal
        journal = Journal(sys.argv[1])
        journal.append({"event": "mine"})
        print("locked", flush=True)
        time.sleep(600)
    """
    with _python(code, path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(JournalError, match=f"is being written by process {holder.pid} "):
            Journal(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with Journal(path) as journal:
            assert journal.events == [{"event": "mine"}]


def test_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    before = _write(path)
    code = """
        import resource, sys
        from nasbo.errors import JournalError
        from nasbo.history.journal import Journal
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with Journal(sys.argv[1]) as journal:
            try:
                journal.append({"event": "a"}, {"event": "b", "text": "x" * 500})
            except JournalError as error:
                print(error)
            journal.append({"event": "small"})
    """
    with _python(code, path, len(before) + 200) as writer:
        told, complaint = writer.communicate(timeout=60)
    assert (writer.returncode, complaint) == (0, "")
    assert told.startswith(f"{path}: cannot be written: ")
    assert "File too large" in told
    assert path.read_bytes().startswith(before)
    assert _plain(read_events(path)) == [*EVENTS, {"event": "small"}]


def test_closed_journal_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="is closed, open it again"):
        journal.append({"event": "late"})
    assert path.read_bytes() == b""


@pytest.mark.parametrize("name", ["file/journal.jsonl", "folder"])
def test_paths_that_cannot_hold_a_journal(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(JournalError, match=r"cannot be (written|read)"):
        Journal(tmp_path / name)


def _fail(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_disk_that_cannot_undo_closes_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next line would be appended to half a line, and the
    file could not be opened.
    """
    path = tmp_path / "journal.jsonl"
    _write(path)
    write = os.write
    with Journal(path) as journal:
        with monkeypatch.context() as broken:
            broken.setattr(os, "write", lambda file, data: write(file, data[:7]) and _fail())
            broken.setattr(os, "ftruncate", _fail)
            with pytest.raises(JournalError, match="cannot be repaired"):
                journal.append({"event": "lost"})
        with pytest.raises(JournalError, match="is closed, open it again"):
            journal.append({"event": "later"})
    with Journal(path) as journal:
        assert _plain(journal.events) == EVENTS
        journal.append({"event": "later"})
    assert _plain(read_events(path)) == [*EVENTS, {"event": "later"}]


def test_an_interrupt_in_a_write_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(file: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "journal.jsonl"
    _write(path)
    with Journal(path) as journal:
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", interrupt)
            with pytest.raises(KeyboardInterrupt):
                journal.append({"event": "interrupted"})
        journal.append({"event": "later"})
    assert _plain(read_events(path)) == [*EVENTS, {"event": "later"}]
