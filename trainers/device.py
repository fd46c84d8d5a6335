"""Device, precision, threads and memory of a training on this machine.

Ray shows a trial its GPUs by CUDA_VISIBLE_DEVICES; other GPUs are not used. Whether a reduced
precision works is tried in a subprocess: on some machines it ends the process by a signal,
which no `except` can catch.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import torch

from trainers.recipe import InvalidOption, Recipe

# Constants of glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
PROBE_TIMEOUT_S = 300.0
PROBE = """
import sys, torch
kind, device = getattr(torch, sys.argv[1]), sys.argv[2]
layer = torch.nn.Conv2d(8, 8, 3).to(device)
x = torch.randn(4, 8, 16, 16, device=device)
with torch.autocast(device.partition(":")[0], kind):
    y = layer(x).flatten(1)
    loss = (y @ y.T).float().square().mean()
loss.backward()
assert torch.isfinite(layer.weight.grad).all()
"""


def pick_device(rank: int = 0) -> torch.device:
    """The visible GPU of a rank, or the CPU."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return torch.device("cuda", rank % n_devices) if n_devices else torch.device("cpu")


def n_ranks(recipe: Recipe) -> int:
    """Number of processes of a trial: as in the recipe, else one per visible GPU."""
    if recipe.ranks is not None:
        return recipe.ranks
    return max(1, torch.cuda.device_count() if torch.cuda.is_available() else 0)


def set_up(recipe: Recipe) -> None:
    """Set the threads and the memory allocation of this process; cuDNN
    picks its fastest kernels.
    """
    _keep_memory()
    granted = os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(recipe.threads or (int(granted) if granted.isdigit() else 0) or 1)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")


def _keep_memory() -> None:
    """Keep freed memory in this process until `release`.

    By default, glibc maps large tensors one by one and unmaps them when they are freed. Every step
    then has hundreds of thousands of page faults, a third of the time of a large network.
    """
    library = _c_library()
    if library is not None:
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        library.mallopt(M_TOP_PAD, 64 << 20)


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL | None:
    """The C library, if it is glibc."""
    if platform.libc_ver()[0] != "glibc":
        return None
    return ctypes.CDLL(None)


def release(device: torch.device) -> None:
    """Return the memory of an ended trial: the same process may run the next one."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    library = _c_library()
    if library is not None:
        library.malloc_trim(0)


def pick_precision(recipe: Recipe, device: torch.device) -> torch.dtype:
    """The data type that a recipe trains with on a device.

    Raises:
        InvalidOption: the recipe asks for a type that does not work here; the message says why.
    """
    if recipe.precision == "auto":
        if device.type != "cuda":
            return torch.float32
        kinds = ("bfloat16", "float16") if torch.cuda.is_bf16_supported(False) else ("float16",)
        working = [kind for kind in kinds if probe(kind, str(device)) is None]
        return getattr(torch, working[0]) if working else torch.float32
    if recipe.precision in ("bfloat16", "float16"):
        reason = probe(recipe.precision, str(device))
        if reason is not None:
            raise InvalidOption(
                f"precision must be one that runs on {device}, got {recipe.precision}: {reason}"
            )
    kind: torch.dtype = getattr(torch, recipe.precision)
    return kind


def expected_precision(recipe: Recipe) -> torch.dtype:
    """The data type on this machine's first device; a type that is asked
    for by name is not tried.
    """
    if recipe.precision == "auto":
        return pick_precision(recipe, pick_device())
    kind: torch.dtype = getattr(torch, recipe.precision)
    return kind


@lru_cache(maxsize=16)
def probe(kind: str, device: str) -> str | None:
    """Why a training step in a reduced precision fails here; None if it works."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            [sys.executable, "-c", PROBE, kind, device],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"a trial step did not end within {PROBE_TIMEOUT_S:g} s"
    if ended.returncode < 0:
        return f"a trial step was ended by {signal.Signals(-ended.returncode).name}"
    said = ended.stderr.strip().splitlines()
    return None if ended.returncode == 0 else f"a trial step failed: {said[-1] if said else ''}"


def free_memory(device: torch.device) -> int | None:
    """Bytes that a trial can still use on a device; None if unknown."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    known = [bytes_ for bytes_ in (_free_of_machine(), _free_of_container()) if bytes_ is not None]
    return min(known, default=None)


def _free_of_machine(file: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    found = {line.partition(":")[0]: line.split()[1] for line in lines if ":" in line}
    return int(found["MemAvailable"]) * 1024 if "MemAvailable" in found else None


def _free_of_container(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes left below a container's memory limit, if it has one; the
    page cache can be reclaimed.
    """
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return int(limit) - used + _cached_files(folder) if limit.isdigit() else None


def _cached_files(folder: Path) -> int:
    """Bytes of the page cache of a container that were not used recently; 0 if unknown."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["inactive_file"])
    except (OSError, ValueError, KeyError):
        return 0
