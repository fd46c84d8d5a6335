"""Commands, reports, finalists and metrics of a sweep whose method has found noise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo import load_sweep
from nasbo.cli import cli
from nasbo.finish.card import searched_text
from nasbo.finish.finalist import Finalist
from nasbo.finish.finalists import Wish, choose_finalists, final_sweep, prepare_final
from nasbo.report.compare import make_comparison
from nasbo.report.figures import FIGURES
from nasbo.report.page import to_html
from nasbo.report.progress import best_text
from nasbo.report.serve import LivePage
from nasbo.report.study import open_study
from nasbo.report.write import make_page
from nasbo.storage.mirror import open_journal
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.status import status
from nasbo.trainer import load_trainer
from nasbo.tune.metrics import course_samples
from nasbo.tune.sweep_search import SweepSearch
from tests.noisy import LUCKY, TRUE_BEST, VALUES, noisy_folder

TRAINER = "tests.finish.able:train"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return noisy_folder(tmp_path / "noisy")


def _call(*words: str | Path) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_best_tells_both_values(folder: Path) -> None:
    assert "best: trial 2, expected 0.9 ± 0.02, observed 0.92 (" in _call("best", folder)
    assert "best: trial 0, expected 0.85 ± 0.02, observed 0.95 (" in _call(
        "best", folder, "--by", "observed"
    )
    found = json.loads(_call("best", folder, "--json"))
    assert (found["trial"], found["value"]) == (TRUE_BEST, 0.92)
    assert (found["estimate"], found["estimate_sd"]) == (0.9, 0.02)
    lucky = json.loads(_call("best", folder, "--json", "--by", "observed"))
    assert (lucky["trial"], lucky["value"]) == (LUCKY, 0.95)


def test_a_sweep_in_python(folder: Path) -> None:
    sweep = load_sweep(folder)
    assert sweep.best.id == TRUE_BEST
    assert [trial.id for trial in sweep.ranked("observed")] == [0, 2, 3, 1]
    assert "best accuracy 0.92, 0.9 expected" in repr(sweep)
    frame = sweep.to_dataframe().set_index("trial")
    assert frame.loc[TRUE_BEST, ["estimate", "estimate_sd"]].tolist() == [0.9, 0.02]
    assert frame.loc[[1, 4], "estimate"].isna().all()


def test_status_tells_how_sure_the_first_place_is(folder: Path) -> None:
    sure = 100 * status(SweepFolder(folder))["best"]["certainty"]
    assert 50 < sure < 70
    told = f"best       trial 2, 0.9 expected (observed 0.92), {sure:.0f} % sure"
    assert told in _call("status", folder)
    words = f"best 0.9000 expected (observed 0.9200), {sure:.0f} % sure"
    assert best_text(SweepFolder(folder).history) == words
    assert "0.9000 expected" in _call("status", folder, "--watch")


def test_export_has_columns_of_estimates(folder: Path) -> None:
    head, *rows = _call("export", folder, "--csv").splitlines()
    columns = head.split(",")
    at = columns.index("estimate")
    assert columns[at - 1 : at + 2] == ["predicted_high", "estimate", "estimate_sd"]
    assert [row.split(",")[at] for row in rows] == ["0.85", "", "0.9", "0.89", ""]


def test_finalists_are_the_expected_best(tmp_path: Path) -> None:
    folder = noisy_folder(tmp_path / "noisy", TRAINER)
    history, trainer = SweepFolder(folder).history, load_trainer(TRAINER)
    blind = load_trainer("tests.tune.toy:simulation")
    chosen = choose_finalists(history, blind, 2)
    assert [trial.id for trial in chosen] == [TRUE_BEST, 3]
    lucky = choose_finalists(history, blind, 2, "observed")
    assert [trial.id for trial in lucky] == [LUCKY, TRUE_BEST]
    assert "--by" not in Wish().command("runs/first")
    assert Wish(by="observed").command("runs/first").endswith("--by observed")
    planned = final_sweep(folder, SweepFolder(folder).settings, trainer, Wish(top=2))
    final, _ = prepare_final(tmp_path / "final", planned, chosen, 1)
    first = final.history.trials[0]
    assert (first.info["search_value"], first.info["search_estimate"]) == (0.92, 0.9)
    assert searched_text(Finalist(1, first, [], {})) == "0.9200, 0.9000 expected"


def test_the_report_follows(folder: Path) -> None:
    page = make_page(open_study(folder))
    value, words = page.tiles[0]
    assert value == "0.9"
    assert words.startswith("expected accuracy of trial 2, observed 0.92, ")
    assert words.endswith(" % sure")
    assert "0.92 (0.9 expected)" in FIGURES["best-trials"](open_study(folder)).html
    assert FIGURES["best-so-far"](open_study(folder)).caption.startswith(
        "Best: trial 2 with accuracy 0.92 (0.9 expected) in "
    )
    old = make_page(open_study(folder, "observed"))
    assert old.tiles[0] == ("0.95", "best accuracy, trial 0")
    assert "best accuracy, trial 0" in LivePage(folder, "observed").html()
    path = folder.parent / "old.html"
    _call("report", folder, "--by", "observed", "--out", path)
    assert "best accuracy, trial 0" in path.read_text(encoding="utf-8")


def test_a_comparison_takes_what_is_expected(folder: Path) -> None:
    page = make_comparison([open_study(folder), open_study(folder)])
    assert page.tiles[0] == ("0.9", "best accuracy of noisy")
    assert "what it expects of the best trial" in to_html(page)


def test_metrics_tell_the_observed_and_the_expected_best(folder: Path) -> None:
    found = {name: value for name, value, _ in course_samples(SweepFolder(folder).history)}
    assert (found["nasbo_best_value"], found["nasbo_best_expected"]) == (0.95, 0.9)


@pytest.mark.parametrize(("target", "is_reached"), [(0.93, False), (0.9, True)])
def test_a_lucky_value_does_not_end_a_sweep(
    tmp_path: Path, target: float, is_reached: bool
) -> None:
    trainer = "tests.tune.toy:simulation"
    held = SweepFolder(noisy_folder(tmp_path / "noisy", trainer))
    sweep = replace(held.settings, stop_at=target)
    searcher = SweepSearch(sweep, held.space, held.path, load_trainer(trainer))
    assert max(VALUES) > target
    assert searcher.should_end() == is_reached
    searcher.search.close()


def test_the_journal_is_that_of_the_sweep(folder: Path) -> None:
    with open_journal(folder) as journal:
        opened = [line for line in journal.events if line["event"] == "round"]
    assert [line["estimates"] is None for line in opened] == [True, False]
