"""The data of all trials inside a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nasbo.history import Estimate
from nasbo.report.curves import MIN_LENGTH, clean_curve, thin_curve
from nasbo.report.figures import FIGURES
from nasbo.report.study import Study, key_of, open_study
from nasbo.report.trials import MAX_FILES, trial_columns, without_words
from nasbo.report.write import write_report
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.decoding import curve_of, read_data
from tests.report.sample import make_folder
from tests.rung_search import make_rung_folder


def _is_near(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return found == pytest.approx(wanted, rel=1e-5)


def test_every_trial_is_there_with_all_that_is_known(folder: Path, tmp_path: Path) -> None:
    study = open_study(folder)
    data = read_data(write_report(folder, tmp_path / "a.html"))
    columns, trials = data["columns"], study.history.trials
    assert columns["trial"] == [trial.id for trial in trials]
    assert all(map(_is_near, columns["value"], [t.value for t in trials]))
    assert sum(value is None for value in columns["value"]) == 2
    assert columns["state"] == [trial.state for trial in trials]
    assert columns["cause"] == [trial.cause for trial in trials]
    assert columns["source"] == [trial.source for trial in trials]
    assert columns["predicted"] == [trial.info.get("predicted") for trial in trials]
    assert columns["acquisition"] == [t.acquisition and t.acquisition[0] for t in trials]
    assert columns["message"] == [trial.message or None for trial in trials]
    assert columns["config.conv_op"] == [trial.config["conv_op"] for trial in trials]
    assert columns["config.learning_rate"] == pytest.approx(
        [trial.config["learning_rate"] for trial in trials], rel=1e-5
    )
    assert columns["metrics.params"] == [trial.metrics["params"] for trial in trials]
    assert columns["subspace"] == [study.history.subspace(trial).id for trial in trials]
    for row, trial in enumerate(trials):
        steps, values = zip(*curve_of(data, row), strict=True)
        assert list(steps) == [step for step, _ in trial.curve]
        assert list(values) == pytest.approx([value for _, value in trial.curve], rel=1e-4)


def test_ranks_follow_what_trials_are_ranked_by(study: Study) -> None:
    best, second, *_ = study.ranked
    lucky = replace(second, estimate=Estimate(9.0, 0.1))
    trials = [lucky if one.id == second.id else one for one in study.history.trials]

    def ranks(by: str) -> dict[int, int]:
        other = replace(study, by=by)  # type: ignore[arg-type]
        other.__dict__["history"] = study.history
        other.__dict__["valued"] = [one for one in trials if one.value is not None]
        found = {one.name: one.values for one in trial_columns(other)}
        return dict(zip(found["trial"], found["rank"], strict=True))

    assert ranks("estimate")[second.id] == 1
    assert ranks("observed")[best.id] == 1
    assert ranks("observed")[second.id] == 2


def test_rungs_say_why_trials_went_on_and_wait(tmp_path: Path) -> None:
    folder = make_rung_folder(tmp_path / "early", n=10)
    data = read_data(write_report(folder))
    columns, history = data["columns"], open_study(folder).history
    assert data["rungs"] == [2, 6]
    for row, trial in enumerate(history.trials):
        assert _is_near(columns["value"][row], trial.last_value)
        assert (columns["waits"][row] is not None) == (trial.state == "paused")
        assert len(columns["went_on"][row] or []) == len(trial.first.reasons)
    assert any(columns["went_on"])


def test_repeats_are_part_of_their_trial(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 6, "svm")
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        best = search.history.best
        assert best is not None
        for run, value in zip(search.repeat(best, best), (1.0, 3.0), strict=True):
            search.start(run)
            search.tell(run, value)
    columns = read_data(write_report(folder))["columns"]
    row = columns["trial"].index(best.id)
    assert columns["repeats"][row] == [[6, 1, "finished"], [7, 3, "finished"]]
    assert columns["values"][row] == pytest.approx([best.value, 1.0, 3.0], rel=1e-5)
    assert sum(one is not None for one in columns["repeats"]) == 1


def test_files_are_listed_and_linked_from_inside_the_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 4, "svm")
    assert "files" not in read_data(write_report(folder))["columns"]
    own = folder / "trials" / "00002"
    (own / "logs").mkdir(parents=True)
    (own / "checkpoint.pt").write_bytes(b"12345")
    data = read_data(write_report(folder))
    assert data["columns"]["files"] == [None, None, [["checkpoint.pt", 5], ["logs/"]], None]
    assert data["linked"]
    for at in range(2 * MAX_FILES):
        (own / f"{at:02}.txt").touch()
    data = read_data(write_report(folder, tmp_path / "elsewhere.html"))
    assert len(data["columns"]["files"][2]) == MAX_FILES
    assert not data["linked"]


def test_a_space_of_many_subspaces_is_grouped_by_its_first_choice(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s", 12, "nas_cifar10_conditional")
    study = open_study(folder)
    assert study.history.space.n_subspaces > 64
    groups = set(read_data(write_report(folder))["columns"]["subspace"])
    assert groups == {study.history.subspace(t).first_choice for t in study.history.trials}


def test_marks_do_not_repeat_what_the_data_says(study: Study) -> None:
    trial = study.valued[0]
    for name, rest in (("best-so-far", ""), ("calibration", "\npredicted 0.6 (0.5 … 0.7)")):
        whole = FIGURES[name](study)
        short = without_words(study, whole)
        assert whole.drawing is not None
        assert short.drawing is not None
        assert len(short.drawing.shapes) == len(whole.drawing.shapes)
        told = {getattr(s, "label", "") for s in short.drawing.shapes if getattr(s, "key", "")}
        assert told == {rest}
    table = FIGURES["best-trials"](study)
    assert without_words(study, table) is table
    assert key_of(trial) == f"t{trial.id}"


def test_long_curves_keep_their_ends() -> None:
    curve = [(step, float(step)) for step in range(1, 1001)]
    thin = thin_curve(curve, MIN_LENGTH)
    assert len(thin) == MIN_LENGTH
    assert (thin[0], thin[-1]) == (curve[0], curve[-1])
    assert list(thin) == sorted(set(thin))
    assert thin_curve(curve[:7], MIN_LENGTH) == curve[:7]
    assert clean_curve([(1, 0.1), (2, 0.2), (1, 0.3)]) == [(1, 0.3)]
