"""All figures of the report, on a sweep that has data for all of them and on others."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.cli import cli
from nasbo.history import Attempt, Run, State, Trial
from nasbo.methods.explanation import Explanation
from nasbo.report.axes import number_text
from nasbo.report.drawing import Area, Box, Dot, Drawing, Heat, Line, Words
from nasbo.report.figures import FIGURES
from nasbo.report.figures.architecture import block_lines
from nasbo.report.figures.pareto import costs_of, pareto_front
from nasbo.report.figures.running import busy_share, placed_stays, stays
from nasbo.report.figures.settings import repeat_command
from nasbo.report.study import NoDataError, Study, open_study
from nasbo.report.write import make_page
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import Sweep, make_sweep
from tests.report.sample import make_folder, make_interrupted, play

TABLES = ("best-trials", "trials", "settings")


def _drawing(study: Study, name: str) -> Drawing:
    drawing = FIGURES[name](study).picture
    assert drawing is not None
    return drawing


def _words(drawing: Drawing) -> list[str]:
    return [shape.text for shape in drawing.shapes if isinstance(shape, Words)]


def _dots(drawing: Drawing, color: str | None = None) -> list[Dot]:
    return [s for s in drawing.shapes if isinstance(s, Dot) and color in (None, s.color)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_name_words_and_content(study: Study, name: str) -> None:
    figure = FIGURES[name](study)
    assert figure.name == name
    assert figure.title
    assert figure.caption.endswith((".", "oops</b>"))
    assert [bool(figure.html), figure.drawing is not None, bool(figure.panels)].count(True) == 1


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in TABLES])
def test_marks_stay_inside_the_drawing(study: Study, name: str) -> None:
    drawing = _drawing(study, name)
    for shape in drawing.shapes:
        points: list[tuple[float, float]] = []
        if isinstance(shape, Line | Area):
            points += shape.points
        elif isinstance(shape, Box):
            points += [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
        elif isinstance(shape, Heat):
            far = len(shape.values) * shape.cell
            points += [(shape.x, shape.y), (shape.x + far, shape.y + far)]
        else:
            points.append((shape.x, shape.y))
        for x, y in points:
            assert -1 <= x <= drawing.width + 1, shape
            assert -1 <= y <= drawing.height + 1, shape


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "settings"])
def test_without_results_a_word_why(tmp_path: Path, name: str) -> None:
    create_folder(tmp_path / "new", make_sweep({"space": "svm", "trainer": "nobodys:train"}))
    with pytest.raises(NoDataError, match=r"so far|measurable|in the journal|fewer"):
        FIGURES[name](open_study(tmp_path / "new"))


def test_best_so_far_marks_the_design(study: Study) -> None:
    drawing = _drawing(study, "best-so-far")
    assert len(_dots(drawing, "muted")) == 8
    assert len(_dots(drawing)) == len(study.valued)
    bands = [shape for shape in drawing.shapes if isinstance(shape, Box) and shape.width > 50]
    assert len(bands) == 1
    assert all(dot.x < bands[0].x + bands[0].width for dot in _dots(drawing, "muted"))
    (curve,) = (s for s in drawing.shapes if isinstance(s, Line) and s.color == "ink")
    heights = [y for _, y in curve.points]
    assert heights == sorted(heights, reverse=True)  # larger is better, and up is smaller


def test_budget_counts_every_trial_once(study: Study) -> None:
    bars = [s for s in _drawing(study, "budget").shapes if isinstance(s, Box) and s.label]
    assert sum(int(bar.label.split(": ")[1].split()[0]) for bar in bars) == 24


def test_subspace_rows_are_the_best_first(study: Study) -> None:
    words = [text for text in _words(_drawing(study, "subspaces")) if "nums_block" in text]
    assert words[0] == study.history.subspace(study.ranked[0]).id


def test_pareto_front(study: Study) -> None:
    costs = costs_of(study, "flops")
    front = pareto_front(study, costs)
    on_front = {trial.id for trial in front}
    for trial in study.valued:
        beaten = [
            other
            for other in study.valued
            if costs[other.id] <= costs[trial.id]
            and (other.value or 0.0) >= (trial.value or 0.0)
            and (costs[other.id], other.value) != (costs[trial.id], trial.value)
        ]
        assert bool(beaten) == (trial.id not in on_front)


def test_costs_come_from_the_summary_where_trials_do_not_tell(study: Study) -> None:
    trial = study.valued[0]
    assert study.trainer is not None
    assert study.trainer.summary is not None
    mute = replace(trial, runs=(replace(trial.first, metrics={}),))
    study = _with_trials(study, [mute if t is trial else t for t in study.history.trials])
    assert study.trainer is not None
    assert costs_of(study, "params")[trial.id] == study.trainer.summary(trial.config)["params"]


def _with_trials(study: Study, trials: Sequence[Trial]) -> Study:
    """The same study with other trials."""
    view = study.history.snapshot()
    view.trials = tuple(trials)
    return replace(study, history=view)


def _ran(number: int, start: float, end: float | None) -> Run:
    state: State = "finished" if end else "running"
    return Run(number, number, state=state, attempts=(Attempt(start, end),))


def test_trials_go_to_the_first_free_slot() -> None:
    runs = [_ran(0, 100, 160), _ran(1, 100, 130), _ran(2, 131, 150), _ran(3, 165, None)]
    placed = stays(runs, now=180)
    assert [(stay.slot, stay.start, stay.end) for stay in placed] == [
        (0, 0, 60),
        (1, 0, 30),
        (1, 31, 50),
        (0, 65, 80),
    ]
    assert busy_share(placed) == pytest.approx((60 + 30 + 19 + 15) / 160)
    assert stays([], 1.0) == []
    assert busy_share([]) == 0.0


def test_downtime_is_no_training(tmp_path: Path) -> None:
    """Of 150 s on two slots 270 s were trained; the hour between does not count."""
    study = open_study(make_interrupted(tmp_path / "run"))
    placed = placed_stays(study)
    assert [(stay.run.number, stay.number, stay.start, stay.end) for stay in placed] == [
        (0, 1, 0, 60),
        (1, 1, 0, 60),
        (2, 1, 60, 90),
        (2, 2, 3690, 3750),
        (3, 1, 3690, 3750),
    ]
    figure = FIGURES["timeline"](study)
    assert "90% was spent training, in all 2 min on 2 slots" in figure.caption
    assert "For 60 min the sweep was interrupted" in figure.caption
    tiles = {words: number for number, words in make_page(study).tiles}
    assert tiles["of the slots' time spent training"] == "90%"
    assert tiles["from the first start to the last end, 60 min of it interrupted"] == "62 min"
    boxes = [shape for shape in _drawing(study, "timeline").shapes if isinstance(shape, Box)]
    assert sum(box.color == "grid" for box in boxes) == 2 * 2  # two lanes, each in two parts
    (broken,) = (box for box in boxes if "attempt 1 of 2" in box.label)
    assert broken.opacity < 0.5


def test_what_runs_ends_with_the_journal_of_an_interrupted_sweep(tmp_path: Path) -> None:
    study = open_study(make_interrupted(tmp_path / "run", is_resumed=False))
    assert study.state == "interrupted"
    assert placed_stays(study)[-1].end == 90
    assert "83% was spent training" in FIGURES["timeline"](study).caption


def test_slots_never_hold_two_trials(study: Study) -> None:
    placed = stays(study.history.runs, 0.0)
    assert max(stay.slot for stay in placed) == 3
    for slot in range(4):
        own = [stay for stay in placed if stay.slot == slot]
        assert all(a.end <= b.start for a, b in pairwise(own))


def test_endings_by_cause(study: Study) -> None:
    words = _words(_drawing(study, "failures"))
    assert words[:4] == ["finished", "22", "crashed", "2"]
    assert "oops" in FIGURES["failures"](study).caption


def test_suggestion_cost_counts_the_results_at_hand(study: Study) -> None:
    drawing = _drawing(study, "suggestion-cost")
    assert len(_dots(drawing, "c1")) == 4
    assert "4 decisions" in FIGURES["suggestion-cost"](study).caption


def test_parallel_has_a_line_per_trial_and_ends_at_the_value(study: Study) -> None:
    drawing = _drawing(study, "parallel")
    lines = [s for s in drawing.shapes if isinstance(s, Line) and s.key]
    assert len(lines) == len(study.valued)
    ends = {line.key: line.points[-1][1] for line in lines}
    best, worst = study.ranked[0], study.ranked[-1]
    assert ends[f"t{best.id}"] < ends[f"t{worst.id}"]
    assert "learning_rate" in _words(drawing)


def test_importance_finds_what_the_value_depends_on(study: Study) -> None:
    words = _words(_drawing(study, "importance"))
    assert words[0] == "learning_rate"
    assert re.fullmatch(r"\d+% \(\d+–\d+%\)", words[1])
    caption = FIGURES["importance"](study).caption
    assert re.search(
        r"that of learning_rate: \d+%, between \d+% and \d+%; in \d+% of the resamples", caption
    )
    assert "that explain most" in FIGURES["parallel"](study).caption


def test_importance_of_noise_is_not_drawn(tmp_path: Path) -> None:
    """Fifteen results in 47 parameters that have no effect on them."""
    study = open_study(make_folder(tmp_path / "noise", 16))
    rng = np.random.default_rng(0)
    study = _with_trials(
        study,
        [
            trial if trial.value is None else replace(trial, values=(float(rng.normal()),))
            for trial in study.history.trials
        ],
    )
    with pytest.raises(NoDataError, match=r"15 results in 4\d parameters cannot tell which matter"):
        FIGURES["importance"](study)
    figure = FIGURES["parallel"](study)
    assert "the first parameters" in figure.caption
    assert figure.drawing is not None


def test_architecture_tells_operations_and_sizes(study: Study) -> None:
    words = _words(_drawing(study, "architectures"))
    assert words.count("stem") == words.count("head") == 3
    assert any("→" in text for text in words)
    assert sum(text.count("as trained)") for text in words) == 2 * 3
    row = {"op": "conv", "kernel": 5, "stride": 2, "in_channels": 8, "out_channels": 16,
           "layers": 2, "expansion": 6, "se_ratio": 8}  # fmt: skip
    assert block_lines(row) == ["conv", "5×5 /2", "8 → 16", "2 layers", "expand 6", "SE 1/8"]
    assert block_lines({**row, "skip": "pool"})[-1] == "skip pool"
    assert block_lines({**row, "skip": "none"}) == block_lines(row)
    assert block_lines({"units": 64, "rate": 0.1}) == ["block", "units 64", "rate 0.1"]


def _poor(tmp_path: Path, **settings: Any) -> Study:
    return open_study(
        make_folder(tmp_path / "poor", 12, "svm", trainer="nobodys:train", **settings)
    )


def test_a_poorer_sweep_leaves_figures_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = _poor(tmp_path, method="random")
    for name, why in {
        "architectures": "nobodys:train cannot be had",
        "attention": "no surrogate of all results",
        "lengthscales": "random has neither lengthscales nor a noise",
    }.items():
        with pytest.raises(NoDataError, match=why):
            FIGURES[name](study)


def test_lengthscales_by_name_and_position(study: Study) -> None:
    drawing = _drawing(study, "lengthscales")
    names, lengths = _words(drawing), study.explanation.lengthscales
    assert "learning_rate" in names
    assert "kernel_size" in names
    assert len(_dots(drawing)) == len(lengths)
    by_label = {dot.label.partition(":")[0]: dot for dot in _dots(drawing)}
    shortest, longest = (best(lengths, key=lambda one: lengths[one]) for best in (min, max))
    assert by_label[shortest].x < by_label[longest].x
    assert by_label["kernel_size[1]"].y == by_label["kernel_size[2]"].y
    caption = FIGURES["lengthscales"](study).caption
    assert (
        f"standard deviation of {number_text(study.explanation.noise_sd or 0.0)} in val" in caption
    )


def test_more_lengthscales_than_rows(study: Study) -> None:
    crowded = replace(study)
    names = [f"x{number}" for number in range(20)]
    vars(crowded)["explanation"] = Explanation(
        lengthscales={"x0": 99.0} | {name: 1.0 + len(name) for name in names[1:]}
    )
    figure = FIGURES["lengthscales"](crowded)
    assert figure.caption.endswith("end of the axis: 1. Left out, with longer ones: 4.")
    assert figure.drawing is not None
    assert len(_dots(figure.drawing)) == 16


def test_noise_alone_is_a_table(tmp_path: Path) -> None:
    figure = FIGURES["lengthscales"](_poor(tmp_path, method="tree"))
    assert figure.drawing is None
    assert "standard deviation of the noise" in figure.html
    assert "val_accuracy" in figure.caption


def test_a_model_without_either_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="independent has neither lengthscales nor a noise"):
        FIGURES["lengthscales"](_poor(tmp_path, method="independent"))


def test_a_method_that_is_not_installed_here_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = _poor(tmp_path, method="random")
    gone = replace(study.sweep, method="nobodys:Method")
    monkeypatch.setattr(study.folder, "settings", gone)
    with pytest.raises(NoDataError, match="the method nobodys:Method cannot be had here: no meth"):
        FIGURES["attention"](study)


def test_trainer_without_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain_trainer.py").write_text("def train(config):\n    return 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    study = open_study(make_folder(tmp_path / "a", 4, "svm", trainer="plain_trainer:train"))
    with pytest.raises(NoDataError, match="no summary"):
        FIGURES["architectures"](study)


def test_a_summary_that_fails_is_told(tmp_path: Path) -> None:
    study = open_study(make_folder(tmp_path / "a", 4, "svm", trainer="trainers.cifar10:train"))
    with pytest.raises(NoDataError, match=r"summary of trial \d+ failed \(InvalidArchitecture"):
        FIGURES["architectures"](study)


def test_large_sweeps_are_thinned_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nasbo.report.study.MAX_MARKS", 40)
    study = open_study(make_folder(tmp_path / "large", 100, "svm"))
    assert 30 < len(study.drawn) <= 40
    assert study.ranked[0].id in study.drawn
    figure = FIGURES["best-so-far"](study)
    assert figure.drawing is not None
    assert 20 < len(_dots(figure.drawing)) <= 40
    assert "of 100 trials" in figure.caption


def test_thousands_of_subspaces(tmp_path: Path) -> None:
    study = open_study(make_folder(tmp_path / "crowd", 40, "nas_cifar10_conditional"))
    present = sorted({trial.config["nums_block"] for trial in study.history.trials})
    assert [name for name, _ in study.group_legend()] == [f"nums_block={n}" for n in present]
    assert "21,760 subspaces are grouped" in FIGURES["subspaces"](study).caption
    for name in ("budget", "parallel", "timeline", "attention"):
        FIGURES[name](study)


def test_running_trials_reach_to_the_last_event(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "open", 8, "svm", budget=10)
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        play(search, search.ask(1)[0], 1_700_000_500.0)
        search.ask(1)
    study = open_study(folder)
    assert study.state == "interrupted"
    FIGURES["timeline"](study)


def test_versions_are_those_of_the_start(tmp_path: Path) -> None:
    study = _poor(tmp_path)
    settings = study.history.settings
    assert settings is not None
    study.history.settings = replace(settings, notes={"versions": {"ray": "1.2.3"}})
    figure = FIGURES["settings"](study)
    assert "<p>ray 1.2.3</p>" in figure.html
    assert "with which the sweep began" in figure.caption
    study.history.settings = replace(settings, notes={})
    figure = FIGURES["settings"](study)
    assert f"Python {platform.python_version()}" in figure.html
    assert "with which this page was made" in figure.caption


def test_command_repeats_the_sweep(tmp_path: Path) -> None:
    study = _poor(
        tmp_path, seed=3, batch=2, method_options={"preset": "paper"}, time_limit_s=90.0,
        trainer_options={"recipe": "proxy", "deep": "yes", "sizes": [1, 2]},
    )  # fmt: skip
    command = repeat_command(study)
    for part in ("--trainer nobodys:train", "--trials 12", "-m preset=paper", "-o recipe=proxy",
                 "--seed 3", "--batch 2", "--time-limit 90", "--mode max",
                 "'deep=\"yes\"'", "'sizes=[1, 2]'"):  # fmt: skip
        assert part in command, command
    assert "working" not in command
    assert "--share" not in command
    study.history.budget = 19
    assert "--trials 19" in repeat_command(study)
    assert "19 (begun with 12)" in FIGURES["settings"](study).html


def test_command_gives_every_setting_an_option_that_exists(tmp_path: Path) -> None:
    every = {
        "seed": 3, "batch": 2, "time_limit_s": 90.5, "share": 0.5, "deadline_s": 7.25, "slots": 2,
        "schedule": "async", "cpus_per_trial": 2, "gpus_per_trial": 0.5, "max_failures": 1,
        "max_failures_in_a_row": 4, "report_timeout_s": 60.0, "keep_checkpoints": 1,
        "stop_at": 0.123456789, "warm_start": "other", "method_options": {"preset": "paper"},
        "trainer_options": {"recipe": "proxy"}, "constraints": ["params <= 1e6", "flops<=2e8"],
        "repeats": 2, "repeat_top": 4, "resources": {"spot": 0.5},
        "rungs": [2, 6, 18], "eta": 4, "keep_paused": 7, "features": ["params", "flops"],
        "objectives": ["val_accuracy max", "flops min"],
        "callbacks": ["mine:Calls"], "begin": [{"C": 1.0, "kernel": "linear"}],
    }  # fmt: skip
    study = _poor(tmp_path, **every)
    untold = {"space", "trainer", "trials", "method", "metric", "mode"}
    untold |= {"address", "working_folder", "storage_path", "provenance"}
    assert {item.name for item in fields(Sweep)} == set(every) | untold
    _, _, *words = shlex.split(repeat_command(study))
    parsed = cli.commands["run"].make_context("run", words).params
    for name, value in every.items():
        told = parsed[name]
        if name in ("rungs", "features"):
            assert told == ",".join(map(str, value))
        elif name == "begin":
            assert told == str(study.folder.path / "sweep.yaml")
            assert study.sweep.begin == value
        elif isinstance(value, list):
            assert told == tuple(value)
        elif isinstance(value, dict):
            assert told == tuple(f"{key}={item}" for key, item in value.items())
        elif isinstance(value, float):
            assert float(told) == value
        else:
            assert told == value or told == str(value)
