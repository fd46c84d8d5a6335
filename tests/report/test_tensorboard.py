"""TensorBoard output, read back from the event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from nasbo.errors import NasboError
from nasbo.history import History
from nasbo.methods import Suggestion
from nasbo.report.attention import AttentionMap
from nasbo.report.tensorboard import (
    TensorboardLog,
    clean_curve,
    hyperparameters,
    write_tensorboard,
)
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.sample import history_of, make_folder, play


def _read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "scalars": 0})
    found.Reload()
    return found


def _hparams(folder: Path) -> dict[str, Any]:
    content = _read(folder).SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    stored = HParamsPluginData.FromString(content).session_start_info.hparams
    return {name: getattr(value, value.WhichOneof("kind")) for name, value in stored.items()}


def test_curve_table_and_maps(folder: Path, tmp_path: Path) -> None:
    history = history_of(folder)
    folder = write_tensorboard(tmp_path, history, "val_accuracy")
    assert folder == tmp_path / "tensorboard"
    found = _read(folder)
    curve = [(event.step, event.value) for event in found.Scalars("best/val_accuracy")]
    assert [step for step, _ in curve] == list(range(1, 25))
    assert [value for _, value in curve] == pytest.approx(history.best_so_far())
    maps = [name for name in found.Tags()["images"] if name.startswith("attention/7 units")]
    assert len(maps) == 1
    (image,) = found.Images(maps[0])
    assert image.step == len(history.rounds) - 1
    assert image.width > 300
    runs = sorted((folder / "trials").iterdir())
    assert len(runs) == 24
    assert len([run for run in runs if "_hparams_/session_start_info" in _metadata(run)]) == 22
    trial = history.trials[int(runs[3].name)]
    (value,) = _read(runs[3]).Scalars("hparam/val_accuracy")
    assert value.value == pytest.approx(trial.value)
    row = _hparams(runs[3])
    assert row["learning_rate"] == pytest.approx(trial.config["learning_rate"])
    assert row["conv_op[2]"] == trial.config["conv_op"][1]
    assert row["subspace"] == history.subspace(trial).id


def _metadata(folder: Path) -> list[str]:
    return list(_read(folder).summary_metadata)


def _curve(folder: Path, number: int, metric: str = "value") -> list[tuple[int, float]]:
    run = _read(folder / "tensorboard" / "trials" / f"{number:05d}")
    if metric not in run.Tags()["scalars"]:
        return []
    return [(event.step, event.value) for event in run.Scalars(metric)]


def test_curves_of_trials_come_from_the_journal_unless_the_trainer_wrote_them(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path / "run", 10, "svm", method="random")
    own = folder / "trials" / "00004" / "logs"
    own.mkdir(parents=True)
    (own / "events.out.tfevents.1.host").touch()
    history = history_of(folder)
    write_tensorboard(folder, history, "val_accuracy", method="random")
    for number in (0, 3, 8):  # the last of them has failed
        curve = history.trials[number].curve
        assert len(curve) == 3
        assert _curve(folder, number, "val_accuracy") == [(s, pytest.approx(v)) for s, v in curve]
    assert _curve(folder, 4, "val_accuracy") == []
    assert _hparams(folder / "tensorboard" / "trials" / "00004")["trial"] == 4


def test_a_trial_that_was_begun_again_has_one_curve(tmp_path: Path) -> None:
    assert clean_curve([(1, 0.1), (2, 0.2), (3, 0.3), (2, 0.25)]) == [(1, 0.1), (2, 0.25)]
    with Search("svm", "random", journal=tmp_path / JOURNAL_FILE) as search:
        (trial,) = search.ask(1)
        for step, value in ((1, 0.5), (2, 0.25), (1, 0.75)):
            search.report(trial, step, value, {})
        search.tell(trial, 0.75)
        write_tensorboard(tmp_path, search.history, method="random")
    assert _curve(tmp_path, 0) == [(1, 0.75)]


def test_maps_of_the_paper_come_once_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = AttentionMap("svm", ("a", "b"), [[0.5, 0.5], [0.1, 0.9]], "trained encoder")
    asked: list[int] = []

    def maps(history: History, *_: Any) -> list[AttentionMap]:
        asked.append(history.n_ended)
        return [one]

    monkeypatch.setattr("nasbo.report.tensorboard.attention_maps", maps)
    for n_trials, expected in ((8, []), (12, [12])):
        folder = make_folder(tmp_path / str(n_trials), n_trials, "svm", method="random", budget=12)
        log = TensorboardLog(folder, options={"preset": "paper"})
        log.update(history_of(folder))
        assert asked == []
        log.close()
        log.close()
        assert asked == expected
    assert _read(folder / "tensorboard").Tags()["images"] == ["attention/svm"]


def test_only_news_are_written_and_a_new_run_takes_the_old_ones_place(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 8, "svm", method="random", budget=12)
    for n_more in (1, 2):
        log = TensorboardLog(folder, method="random")
        with Search("svm", "random", "max", journal=folder / JOURNAL_FILE) as search:
            log.update(search.history)
            for _ in range(n_more):
                play(search, search.open_round(1)[0], 1_700_000_900.0)
                log.update(search.history)
            log.update(search.history)
        log.close()
    found = _read(folder / "tensorboard")
    steps = [event.step for event in found.Scalars("best/value")]
    assert steps == list(range(1, 12))
    assert found.Tags()["images"] == []
    for run in (folder / "tensorboard" / "trials").iterdir():
        assert len(list(run.glob("events.*"))) == 1


def test_maps_come_every_k_rounds(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 4, "svm", budget=40)
    log = TensorboardLog(folder, maps_every=2)
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        for number in range(1, 6):
            rows = [search.space.subspace(0).decode([number / 10] * 9)]
            for trial in search.add_round([Suggestion(row) for row in rows], 1.0):
                play(search, trial, 1_700_000_900.0 + number)
            log.update(search.history)
    log.close()
    found = _read(folder / "tensorboard")
    steps = {event.step for tag in found.Tags()["images"] for event in found.Images(tag)}
    assert steps == {1, 3, 5}


def test_absent_entries_are_told(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 4, "nas_cifar10_conditional")
    history = history_of(folder)
    row = hyperparameters(history, history.trials[0])
    assert None not in row.values()
    assert row["trial"] == 0


def test_nothing_yet_writes_nothing(tmp_path: Path) -> None:
    write_tensorboard(tmp_path, Search("svm", method="random").history)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NasboError, match="maps_every >= 0"):
        TensorboardLog(tmp_path, maps_every=-1)
