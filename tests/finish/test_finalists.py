"""Choice of finalists, and the queue of the sweep that trains them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from nasbo.cli import cli
from nasbo.errors import SweepError
from nasbo.finish.card import describe_finalists, searched_text
from nasbo.finish.finalist import Finalist
from nasbo.finish.finalists import (
    FINAL_FOLDER,
    Wish,
    choose_finalists,
    final_folder,
    final_sweep,
    open_search,
    partial_text,
    prepare_final,
)
from nasbo.finish.finalize import _decider, _pick, finalize
from nasbo.history import Run
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE, open_journal, open_mirror
from nasbo.sweeps.checks import check_provenance
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import load_trainer
from tests.finish import able
from tests.rung_search import make, make_rung_folder, train
from tests.tune.toy import simulation

CONSOLE = Console(quiet=True)
TRAINER = "tests.finish.able:train"


def searched(folder: Path, trainer: str = TRAINER, n: int = 9, **settings: Any) -> Path:
    """A sweep that has ended, run without Ray."""
    sweep = Sweep(
        space="simulation", trainer=trainer, method="random", trials=n, metric="loss",
        slots=2, cpus_per_trial=0.5, trainer_options={"a": 1}, **settings,
    )  # fmt: skip
    create_folder(folder, sweep)
    journal = open_journal(folder)
    with Search("simulation", "random", journal=journal, notes=sweep.notes()) as search:
        for trial in search.ask(n):
            search.tell(trial, simulation(trial.config))
    return folder


def test_finalists_are_the_best_of_different_networks(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s", n=40)
    history = open_search(folder).history
    trainer = load_trainer(TRAINER)
    assert trainer.fingerprint is not None
    chosen = choose_finalists(history, trainer, 5)
    values = [trial.value or 0.0 for trial in chosen]
    assert values == sorted(values)
    assert len({trainer.fingerprint(trial.config) for trial in chosen}) == 5
    assert chosen[0] is history.best
    blind = replace(trainer, fingerprint=None)
    assert choose_finalists(history, blind, 5) == history.ranked()[:5]


def test_settings_of_the_finalists_sweep(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s", constraints=["params<=1"], repeats=2)
    sweep = open_search(folder).settings
    wish = Wish(recipe="short", options={"x": 2}, settings={"slots": 1})
    final = final_sweep(folder, sweep, load_trainer(TRAINER), wish)
    assert final.trainer_options == {"recipe": "short", "is_final": True, "x": 2}
    assert (final.metric, final.slots, final.constraints, final.repeats) == ("final_loss", 1, [], 0)
    plain = final_sweep(folder, sweep, load_trainer("tests.tune.toy:simulation"), wish)
    assert plain.trainer_options == {"a": 1, "recipe": "short", "x": 2}
    assert plain.metric == "loss"


def test_the_final_metric_has_the_mode_of_the_trainer(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s")
    found = open_search(folder)
    wish = Wish(choose="test")
    turned = replace(found.settings, metric="accuracy", mode="max")
    final = final_sweep(folder, turned, load_trainer(TRAINER), wish)
    assert (final.metric, final.mode) == ("final_loss", "min")
    ranked = found.history.ranked()
    finalists = [Finalist(k, trial, [trial], {}) for k, trial in enumerate(reversed(ranked))]
    assert _decider(turned, final, wish) == "test"
    assert _pick(finalists, final, "test").trial is ranked[0]
    plain = final_sweep(folder, turned, load_trainer("tests.tune.toy:simulation"), wish)
    assert (plain.metric, plain.mode) == ("accuracy", "max")


def prepare(folder: Path, wish: Wish) -> None:
    found = open_search(folder)
    chosen = choose_finalists(found.history, found.trainer, wish.top)
    planned = final_sweep(folder, found.settings, found.trainer, wish)
    prepare_final(final_folder(found), planned, chosen, wish.seeds)


def test_the_queue_is_written_once_and_can_grow(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s")
    for seeds in (2, 2, 3):
        prepare(folder, Wish(top=2, seeds=seeds))
        history = SweepFolder(folder / FINAL_FOLDER).history
        assert history.budget == len(history.trials) == 2
        assert [len(trial.repeats) for trial in history.trials] == [seeds - 1] * 2
    found = open_search(folder).history
    assert found.best is not None
    assert history.trials[0].config == found.best.config
    assert history.trials[0].info["search_trial"] == found.best.id
    assert len(history.open_runs) == 6


def test_whole_numbers_of_finalists_are_printed_as_such(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s")
    held = SweepFolder(folder)
    trial = held.trials[0]
    facts = {"params": 33_800.0, "flops": 1_234_567, "latency_ms": 1.23456}
    one = Finalist(1, trial, list(trial.runs), facts)
    console = Console(record=True, width=120)
    console.print(describe_finalists([one], one, held.settings))
    text = console.export_text()
    assert all(words in text for words in ("33,800", "1,234,567", "1.235"))


def test_other_options_and_other_finalists_are_refused(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s")
    prepare(folder, Wish(top=2))
    with pytest.raises(SweepError, match="was begun with recipe=usual, is_final=True, not with"):
        prepare(folder, Wish(top=2, recipe="other"))
    with pytest.raises(SweepError, match="holds other finalists"):
        prepare(folder, Wish(top=3))


def test_sweeps_without_results_or_still_running_are_refused(tmp_path: Path) -> None:
    sweep = Sweep(space="simulation", trainer=TRAINER, trials=3)
    create_folder(tmp_path / "empty", sweep)
    with pytest.raises(SweepError, match="nothing has finished yet, so there are no finalists"):
        open_search(tmp_path / "empty")
    folder = searched(tmp_path / "s")
    with (
        Search("simulation", "random", journal=folder / JOURNAL_FILE),
        pytest.raises(SweepError, match="is still running"),
    ):
        open_search(folder)


def test_a_sweep_in_a_bucket_has_its_finalists_and_its_best_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path}/bucket/first"
    folder = searched(open_mirror(url))

    def train(final: SweepFolder, *_: Any) -> int:
        """Train as workers would, on their own disks."""
        with Search("simulation", "random", journal=open_journal(final.path)) as search:
            for trial in search.trials:
                name = f"bucket/first/final/trials/{trial.id:05d}"
                (tmp_path / name).mkdir(parents=True)
                (tmp_path / name / "weights.txt").write_text(f"{trial.id} trained")
                search.tell(trial, float(trial.id))
        return 0

    monkeypatch.setattr("nasbo.finish.finalize.run_in_words", train)
    done = CliRunner().invoke(cli, ["finalize", url, "--top", "2"])
    assert done.exit_code == 0, done.output
    assert f"{url}/best" in done.output
    stored = tmp_path / "bucket" / "first"
    assert (stored / "best" / "network.txt").read_text() == "0 trained"
    assert f"nasbo finalize {url} --top 2" in (stored / "best" / "README.md").read_text()
    assert (stored / "final" / "sweep.yaml").exists()
    assert not (folder / FINAL_FOLDER).exists()
    history = SweepFolder(open_mirror(f"{url}/final")).history
    assert [trial.state for trial in history.trials] == ["finished"] * 2
    with (
        Search("simulation", "random", journal=open_journal(folder)),
        pytest.raises(SweepError, match=f"{url}: is still running"),
    ):
        open_search(folder)


def test_the_command_is_what_was_wished() -> None:
    wish = Wish(2, "strong", 3, {"epochs": 5, "data": "a b"})
    assert wish.command("runs/x") == (
        "nasbo finalize runs/x --top 2 --recipe strong --seeds 3 --choose validation "
        "-o epochs=5 -o 'data=\"a b\"'"
    )


@pytest.fixture
def unfinished(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """End a sweep whose finalists are not trained: their sweep is interrupted at once."""
    monkeypatch.setattr("nasbo.finish.finalize.run_in_words", lambda *_: 130)
    return lambda folder: finalize(folder, Wish(top=2), CONSOLE)


def test_finalists_have_the_data_of_their_own_options(
    tmp_path: Path, unfinished: Callable[[Path], int]
) -> None:
    folder = searched(tmp_path / "s", provenance={"data_hash": "abc123", "n_train": 40})
    for _ in range(2):
        assert unfinished(folder) == 130
    final = SweepFolder(folder / FINAL_FOLDER).settings
    assert final.provenance == {"data_hash": "abc123", "n_train": 50}
    check_provenance(folder / FINAL_FOLDER, final, CONSOLE)  # as a resume does


@pytest.mark.parametrize("is_begun", [False, True])
def test_finalists_on_other_data_are_refused(
    tmp_path: Path,
    unfinished: Callable[[Path], int],
    monkeypatch: pytest.MonkeyPatch,
    is_begun: bool,
) -> None:
    known = {} if is_begun else {"data_hash": "abc123", "n_train": 40}
    folder = searched(tmp_path / "s", provenance=known)
    if is_begun:
        unfinished(folder)
    monkeypatch.setattr(able, "HASH", "changed")
    with pytest.raises(SweepError, match="data_hash = abc123, the data here have changed"):
        unfinished(folder)
    assert (folder / FINAL_FOLDER).exists() is is_begun


def test_silence_of_finalists_is_not_that_of_the_search(tmp_path: Path) -> None:
    folder = searched(tmp_path / "s", report_timeout_s=5.0, time_limit_s=9.0)
    found = open_search(folder)
    sweep, trainer = found.settings, load_trainer(TRAINER)
    chosen = choose_finalists(found.history, trainer, 2)
    for settings, timeout_s in (({}, None), ({"report_timeout_s": 60.0}, 60.0), ({}, None)):
        planned = final_sweep(folder, sweep, trainer, Wish(top=2, settings=settings))
        assert (planned.report_timeout_s, planned.time_limit_s) == (timeout_s, None)
        _, final = prepare_final(final_folder(found), planned, chosen, 1)
        assert final.report_timeout_s == timeout_s


def test_the_command_takes_a_time_for_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes: list[Wish] = []

    def told(folder: Path, wish: Wish, console: Console) -> int:
        wishes.append(wish)
        return 0

    monkeypatch.setattr("nasbo.finish.finalize.finalize", told)
    words = ["finalize", str(tmp_path), "--report-timeout", "2m"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert wishes[0].settings == {"report_timeout_s": 120.0}


def test_finalists_are_topped_up_by_those_trained_furthest(tmp_path: Path) -> None:
    folder = make_rung_folder(tmp_path / "s", 8, n=40, space="simulation", trainer=TRAINER)
    history = open_search(folder).history
    blind = replace(load_trainer(TRAINER), fingerprint=None)
    n_full = len(history.ranked())
    assert 0 < n_full < 5, "else this shows nothing"
    assert choose_finalists(history, blind, n_full) == history.ranked()
    assert partial_text(history, history.ranked()) == ""
    chosen = choose_finalists(history, blind, n_full + 2)
    assert chosen[:n_full] == history.ranked()
    paused = [trial.partial for trial in chosen[n_full:]]
    assert [one.step for one in paused if one] == [6, 6]
    told = partial_text(history, chosen)
    assert told.startswith("too few were trained in full; the furthest of the others follow: ")
    assert told.count("at step 6 of 18") == 2


def test_finalists_of_a_search_without_any_full_training(tmp_path: Path) -> None:
    folder = make_rung_folder(tmp_path / "s", 8, n=6, space="simulation", trainer=TRAINER)
    found = open_search(folder)
    chosen = choose_finalists(found.history, replace(found.trainer, fingerprint=None), 2)
    assert [trial.value for trial in chosen] == [None, None]
    planned = final_sweep(folder, found.settings, found.trainer, Wish(top=2))
    final, _ = prepare_final(final_folder(found), planned, chosen, 1)
    for rank, trial in enumerate(final.history.trials, start=1):
        last = chosen[rank - 1].partial
        assert last is not None
        shown = searched_text(Finalist(rank, trial, [], {}))
        assert shown == f"{last.value:.4f} at step {last.step}"


def test_a_trial_that_failed_later_is_no_finalist(tmp_path: Path) -> None:
    one = make(100)
    while not isinstance(run := one.next(1), Run) or not run.resumed_from:
        train(one, run)
    one.on_end(run.number, math.nan, step=run.resumed_from + 1)
    history = one.search.history
    assert history.trial(run.number).partial is not None
    blind = replace(load_trainer(TRAINER), fingerprint=None)
    assert run.number not in [trial.id for trial in choose_finalists(history, blind, 100)]
