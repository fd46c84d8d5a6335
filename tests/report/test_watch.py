"""Live status table of a sweep that another process runs."""

from __future__ import annotations

import io
import math
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from nasbo.cli import cli
from nasbo.errors import JournalError
from nasbo.history import History
from nasbo.history.journal import Journal, JournalFollower, read_events
from nasbo.methods import Suggestion
from nasbo.report.watch import (
    MAX_SUBSPACES,
    SweepFollower,
    draw_status,
    ei_shares,
    recent_busy_share,
    tallies,
    watch,
)
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.sample import START, history_of, make_folder, make_interrupted


def _lines(n: int) -> list[dict[str, object]]:
    return [{"event": "opened", "number": number} for number in range(n)]


def test_follower_reads_every_event_once(tmp_path: Path) -> None:
    follower = JournalFollower(tmp_path / "j")
    assert follower.read() == ([], False)
    with Journal(tmp_path / "j") as journal:
        journal.append(*_lines(3))
        assert [item["number"] for item in follower.read()[0]] == [0, 1, 2]
        assert follower.read() == ([], False)
        journal.append(_lines(1)[0])
        assert len(follower.read()[0]) == 1


def test_follower_at_every_byte_sees_whole_transactions_only(tmp_path: Path) -> None:
    with Journal(tmp_path / "whole") as journal:
        journal.append(*_lines(3))
        journal.append(*_lines(1))
        journal.append(*_lines(2))
    data = (tmp_path / "whole").read_bytes()
    path = tmp_path / "growing"
    path.write_bytes(b"")
    follower = JournalFollower(path)
    sizes, seen = [], []
    for byte in range(len(data)):
        with path.open("ab") as file:
            file.write(data[byte : byte + 1])
        events, is_new = follower.read()
        assert not is_new
        sizes += [len(events)] if events else []
        seen += events
    assert sizes == [3, 1, 2]
    assert seen == read_events(tmp_path / "whole")


