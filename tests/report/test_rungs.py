"""Display of a sweep with rungs: while it runs, in its report, and in TensorBoard."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nasbo.history import History, Run
from nasbo.methods.explanation import AttentionMap
from nasbo.report.compare import make_comparison
from nasbo.report.drawing import Dot, Line, Words
from nasbo.report.figures import FIGURES, RUNG_FIGURES, figures_of
from nasbo.report.figures.attention import draw_maps
from nasbo.report.figures.running import paused_attempts, placed_stays
from nasbo.report.importance import MIN_SEEN, compared_step, measure_importance
from nasbo.report.page import to_html
from nasbo.report.plots import plot_best_so_far
from nasbo.report.progress import Progress, best_text, run_line, time_left
from nasbo.report.result import describe_best
from nasbo.report.study import NoDataError, Study, open_study
from nasbo.report.tensorboard import TensorboardLog, write_tensorboard
from nasbo.report.watch import SweepFollower, draw_status
from nasbo.report.write import make_page
from nasbo.search import Search
from nasbo.search.rungs import standings
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rungs import waiting
from nasbo.sweeps.spending import n_trained, n_whole
from tests.report.sample import make_folder
from tests.rung_search import STEP_S, clock, drive, make, make_rung_folder, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A sweep that has used its budget."""
    return open_study(make_rung_folder(tmp_path_factory.mktemp("runs") / "whole", 14))


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A sweep of which no trial was trained in full yet."""
    return open_study(make_rung_folder(tmp_path_factory.mktemp("runs") / "early", n=10))


def _text(renderable: object, width: int = 160) -> str:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(renderable)
    return text.getvalue()


def test_lines_say_what_was_used_and_where_a_run_paused(early: Study) -> None:
    history = early.history
    run = max((run for run in history.runs if run.is_paused), key=lambda run: run.ended_at or 0.0)
    line = run_line(history, run, 1, 8)
    assert line.startswith(f"{n_trained(history.runs) / 18:.1f} of 8  trial {run.number}  round 0")
    assert f"{run.value:.4f}, paused at step {run.step} of 18" in line
    assert line.endswith(best_text(history))
    assert re.fullmatch(r"best [0-9.]+ at step 6 of 18", best_text(history))


def test_lines_say_what_was_known_when_a_run_ended(whole: Study) -> None:
    """All at once, as after a pause of the display, not the present state of the sweep."""
    history = whole.history
    ends = sorted((one.ended_at or 0.0, one.number) for one in history.runs)
    lines = [run_line(history, history.run(number), 1, 14) for _, number in ends]
    spent = [float(line.split(" of ")[0]) for line in lines]
    assert spent == sorted(spent)
    assert len(set(spent)) > len(spent) / 2, "it grows from line to line"
    assert 0 < spent[0] < spent[-1] == round(history.spent, 1)
    bests = [line.rsplit("  ", 1)[-1] for line in lines]
    assert "best -" not in bests
    times = {trial.id: trial.ended_at for trial in history.trials if trial.value is not None}
    first = min(time for time in times.values() if time is not None)
    assert all(
        "at step" in best for best, (time, _) in zip(bests, ends, strict=True) if time < first
    )
    assert "at step" not in bests[-1]


def test_the_display_counts_trainings_worth() -> None:
    one = make(20)
    drive(one, 9)
    run = one.next(1)
    assert isinstance(run, Run)
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    with Progress(console, budget=20) as progress:
        progress(one.search.history)
    history = one.search.history
    told = f"{history.spent:.1f} of 20 trainings' worth; {history.n_suggested} configs, 0 in full"
    assert told in text.getvalue()
    assert " at step 6 of 18" in text.getvalue(), "also in a narrow terminal"


def test_time_left_goes_by_the_pace_of_steps() -> None:
    with clock():
        one = make(20)
        drive(one, 9)
        run = one.next(1)
        assert isinstance(run, Run)
        history = one.search.history
        ahead = (run.until or 18) - run.resumed_from
        left = time_left(history, 20)
        train(one, run)
    assert left is not None
    n_left = (20 - history.spent) * 18 + ahead
    assert STEP_S * n_left <= left <= 1.6 * STEP_S * n_left, (
        "a stretch has a start beside its steps"
    )


def test_no_time_is_left_of_a_budget_that_is_used() -> None:
    one = make(8)
    drive(one)
    assert time_left(one.search.history, 0) is None
    assert time_left(make(8).search.history, 8) is None, "nothing was trained yet"


def test_the_watch_has_the_rungs_and_says_why_trials_wait(early: Study, whole: Study) -> None:
    told = _text(draw_status(SweepFollower(early.folder.path).refresh()))
    assert "agreement" in told
    assert waiting(early.history)[0].reason in told
    assert "trainings' worth; " in told
    assert re.search(
        r"and \d+ more", _text(draw_status(SweepFollower(whole.folder.path).refresh()))
    )


def test_a_sweep_without_rungs_is_watched_as_before(tmp_path: Path) -> None:
    told = _text(draw_status(SweepFollower(make_folder(tmp_path / "plain")).refresh()))
    assert "24/24 trials" in told
    assert "agreement" not in told


def test_the_result_is_told_with_its_step(early: Study, tmp_path: Path) -> None:
    best = early.history.best
    assert best is not None
    assert best.partial is not None
    told = _text(describe_best(early.history, best, None))
    assert f"value {best.partial.value:.5g} at step 6 of 18" in told
    plot_best_so_far(early.history, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_figures_of_rungs_are_only_where_there_are_some(whole: Study, tmp_path: Path) -> None:
    plain = open_study(make_folder(tmp_path / "plain"))
    assert figures_of(plain) is FIGURES
    assert list(figures_of(whole))[:3] == ["best-so-far", "rungs", "learning-curves"]
    assert set(figures_of(whole)) == set(FIGURES) | set(RUNG_FIGURES)
    for draw in RUNG_FIGURES.values():
        with pytest.raises(NoDataError, match="no rungs"):
            draw(plain)


def test_learning_curves(whole: Study) -> None:
    figure = FIGURES["learning-curves"](whole)
    assert figure.drawing is not None
    lines = [one for one in figure.drawing.shapes if isinstance(one, Line) and one.key]
    assert {line.key for line in lines} == {f"t{t.id}" for t in whole.history.trials if t.curve}
    assert len({line.color for line in lines}) > 1
    dots = [one for one in figure.drawing.shapes if isinstance(one, Dot)]
    n_promoted = sum(
        one.trial.first.until != step
        for step in (2, 6)
        for one in standings(whole.history, step)
        if one.trial.cause != "diverged"
    )
    assert len(dots) == n_promoted > 0
    assert any(re.search(r"\nwent on: \d of \d+ at step 2", dot.label) for dot in dots)
    words = {one.text for one in figure.drawing.shapes if isinstance(one, Words)}
    assert {"1", "2", "6", "18"} <= words


def test_the_table_of_rungs_says_what_was_saved(whole: Study) -> None:
    figure = RUNG_FIGURES["rungs"](whole)
    used, all_of_it = n_trained(whole.history.runs), n_whole(whole.history)
    assert f"Epochs saved: {all_of_it - used:,} of {all_of_it:,}" in figure.caption
    assert figure.html.count("<tr>") == 4


def test_a_dropped_rung_is_dashed(tmp_path: Path) -> None:
    def lying(history: History, number: int, step: int) -> float:
        return float(number % 11) if step <= 2 else -float(number % 11)

    study = open_study(make_rung_folder(tmp_path / "lying", 40, curve=lying))
    drawing = FIGURES["learning-curves"](study).drawing
    assert drawing is not None
    assert "2 (dropped)" in [one.text for one in drawing.shapes if isinstance(one, Words)]
    assert sum(one.is_dashed for one in drawing.shapes if isinstance(one, Line)) == 1
    assert "dropped" in RUNG_FIGURES["rungs"](study).html


def test_figures_compare_full_trainings_only(whole: Study) -> None:
    n = len(whole.history.ranked())
    told = f"Only the {n} of {len(whole.history.trials)} trials that were trained in full"
    for name in ("best-so-far", "subspaces", "best-trials", "parallel"):
        assert told in FIGURES[name](whole).caption, name
    drawing = FIGURES["best-so-far"](whole).drawing
    assert drawing is not None
    assert len([one for one in drawing.shapes if isinstance(one, Dot)]) == n
    assert "full trainings' worth" in [o.text for o in drawing.shapes if isinstance(o, Words)]
    assert re.search(r"\d of \d+ at step 2; ", FIGURES["best-trials"](whole).html)


def test_the_budget_is_counted_in_steps(whole: Study) -> None:
    figure = FIGURES["budget"](whole)
    assert figure.drawing is not None
    boxes = [getattr(shape, "label", "") for shape in figure.drawing.shapes]
    steps = [int(found[1]) for label in boxes if (found := re.search(r": (\d+) steps", label))]
    assert sum(steps) == n_trained(whole.history.runs)


def test_importance_compares_values_of_one_step(whole: Study, early: Study) -> None:
    step = compared_step(whole.history)
    assert step is not None
    assert len(standings(whole.history, step)) >= MIN_SEEN
    found = measure_importance(whole.history)
    assert found is not None
    assert found.n_trials == len(standings(whole.history, step))
    assert compared_step(early.history) == 2
    plain = Search("svm", method="random").history
    assert compared_step(plain) is None


def test_paused_stretches_are_whole_and_no_failures(early: Study) -> None:
    assert all(stay.is_whole for stay in placed_stays(early))
    gone_on = next(run for run in early.history.runs if run.resumed_from)
    assert paused_attempts(gone_on) == {1, 2}
    drawing = FIGURES["failures"](early).drawing
    assert drawing is not None
    labels = {getattr(one, "label", ""): one for one in drawing.shapes}
    paused = next(shape for label, shape in labels.items() if label.startswith("paused: "))
    assert getattr(paused, "color", "") == "muted"


def test_a_page_without_any_full_training(early: Study, whole: Study) -> None:
    page = make_page(early)
    number, words = page.tiles[0]
    assert early.history.best is not None
    assert float(number) == pytest.approx(early.history.best.last_value, rel=1e-4)
    assert "so far at step 6 of 18" in words
    left_out = dict(page.left_out)
    assert left_out["best-so-far"] == "no trial was trained in full so far"
    assert not [why for why in left_out.values() if "Error" in why]
    assert 'data-figure="learning-curves"' in to_html(page)
    full = make_page(whole)
    assert not [why for _, why in full.left_out if "Error" in why]
    assert ("full trainings' worth used") in [words for _, words in full.tiles]


def test_an_attention_map_of_a_trial_that_was_trained_in_part(early: Study) -> None:
    best = early.history.best
    one = AttentionMap("units", "rbf", ["a", "b"], [[1.0, 0.0], [0.0, 1.0]], best)
    words = [o.text for o in draw_maps(early, [one]).shapes if isinstance(o, Words)]
    assert any("at step 6" in text for text in words)


def test_sweeps_with_and_without_rungs_side_by_side(whole: Study, tmp_path: Path) -> None:
    plain = make_folder(tmp_path / "plain", space="svm", mode="min", metric="loss")
    page = make_comparison([whole, open_study(plain)])
    assert not [why for _, why in page.left_out if "Error" in why]
    html = to_html(page)
    assert "full trainings&#x27; worth, or trials that have ended" in html
    assert "14 trainings&#x27; worth; " in html


def _scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    known = found.Tags()["scalars"]
    return [(one.step, one.value) for one in found.Scalars(name)] if name in known else []


def test_tensorboard_has_paused_curves_and_the_best_over_steps(
    whole: Study, tmp_path: Path
) -> None:
    history = whole.history
    folder = write_tensorboard(tmp_path, history, "loss", method="random")
    best = _scalars(folder, "best/loss")
    assert len(best) == len(history.ranked())
    assert history.best is not None
    assert best[-1][1] == pytest.approx(history.best.value)
    assert best[-1][0] <= n_trained(history.runs)
    for trial in history.trials:
        curve = _scalars(folder / "trials" / f"{trial.id:05d}", "loss")
        assert len(curve) == len(trial.curve)
        assert bool(_scalars(folder / "trials" / f"{trial.id:05d}", "hparam/loss")) == (
            trial.value is not None
        )


def test_tensorboard_follows_a_trial_that_goes_on(tmp_path: Path) -> None:
    log, one = TensorboardLog(tmp_path, "loss", "random"), make(100)
    for _ in range(8):
        drive(one, 1)
        log.update(one.search.history.snapshot())
    log.close()
    for trial in one.search.history.trials:
        if not trial.is_open:
            folder = tmp_path / "tensorboard" / "trials" / f"{trial.id:05d}"
            assert len(_scalars(folder, "loss")) == trial.step


def test_a_folder_with_rungs_is_what_it_says(whole: Study) -> None:
    assert SweepFolder(whole.folder.path).state == "finished"
