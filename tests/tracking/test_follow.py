"""The loop of a tracker, with a destination that fails when it is told to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path

import pytest

from nasbo.errors import NasboError
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE, open_mirror
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from nasbo.tracking import Plan, track
from nasbo.tracking.destination import Tracked, TrackingError
from tests.report.sample import make_folder
from tests.rung_search import make_rung_folder
from tests.tracking.sweeps import add_finalists, cut, make_mixed


class Board:
    """Remembers what it was sent; the answers say at which calls it fails."""

    def __init__(self, answers: Iterator[Exception | None] | None = None) -> None:
        self.answers = answers or repeat(None)
        self.last: Tracked | None = None
        self.stored: dict[str, str] = {}
        self.n_stored = self.n_calls = self.n_forgotten = 0
        self.is_closed = False

    def send(self, tracked: Tracked) -> None:
        self.n_calls += 1
        error = next(self.answers)
        if error is not None:
            raise error
        self.last = tracked

    def forget(self) -> None:
        self.n_forgotten += 1

    def files(self) -> Mapping[str, str]:
        return self.stored

    def send_files(self, files: Mapping[str, Path], digests: Mapping[str, str]) -> None:
        self.n_stored += len(files)
        self.stored = dict(digests)

    def where(self) -> str:
        return "a board"

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "whole", 6, "svm", method="random")


FOLLOW = Plan(follow=True, interval_s=0.001)


def test_a_server_that_is_away_for_a_while_is_told_of_once(whole: Path) -> None:
    away, told = TrackingError("no server"), list[str]()
    watched = cut(whole, whole.parent / "cut", 9)

    class Growing(Board):
        def send(self, tracked: Tracked) -> None:
            super().send(tracked)
            shutil.copy(whole / JOURNAL_FILE, watched / JOURNAL_FILE)

    board = Growing(chain([None, away, away, away], repeat(None)))
    track(watched, board, FOLLOW, told.append)
    assert told == [
        f"{watched}: shown in a board",
        "no server; trying again, the sweep does not notice",
        "reached again, and caught up",
        f"{watched}: finished; 6 trials, 18 reports",
    ]
    assert board.is_closed
    assert board.n_forgotten == 1, "at the end all is looked up once more"


def test_without_follow_a_server_that_is_away_is_an_error(whole: Path) -> None:
    board = Board(repeat(TrackingError("no server")))
    with pytest.raises(TrackingError, match="no server") as caught:
        track(whole, board, Plan(), lambda words: None)
    assert caught.value.exit_code == 3
    assert board.is_closed


@pytest.mark.parametrize("plan", [Plan(interval_s=0.001), FOLLOW])
def test_what_is_refused_again_and_again_is_an_error(whole: Path, plan: Plan) -> None:
    refusal = TrackingError("no permission", is_passing=False)
    board = Board(repeat(refusal))
    with pytest.raises(TrackingError, match="no permission"):
        track(whole, board, plan, lambda words: None)
    assert board.n_calls == 3


def test_a_refusal_that_is_mended_by_looking_again_is_none(whole: Path) -> None:
    refusal = TrackingError("the run was deleted", is_passing=False)
    board = Board(chain([refusal], repeat(None)))
    track(whole, board, Plan(interval_s=0.001), lambda words: None)
    assert board.last is not None


def test_a_sweep_that_has_not_begun_is_waited_for_or_an_error(tmp_path: Path) -> None:
    sweep = Sweep("svm", "own:train", method="random", trials=1)
    create_folder(tmp_path / "s", sweep)
    with pytest.raises(NasboError, match="nothing has begun yet; --follow waits for it"):
        track(tmp_path / "s", Board(), Plan(), lambda words: None)
    told = list[str]()
    track(tmp_path / "s", Board(), Plan(True, 0.001, patience_s=0.01), told.append)
    assert "no driver has run it for 0 s; ended here" in told[0]


def test_an_interrupted_sweep_is_waited_for_with_patience(tmp_path: Path) -> None:
    told, board = list[str](), Board()
    folder = make_rung_folder(tmp_path / "s", n=8)
    track(folder, board, Plan(True, 0.001, patience_s=0.01), told.append)
    assert board.last is not None
    assert board.last.runs[0].state == "interrupted"
    assert "ended here" in told[-1]


def test_a_sweep_that_reached_its_value_is_over(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 4, "svm", budget=9, method="random", stop_at=0.1)
    board = Board()
    track(folder, board, FOLLOW, lambda words: None)
    assert board.last is not None
    assert board.last.runs[0].state == "stopped"


def test_while_a_driver_holds_the_journal_the_sweep_runs(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 4, "svm", budget=9, method="random")
    settings = SweepFolder(folder).settings
    board = Board()
    goal = ("svm", "random", settings.mode, settings.seed)
    with Search(*goal, journal=folder / JOURNAL_FILE):
        track(folder, board, Plan(), lambda words: None)
    assert board.last is not None
    assert board.last.runs[0].state == "running"


def test_a_journal_that_was_mended_is_read_again(whole: Path) -> None:
    watched = cut(whole, whole.parent / "cut", 12)
    good = (watched / JOURNAL_FILE).read_bytes()
    other = good[: good.rindex(b"\n", 0, -1) + 1]

    class Mending(Board):
        def send(self, tracked: Tracked) -> None:
            if self.n_calls == 0:  # the last line was taken back, and others were written
                lines = (whole / JOURNAL_FILE).read_bytes()
                (watched / JOURNAL_FILE).write_bytes(other + lines[len(other) :])
            super().send(tracked)

    board = Mending()
    track(watched, board, FOLLOW, lambda words: None)
    assert board.last is not None
    assert len(board.last.runs) == 7


def test_files_are_sent_where_they_are_new(whole: Path) -> None:
    (whole / "report.html").write_text("a page")
    (whole / "best").mkdir()
    (whole / "best" / "architecture.yaml").write_text("config: {}")
    (whole / "best_so_far.png").write_text("not wanted")
    board = Board()
    track(whole, board, Plan(), lambda words: None)
    assert sorted(board.stored) == ["best/architecture.yaml", "report.html"]
    track(whole, board, Plan(), lambda words: None)
    assert board.n_stored == 2
    (whole / "report.html").write_text("another page")
    track(whole, board, Plan(), lambda words: None)
    assert board.n_stored == 3


def test_a_sweep_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path}/bucket/s"
    folder = make_mixed(open_mirror(url))
    add_finalists(folder)
    location = SweepFolder(folder).location
    assert location is not None
    location.write("report.html", b"a page")
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "another machine"))
    board = Board()
    track(open_mirror(url), board, Plan(), lambda words: None)
    assert board.last is not None
    assert [run.kind for run in board.last.runs].count("trial") == 7
    assert "final/00000" in [run.key for run in board.last.runs]
    assert list(board.stored) == ["report.html"]
