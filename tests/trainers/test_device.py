"""Devices: threads, and precisions that work or do not on this machine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainers import device
from trainers.recipe import InvalidOption, load_recipe
from trainers.session import LocalSession
from trainers.train import train

CPU = torch.device("cpu")
Make = Callable[..., dict[str, Any]]


def test_without_visible_gpus_the_cpu_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device.pick_device() == CPU
    assert device.n_ranks(load_recipe({})) == 1
    assert device.n_ranks(load_recipe({"ranks": 3})) == 3


def test_every_rank_takes_its_own_visible_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    # There is no GPU here; what torch would say of two visible ones is.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [device.pick_device(rank).index for rank in range(2)] == [0, 1]
    assert device.n_ranks(load_recipe({})) == 2


@pytest.mark.parametrize(
    ("option", "granted", "expected"), [(None, "2", 2), (1, "2", 1), (None, "", 1), (2, "", 2)]
)
def test_threads_are_those_of_the_option_or_of_ray(
    monkeypatch: pytest.MonkeyPatch, option: int | None, granted: str, expected: int
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", granted)
    try:
        device.set_up(load_recipe({"threads": option}))
        assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


def test_a_cpu_trains_in_float32_unless_told_otherwise() -> None:
    assert device.pick_precision(load_recipe({}), CPU) == torch.float32
    assert device.pick_precision(load_recipe({"precision": "float64"}), CPU) == torch.float64


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_a_reduced_precision_trains_or_is_refused(
    tmp_path: Path, uniform_config: Make, kind: str
) -> None:
    """On some CPUs bfloat16 ends the process by a signal; this process must survive."""
    session = LocalSession(tmp_path, 0, {"recipe": "tiny", "precision": kind})
    reason = device.probe(kind, "cpu")
    if reason is None:
        train(uniform_config(0, seratio=[8] * 4), session)
        assert session.reports[-1]["precision"] == kind
        assert session.reports[-1]["train_loss"] < 3
    else:
        with pytest.raises(InvalidOption, match="precision must be one that runs on cpu"):
            train(uniform_config(0), session)


def test_a_probe_that_dies_or_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, reason in (
        ("import os; os.kill(os.getpid(), 4)", "a trial step was ended by SIGILL"),
        ("raise SystemExit('no such unit')", "a trial step failed: no such unit"),
        ("", None),
    ):
        monkeypatch.setattr(device, "PROBE", code)
        device.probe.cache_clear()
        assert device.probe("bfloat16", "cpu") == reason
    device.probe.cache_clear()


def test_freed_memory_goes_back_only_when_asked() -> None:
    device.set_up(load_recipe({}))
    torch.ones(64, 1 << 20)  # 256 MB, gone at once
    kept = _resident_mb()
    device.release(CPU)
    assert _resident_mb() < kept - 200


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    assert device._free_of_container(tmp_path) is None
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert device._free_of_container(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    assert device._free_of_container(tmp_path) == 700
    (tmp_path / "memory.stat").write_text("anon 100\nactive_file 50\ninactive_file 150\n")
    assert device._free_of_container(tmp_path) == 850
    (tmp_path / "memory.stat").write_text("anon 100\n")
    assert device._free_of_container(tmp_path) == 700
    assert device._free_of_machine(tmp_path / "meminfo") is None
    free = device.free_memory(CPU)
    assert free is not None
    assert free > 0
