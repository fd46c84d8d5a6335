"""Final output of a run: the best trial as text, and its picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.methods import Suggestion
from nasbo.report.plots import plot_best_so_far
from nasbo.report.result import describe_best
from nasbo.search import Search
from nasbo.trainer import Trainer


def _text(search: Search, summary: dict[str, Any] | None = None) -> str:
    trainer = Trainer("own:train", lambda config: 1.0, False, summary=lambda config: summary or {})
    best = search.history.best
    assert best is not None
    text = io.StringIO()
    Console(file=text, width=160).print(describe_best(search.history, best, trainer))
    return text.getvalue()


def test_best_config_and_network() -> None:
    search = Search("nas_cifar10", method="random", mode="max")
    (trial,) = search.ask(1)
    search.tell(trial, 0.4242)
    rows = [{"op": "conv", "out": 16}, {"op": "[/dw]", "out": 32}]
    shown = _text(search, {"parameters": 1_234_567, "flops": 1.5e6, "rows": rows, "name": "x"})
    assert "best: trial 0, value 0.4242 (nums_block=4)" in shown
    assert all(name in shown for name in trial.config)
    assert " ".join(map(str, trial.config["conv_op"])) in shown
    assert "network: parameters: 1,234,567, flops: 1.5e+06" in shown
    assert "[/dw]" in shown


def test_a_finalist_is_told_by_its_trial_of_the_search_on_one_line() -> None:
    search = Search("svm", method="random")
    search.ask(1)
    (trial,) = search.add_round(
        [Suggestion(search.trials[0].config, "design", {"search_trial": 25})], 0
    )
    search.tell(trial, 1.0)
    best, text = search.history.best, io.StringIO()
    assert best is not None
    numbers = {f"a_long_name_{n}": n for n in range(9)}
    trainer = Trainer("own:train", lambda config: 1.0, False, summary=lambda config: numbers)
    told = describe_best(search.history, best, trainer)
    Console(file=text, width=60).print(told, crop=False)
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("best: finalist 2 (trial 25), value 1")
    (line,) = (line for line in lines if line.startswith("network: "))
    assert line.endswith("a_long_name_8: 8")


def test_rows_with_different_columns_stay_under_their_names() -> None:
    search = Search("svm", method="random")
    search.tell(search.ask(1)[0], 1.0)
    stem, block = {"op": "stem", "out": 16}, {"op": "conv", "skip": "pool", "out": 32}
    *_, head, first, second = _text(search, {"rows": [stem, block]}).splitlines()
    assert head.split() == ["op", "skip", "out"]
    assert second.split() == ["conv", "pool", "32"]
    assert first.split() == ["stem", "16"]
    assert first.index("16") == head.index("out") == second.index("32")


def test_values_are_not_markup() -> None:
    space = {"a": {"type": "choice", "range": ["[/x]"], "submodule": {"[/x]": None}}}
    search = Search(space, method="random")
    search.tell(search.ask(1)[0], 1.0)
    assert _text(search).count("[/x]") == 2


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (lambda config: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: {}, "TypeError: "),
        (lambda config: "words", "AttributeError: 'str' object has no attribute"),
    ],
)
def test_a_summary_that_fails_is_said_in_a_line(summary: Any, words: str) -> None:
    search = Search("svm", method="random")
    search.tell(search.ask(1)[0], 1.0)
    best = search.history.best
    assert best is not None
    trainer = Trainer("own:train", lambda config: 1.0, False, summary=summary)
    text = io.StringIO()
    Console(file=text, width=160).print(describe_best(search.history, best, trainer))
    assert "best: trial 0, value 1" in text.getvalue()
    assert f"network: not known here ({words}" in text.getvalue()


def test_without_a_trainer() -> None:
    search = Search("nas_cifar10_conditional", method="random")
    search.tell(search.ask(1)[0], 2.0)
    best = search.history.best
    assert best is not None
    text = io.StringIO()
    Console(file=text, width=160).print(describe_best(search.history, best, None))
    assert "value 2" in text.getvalue()
    assert "network" not in text.getvalue()


def test_picture(tmp_path: Path) -> None:
    search = Search("svm", method="random")
    plot_best_so_far(search.history, tmp_path / "empty.png")
    for trial in search.ask(12):
        search.tell(
            trial, float(trial.id) if trial.id % 3 else None, error=None if trial.id % 3 else "lost"
        )
    plot_best_so_far(search.history, tmp_path / "best.png", "title", "loss")
    for name in ("empty.png", "best.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "best.png").stat().st_size > (tmp_path / "empty.png").stat().st_size
