"""Two processes that share a trial compute what one process does with the halves in turn."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from trainers import ranks
from trainers.architecture import InvalidArchitecture
from trainers.ranks import Group, RankFailed
from trainers.session import LocalSession
from trainers.train import CHECKPOINT, train

pytestmark = pytest.mark.usefixtures("cache")
Make = Callable[..., dict[str, Any]]
OPTIONS = {
    "recipe": "tiny",
    "is_tensorboard": False,
    "precision": "float64",
    "epochs": 1,
    "n_train": 640,
    "cutout": 8,
    "mixup": 0.4,
    "ema_decay": 0.9,
    "label_smoothing": 0.1,
}


def _trained(folder: Path, config: dict[str, Any], **options: Any) -> LocalSession:
    n_out_of_memory = options.pop("n_out_of_memory", 0)
    session = LocalSession(folder, 0, {**OPTIONS, **options})
    session.n_out_of_memory = n_out_of_memory
    train(config, session)
    return session


def test_a_users_own_package_of_that_name_is_not_in_the_way(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trainers").mkdir()
    (tmp_path / "trainers" / "__init__.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # as Ray does with a shipped folder
    config = uniform_config(0, conv_op=[0] * 4, expand_ratio=[5] * 4, seratio=[0] * 4)
    session = _trained(tmp_path / "trial", config, ranks=2, n_train=128)
    assert session.reports[-1]["n_ranks"] == 2


def test_two_ranks_equal_one_process_that_accumulates_two_halves(
    tmp_path: Path, uniform_config: Make
) -> None:
    config = uniform_config(0, conv_op=[0, 1, 2, 3], expand_ratio=[5] * 4, seratio=[8, 0, 8, 8])
    ranks = _trained(tmp_path / "ranks", config, ranks=2)
    parts = _trained(tmp_path / "parts", config, n_out_of_memory=1)
    states = [
        torch.load(session.folder / CHECKPOINT, weights_only=True) for session in (ranks, parts)
    ]
    assert [state["plain"]["step"] for state in states] == [20, 20]
    for name in ("network", "average"):
        for key, value in states[0][name].items():
            assert value.dtype in (torch.float64, torch.int64)
            if value.is_floating_point():  # with the running statistics
                assert (value - states[1][name][key]).abs().max() <= 1e-8, key
    for key in ("val_loss", "train_loss", "train_accuracy"):
        assert ranks.reports[-1][key] == pytest.approx(parts.reports[-1][key], abs=1e-8)
    modes = [session.reports[-1]["batch_norm"] for session in (ranks, parts)]
    assert modes == ["each of 2 parts of a batch by itself"] * 2
    assert [session.reports[-1]["n_ranks"] for session in (ranks, parts)] == [2, 1]


def test_halves_are_not_the_whole(tmp_path: Path, uniform_config: Make) -> None:
    """The comparison above can fail: batch normalisation over the whole
    batch gives another result.
    """
    whole = _trained(tmp_path / "whole", uniform_config(0))
    parts = _trained(tmp_path / "parts", uniform_config(0), n_out_of_memory=1)
    assert whole.reports[-1]["batch_norm"] == "whole batch"
    assert abs(whole.reports[-1]["val_loss"] - parts.reports[-1]["val_loss"]) > 1e-6


@pytest.mark.slow
def test_ranks_continue_from_the_checkpoint_of_the_first(
    tmp_path: Path, uniform_config: Make
) -> None:
    config, options = uniform_config(0), {"epochs": 2, "ranks": 2}
    whole = _trained(tmp_path / "whole", config, **options)
    broken = LocalSession(tmp_path / "parts", 0, {**OPTIONS, **options})

    def stop(metrics: dict[str, Any], step: int) -> bool:
        raise KeyError("the machine was taken away")

    broken.report = stop  # type: ignore[method-assign]
    with pytest.raises(KeyError):
        train(config, broken)
    again = _trained(tmp_path / "parts", config, **options)
    assert [report["epoch"] for report in again.reports] == [2]
    assert again.reports[-1]["val_loss"] == pytest.approx(whole.reports[-1]["val_loss"], abs=1e-9)


def test_ranks_that_are_told_to_pause_end_together_and_go_on(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, options = uniform_config(0), {**OPTIONS, "epochs": 3, "n_train": 128, "ranks": 2}
    whole = LocalSession(tmp_path / "whole", 0, options)
    train(config, whole)
    codes: list[int | None] = []

    def end(children: Sequence[subprocess.Popen[str]]) -> None:
        for child in children:
            codes.append(child.wait(60))  # of its own accord: its input is still open
        ending(children)

    ending = ranks._end
    monkeypatch.setattr(ranks, "_end", end)
    reports = []
    for until in (1, 2, None):
        part = LocalSession(tmp_path / "parts", 0, options, until)
        train(config, part)
        reports += part.reports
    assert codes == [0, 0, 0]
    assert [report["epoch"] for report in reports] == [1, 2, 3]
    for one, other in zip(whole.reports, reports, strict=True):
        assert one["val_loss"] == pytest.approx(other["val_loss"], abs=1e-9)


@pytest.mark.slow
def test_the_failure_of_another_rank_is_told(
    tmp_path: Path, uniform_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only rank 1 starts a process, and only there is the interpreter told to fail.
    monkeypatch.setenv("PYTHONHASHSEED", "not a number")
    with pytest.raises(RankFailed, match=r"rank 1 ended with 1.*PYTHONHASHSEED") as caught:
        _trained(tmp_path, uniform_config(0), ranks=2)
    assert not hasattr(caught.value, "cause")


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_trial(tmp_path: Path, uniform_config: Make) -> None:
    session = LocalSession(tmp_path, 0, {**OPTIONS, "epochs": 2, "ranks": 2})

    def kill(metrics: dict[str, Any], step: int) -> bool:
        for file in Path("/proc/self/task").glob("*/children"):
            for process in file.read_text().split():
                if b"trainers.ranks" in Path(f"/proc/{process}/cmdline").read_bytes():
                    os.kill(int(process), signal.SIGKILL)
        return True

    session.report = kill  # type: ignore[method-assign]
    with pytest.raises(RankFailed, match="rank 1 ended with -9"):
        train(uniform_config(0), session)


def test_a_share_of_one_picture_is_refused(tmp_path: Path, uniform_config: Make) -> None:
    session = LocalSession(tmp_path, 0, OPTIONS)
    session.n_out_of_memory = 4
    with pytest.raises(InvalidArchitecture, match="two pictures for each of 16 parts, got 30"):
        train(uniform_config(0, batch_size=30), session)


@pytest.mark.parametrize(("n", "size"), [(1, 32), (2, 33), (3, 32), (7, 8)])
def test_shares_are_the_batch(n: int, size: int) -> None:
    shares = [Group(n, rank).share(size) for rank in range(n)]
    assert [position for share in shares for position in range(*share)] == list(range(size))