def test_follower_notices_damage_and_new_beginnings(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(*_lines(4))
    follower = JournalFollower(path)
    follower.read()
    with path.open("ab") as file:
        file.write(b'{"event":"opened","crc":"00000000"}\n')
    with pytest.raises(JournalError, match=r"j:5: the line is damaged"):
        follower.read()
    path.unlink()
    with Journal(path) as journal:
        journal.append(*_lines(1))
        events, is_new = follower.read()
    assert (len(events), is_new) == (1, True)
    path.unlink()
    assert follower.read() == ([], True)
    assert follower.read() == ([], False)
    path.mkdir()
    with pytest.raises(JournalError, match="cannot be read"):
        follower.read()


def _as_told(history: History) -> list[object]:
    return [(t.id, t.state, t.value, t.cause, t.curve, t.retries) for t in history.trials]


def test_followed_history_is_the_replayed_one(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 8, "svm", budget=30)
    follower = SweepFollower(folder)
    assert _as_told(follower.refresh().history) == _as_told(history_of(folder))
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        for trial in search.ask(3):
            search.tell(trial, 0.5)
            assert follower.state == "running"
            assert _as_told(follower.refresh().history) == _as_told(history_of(folder))
    assert follower.state == "interrupted"
    other = make_folder(tmp_path / "other", 4, "svm")
    shutil.copy(other / JOURNAL_FILE, folder / JOURNAL_FILE)
    assert len(follower.refresh().history.trials) == 4


def test_tallies_count_trials_failures_and_the_best(folder: Path) -> None:
    history = history_of(folder)
    found = tallies(history)
    assert sum(tally.n_trials for tally in found) == 24
    assert sum(tally.n_failed for tally in found) == 2
    assert max(tally.best or 0.0 for tally in found) == (history.best and history.best.value)
    assert [p.n_trials for p in found] == sorted((p.n_trials for p in found), reverse=True)


def test_ei_shares_are_those_of_the_last_model_round() -> None:
    search = Search("svm", method="random", mode="max")
    assert ei_shares(search.history) == {}

    def suggest(*scores: float | None) -> None:
        search.add_round(
            [
                Suggestion(
                    search.space.subspace(index).decode([0.5] * 9),
                    "model" if score is not None else "fallback",
                    {"log_ei": score} if score is not None else {},
                )
                for index, score in enumerate(scores)
            ],
            1.0,
        )

    suggest(-1.0, -1.0)
    suggest(math.log(3.0) - 900, -900.0, None)
    suggest(None)
    assert ei_shares(search.history) == pytest.approx({0: 0.75, 1: 0.25})
    for trial in search.history.trials:
        trial.info["log_ei"] = None
    assert ei_shares(search.history) == {}


def test_busy_share(folder: Path) -> None:
    history = history_of(folder)
    end = START + 5 * 70 + 60
    # six rounds of four trials of 60 s each, 10 s apart
    assert recent_busy_share(history, end) == pytest.approx(360 / 410)
    empty = Search("svm", method="random").history
    assert recent_busy_share(empty, end) is None


def test_downtime_is_not_busy(tmp_path: Path) -> None:
    history = history_of(make_interrupted(tmp_path / "run"))
    assert recent_busy_share(history, START + 3750) == pytest.approx(270 / 300)


def test_an_interrupted_sweep_does_not_age(tmp_path: Path) -> None:
    folder = make_interrupted(tmp_path / "run", is_resumed=False)
    assert "busy 83%" in _shown(folder)  # 150 s trained in 90 s on two slots
    with Search("svm", "random", "max", journal=folder / JOURNAL_FILE) as search:
        assert re.search(r"trial 2 .* -\s*$", _shown(folder), re.MULTILINE)
        (trial,) = search.ask(1)
        assert trial.id == 2
        assert re.search(r"trial 2 .* [01] s\s*$", _shown(folder), re.MULTILINE)


def _shown(folder: Path, width: int = 160) -> str:
    text = io.StringIO()
    follower = SweepFollower(folder)
    follower.refresh()
    Console(file=text, width=width, color_system=None).print(draw_status(follower))
    return text.getvalue()


def test_table_of_a_running_sweep(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 12, "svm", budget=20)
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        (trial,) = search.ask(1)
        search.report(trial, 2, 0.3125, {"epochs": 7})
        shown = _shown(folder)
    for words in ("running", "12/20 trials", "best ", "EI share", "%", "left", "busy",
                  "trial 12", "2/7", "0.3125", "best so far", "failed: crashed 1"):  # fmt: skip
        assert words in shown, words
    assert all(sub.id in shown for sub in search.space.subspaces())
    shown = _shown(folder)
    assert "interrupted" in shown
    assert "trial 12" not in shown


def test_numbers_that_a_trial_does_not_tell_are_not_shown(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 4, "svm", budget=20)
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        config = search.space.subspace(0).decode([0.5] * 9)
        (trial,) = search.add_round([Suggestion(config, "model", {"log_ei": None})], 1.0)
        search.start(trial)
        search.report(trial, 2, None, {"epochs": "many"})
        assert re.search(r"trial 4 .* 2 +- ", _shown(folder))


def test_table_of_thousands_of_subspaces_and_of_nothing(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "crowd", 40, "nas_cifar10_conditional")
    assert "more" in _shown(folder)
    narrow = _shown(folder, 70).splitlines()
    assert max(map(len, narrow)) <= 70
    rows = [line for line in narrow if "nums_block=" in line]
    assert len(rows) == MAX_SUBSPACES
    assert all(re.search(r"\d+ +0 +[01] +(0\.\d{4}|-) +(\d+%|-)", row) for row in rows)
    (folder / JOURNAL_FILE).unlink()
    assert "0/40 trials" in _shown(folder)


def test_watching_ends_with_the_sweep(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 8, "svm", budget=10)
    text = io.StringIO()
    console = Console(file=text, width=160, force_terminal=True, color_system=None)
    n_naps = 0

    def work(seconds: float) -> None:
        nonlocal n_naps
        n_naps += 1
        assert seconds == 0.5
        with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
            search.tell(search.ask(1)[0], 0.75)

    watch(folder, console, 0.5, work)
    assert n_naps == 2
    for words in ("8/10 trials", "9/10 trials", "10/10 trials", "finished"):
        assert words in text.getvalue()


def test_ctrl_c_leaves_quietly(tmp_path: Path) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    folder = make_folder(tmp_path / "run", 4, "svm", budget=10)
    text = io.StringIO()
    watch(folder, Console(file=text, force_terminal=True), sleep=interrupt)
    assert "4/10" in text.getvalue()


def test_command(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["status", str(folder), "--watch"])
    assert result.exit_code == 0
    assert "24/24 trials" in result.stdout
    result = CliRunner().invoke(cli, ["status", str(folder), "--watch", "--json"])
    assert result.exit_code == 2
    assert "do not go together" in result.stderr
    assert CliRunner().invoke(cli, ["status", os.devnull, "--watch"]).exit_code == 2
