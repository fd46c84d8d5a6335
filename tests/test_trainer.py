"""Lookup of trainers by ``module:function``, and causes of exceptions."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import trainers.session
from nasbo.errors import SweepError
from nasbo.trainer import Session, cause_of, load_trainer
from trainers.session import LocalSession

_numbers = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Function that writes a module with a new name into its own folder."""
    monkeypatch.setattr("sys.path", list(sys.path))

    def write(text: str) -> str:
        name = f"own_trainer_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


class Told:
    folder, seed = Path(), 0
    options: Mapping[str, Any] = {"scale": 2}

    def report(self, metrics: dict[str, float]) -> None: ...


@pytest.mark.parametrize(
    ("signature", "takes_session"),
    [
        ("config", False),
        ("config, session", True),
        ("config, session=None", True),
        ("config, scale=1", False),
        ("config, /", False),
        ("config, *, scale=1", False),
        ("config, own_name", True),
    ],
)
def test_signatures(
    signature: str, takes_session: bool, module: Callable[[str], str], tmp_path: Path
) -> None:
    name = module(f"def train({signature}):\n    return config['x'] * 2\n")
    trainer = load_trainer(f"{name}:train", tmp_path)
    assert trainer.takes_session is takes_session
    assert trainer({"x": 3}, Told()) == 6


def test_what_the_module_offers(module: Callable[[str], str], tmp_path: Path) -> None:
    name = module(
        "METRIC, MODE = 'accuracy', 'max'\n"
        "def train(config): return 1.0\n"
        "def summary(config): return {'n': 1}\n"
        "def fingerprint(config): return 'f'\n"
        "def check(config): raise ValueError('no')\n"
    )
    trainer = load_trainer(f"{name}:train", tmp_path)
    assert (trainer.metric, trainer.mode) == ("accuracy", "max")
    assert trainer.summary is not None
    assert trainer.summary({}) == {"n": 1}
    assert trainer.fingerprint is not None
    assert trainer.fingerprint({}) == "f"
    assert trainer.check is not None
    plain = load_trainer(f"{module('def train(config): return 1')}:train", tmp_path)
    assert (plain.metric, plain.summary, plain.check) == (None, None, None)


def test_a_check_may_take_the_options(module: Callable[[str], str], tmp_path: Path) -> None:
    begin = "def train(config): return 1.0\n"
    old = module(begin + "def check(config): raise ValueError(config)\n")
    new = module(begin + "def check(config, options): raise ValueError(options)\n")
    for name, words in ((old, "'x': 1"), (new, "'n': 2")):
        with pytest.raises(ValueError, match=words):
            load_trainer(f"{name}:train", tmp_path).check_config({"x": 1}, {"n": 2})
    load_trainer(f"{module(begin)}:train", tmp_path).check_config({"x": 1}, {"n": 2})


def test_module_of_the_working_directory(
    module: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_trainer(f"{module('def go(config): return 5')}:go")({}, Told()) == 5


@pytest.mark.parametrize(
    "path", ["", "module", ":train", "module:", "a b", "./x.py:train", "a/b:f", "..:f"]
)
def test_not_module_and_function(path: str) -> None:
    with pytest.raises(SweepError, match="must be module:function, got"):
        load_trainer(path)


@pytest.mark.parametrize("path", ["no_such_module:train", "nasbo.no_such:train"])
def test_missing_module(path: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"no module|No module"):
        load_trainer(path, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def other(config): pass", "has no function 'train'; it has: other"),
        ("train = 3", "has no function 'train'"),
        ("def train(): pass", "must take"),
        (
            "import json\n\nimport numppy",
            r":train cannot be imported: own_trainer_\d+.py:3: "
            "ModuleNotFoundError: No module named 'numppy'",
        ),
        (
            "import json.no_part",
            r"own_trainer_\d+.py:1: ModuleNotFoundError: No module named 'json",
        ),
        ("1 / 0", r"own_trainer_\d+.py:1: ZeroDivisionError: division by zero"),
        ("x = 1\n\ndef (", r"cannot be imported: own_trainer_\d+.py:3: SyntaxError: invalid"),
        ("def f():\nx = 1", r"own_trainer_\d+.py:2: IndentationError: expected an indented block"),
        ("\nimport json\njson.loads('{')", r"own_trainer_\d+.py:3: JSONDecodeError: Expecting"),
        ("\nimport numpy\nnumpy.zeros(-1)", r"own_trainer_\d+.py:3: ValueError: negative dim"),
        ("import sys\nsys.exit(3)", r"own_trainer_\d+.py:2: SystemExit: 3"),
        ("\neval('1 +')", r"own_trainer_\d+.py:2: SyntaxError: invalid syntax"),
        ("MODE = 'MAX'\ndef train(config): ...", r"\d: MODE must be 'min' or 'max', got 'MAX'"),
        ("MODE = 'maximize'\ndef train(config): ...", "MODE must be 'min' or 'max'"),
        ("METRIC = 3\ndef train(config): ...", "METRIC must be text, got 3"),
    ],
)
def test_broken_modules(
    text: str, words: str, module: Callable[[str], str], tmp_path: Path
) -> None:
    with pytest.raises(SweepError, match=words):
        load_trainer(f"{module(text)}:train", tmp_path)


def test_a_fault_in_what_a_module_imports_is_that_files(
    module: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "helpers_of_mine").mkdir()
    (tmp_path / "helpers_of_mine" / "deep.py").write_text("x = 1\n\nx = = 2\n")
    name = module("import helpers_of_mine.deep\ndef train(config): return 1.0\n")
    with pytest.raises(SweepError, match=r": helpers_of_mine/deep.py:3: SyntaxError: invalid"):
        load_trainer(f"{name}:train", tmp_path)
    (tmp_path / "helpers_of_mine" / "deep.py").write_text("\nimport helpers_of_mine.typo\n")
    with pytest.raises(SweepError, match=r"deep.py:2: ModuleNotFoundError: .*of_mine.typo'"):
        load_trainer("helpers_of_mine.deep:train", tmp_path)


def test_builtin_without_signature() -> None:
    assert load_trainer("builtins:max").takes_session is False


class OutOfMemoryError(RuntimeError):
    """Stands in for that of torch, which is known by its name."""


class DivergedError(RuntimeError):
    cause = "diverged"


class BoastingError(RuntimeError):
    cause = "boredom"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (MemoryError(), "oom"),
        (OutOfMemoryError(), "oom"),
        (FloatingPointError(), "diverged"),
        (OverflowError(), "diverged"),
        (ZeroDivisionError(), "diverged"),
        (DivergedError(), "diverged"),
        (BoastingError(), "crashed"),
        (ValueError(), "crashed"),
        (KeyboardInterrupt(), "crashed"),
    ],
)
def test_causes(error: BaseException, cause: str) -> None:
    assert cause_of(error) == cause


def test_sessions_say_how_often_memory_was_short(tmp_path: Path) -> None:
    """The promise of the README is in both protocols, and in the sessions that trainers get."""
    assert "n_out_of_memory" in Session.__annotations__
    assert hasattr(trainers.session.Session, "n_out_of_memory")
    assert LocalSession(tmp_path).n_out_of_memory == 0


def test_a_file_in_place_of_a_module_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "mine_by_file.py").write_text("def train(config): return 0.0\n")
    with pytest.raises(SweepError, match=r"did you mean mine_by_file:train\?"):
        load_trainer("mine_by_file.py:train", tmp_path)
