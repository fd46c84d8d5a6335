"""Journal in a bucket: every reader finds what was acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo import Search
from nasbo.errors import JournalError
from nasbo.history.journal import read_events
from nasbo.storage import remote_journal
from nasbo.storage.location import Location
from nasbo.storage.mirror import is_running, open_journal, open_mirror, pull, push, shown
from nasbo.storage.remote_journal import RemoteJournal, fetch_journal
from nasbo.storage.segments import FOLDER, Segment


def event(number: int) -> dict[str, object]:
    return {"event": "opened", "number": number}


def test_every_acknowledged_write_is_in_the_bucket_before_it_returns(
    tmp_path: Path, location: Location
) -> None:
    with RemoteJournal(tmp_path / "a" / "journal.jsonl", location, lease_s=5) as journal:
        for number in range(4):
            journal.append(event(number))
            data, _ = fetch_journal(location)
            assert data == journal.path.read_bytes()
        journal.append(event(4), sync=False)  # progress is stored with the next write
        assert len(fetch_journal(location)[0]) < journal.path.stat().st_size
        journal.append(event(5), event(6))
        assert fetch_journal(location)[0] == journal.path.read_bytes()
    with RemoteJournal(tmp_path / "b" / "journal.jsonl", location, lease_s=5) as elsewhere:
        assert [item["number"] for item in elsewhere.events] == list(range(7))


def test_what_was_not_acknowledged_is_dropped_from_the_local_file(
    tmp_path: Path, location: Location
) -> None:
    path = tmp_path / "journal.jsonl"
    with RemoteJournal(path, location, lease_s=5) as journal:
        journal.append(event(0))
        whole = path.read_bytes()
    path.write_bytes(whole + b'{"event":"opened","numb')  # a crash between disk and bucket
    with RemoteJournal(path, location, lease_s=5) as journal:
        assert path.read_bytes() == whole
        journal.append(event(1))
    assert [item["number"] for item in read_events(path)] == [0, 1]


def test_a_bucket_that_refuses_ends_the_writing(tmp_path: Path, location: Location) -> None:
    journal = RemoteJournal(tmp_path / "journal.jsonl", location, lease_s=5)
    journal.append(event(0))
    before = journal.path.read_bytes()
    write, location.write = location.write, refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(JournalError, match="cannot be written: the bucket is full"):
        journal.append(event(1))
    location.write = write  # type: ignore[method-assign]
    assert journal.path.read_bytes() == before
    with pytest.raises(JournalError, match="the bucket is full"):
        journal.append(event(2))  # it may contain the first one after all
    journal.close()
    assert fetch_journal(location)[0] == before


def test_an_interrupted_write_ends_the_writing(tmp_path: Path, location: Location) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    journal = RemoteJournal(tmp_path / "journal.jsonl", location, lease_s=5)
    journal.append(event(0))
    before = journal.path.read_bytes()
    write, location.write = location.write, interrupt  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        journal.append(event(1))
    location.write = write  # type: ignore[method-assign]
    with pytest.raises(JournalError, match="a write was interrupted"):
        journal.append(event(2))  # it may contain the first one after all
    journal.close()
    assert fetch_journal(location)[0] == before


def refuse(*_: object, **__: object) -> None:
    raise OSError("the bucket is full")


def test_many_segments_are_joined_on_opening(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_journal, "MAX_SEGMENTS", 5)
    path = tmp_path / "journal.jsonl"
    with RemoteJournal(path, location, lease_s=5) as journal:
        for number in range(8):
            journal.append(event(number))
    with RemoteJournal(path, location, lease_s=5) as journal:
        assert len(journal.events) == 8
        assert len(location.sizes(FOLDER)) == 1
        journal.append(event(8))
    data, _ = fetch_journal(location)
    assert data == path.read_bytes()
    assert fetch_journal(location, data[:-1])[0] == data
    assert fetch_journal(location, b"other" + data)[0] == data


def test_a_missing_or_cut_segment_is_said(tmp_path: Path, location: Location) -> None:
    with RemoteJournal(tmp_path / "journal.jsonl", location, lease_s=5) as journal:
        for number in range(3):
            journal.append(event(number))
    names = sorted(location.sizes(FOLDER))
    content = location.read(names[-1])
    assert content is not None
    location.write(names[-1], content[:-3])
    with pytest.raises(JournalError, match="is missing or cut off"):
        fetch_journal(location)
    location.write(names[-1], content)
    location.delete(names[-2])
    with pytest.raises(JournalError, match=r"bytes from \d+ to \d+ are missing"):
        RemoteJournal(tmp_path / "b.jsonl", location, lease_s=5)


def test_a_second_writer_and_its_segments_win(tmp_path: Path, location: Location) -> None:
    """The first writer stalls, the second takes over; then the first one continues."""
    first = RemoteJournal(tmp_path / "a.jsonl", location, lease_s=1)
    first.append(event(0))
    first._lease._end.set()
    first._lease._thread.join()
    first._lease._renewed_at -= 5
    lease = (location.read("lease.json") or b"").replace(b'"host": "', b'"host": "far ')
    location.write("lease.json", lease)
    second = RemoteJournal(tmp_path / "b.jsonl", location, lease_s=1)
    second.append(event(1))
    with pytest.raises(JournalError):
        first.append(event(2))
    second.append(event(3))
    data, _ = fetch_journal(location)
    assert data == second.path.read_bytes()
    assert [item["number"] for item in second.events] == [0]
    first.close()
    second.close()


def test_a_search_over_a_mirror_is_the_search(tmp_path: Path, url: str) -> None:
    folder = open_mirror(url)
    assert shown(folder) == url
    with Search("simulation", method="random", journal=open_journal(folder)) as search:
        for trial in search.ask(3):
            search.tell(trial, 1.0)
        assert is_running(folder)
    assert not is_running(folder)
    (folder / "best.txt").write_text("3")
    (folder / "trials").mkdir()
    (folder / "trials" / "x").write_text("not pushed")
    push(folder)
    stored = Location(url).sizes("")
    assert "best.txt" in stored
    assert not [name for name in stored if name.startswith("trials")]
    for file in folder.iterdir():
        if file.is_file() and file.name != ".remote":
            file.unlink()
    pull(folder)
    assert len(read_events(folder / "journal.jsonl")) == 1 + 4 + 3 + 3


def test_segments_of_a_foreign_epoch_are_numbered_above(tmp_path: Path, location: Location) -> None:
    location.write(Segment(7, 0, 0).name, b"")
    with RemoteJournal(tmp_path / "journal.jsonl", location, lease_s=5) as journal:
        assert journal._lease.epoch == 8
