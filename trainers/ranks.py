"""Data-parallel training of one trial in several processes.

The trainer's own process is rank 0, the only one that reports and saves. It starts the other ranks
itself, on the devices that it sees, and they end with it. Every rank draws all random numbers of an
epoch and takes its part of each batch. Together the ranks compute what one process does that takes
these parts one after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trainers.architecture import Config
from trainers.process import command
from trainers.recipe import InvalidOption
from trainers.session import LocalSession, Session

# Rank 0 scores and saves alone; the others wait in their next step.
TIMEOUT = timedelta(hours=1)
ENDING_S = 10.0
READY = "ready"


class RankFailed(RuntimeError):  # noqa: N818, the name says what happened
    """Another rank of the trial failed; message and cause are those of its error."""

    def __init__(self, message: str, cause: str | None) -> None:
        super().__init__(message)
        if cause is not None:
            self.cause = cause


@dataclass(frozen=True)
class Group:
    """The processes that share a trial's batches, and the rank of this one."""

    n: int = 1
    rank: int = 0

    def share(self, size: int) -> tuple[int, int]:
        """Start and end of this rank's images in a batch."""
        return size * self.rank // self.n, size * (self.rank + 1) // self.n

    def shared(self, network: nn.Module) -> nn.Module:
        """The network with gradients averaged over all ranks."""
        # Each rank keeps its own batch norm statistics until the epoch ends.
        return DistributedDataParallel(network, broadcast_buffers=False) if self.n > 1 else network

    def synchronised(self, network: nn.Module, is_last: bool) -> AbstractContextManager[Any]:
        """Context of a forward pass: gradients are averaged only after the last part of a batch."""
        if isinstance(network, DistributedDataParallel) and not is_last:
            return network.no_sync()
        return nullcontext()

    def average_buffers(self, network: nn.Module) -> None:
        """Average the running statistics over all ranks, which is as good
        as doing so at every step.
        """
        if self.n == 1:
            return
        for buffer in network.buffers():
            if buffer.is_floating_point():
                distributed.all_reduce(buffer)
                buffer /= self.n

    def total(self, value: Tensor) -> float:
        """The sum of a number over all ranks."""
        whole = value.clone()
        if self.n > 1:
            distributed.all_reduce(whole)
        return float(whole)

    def agree(self, answer: bool = True) -> bool:
        """The answer of rank 0, on all ranks, so that they end together."""
        if self.n == 1:
            return answer
        shared = torch.tensor([float(answer)], device="cuda" if torch.cuda.is_available() else None)
        distributed.broadcast(shared, 0)
        return bool(shared.item())

    def batch_norm(self, n_parts: int) -> str:
        """Over which images batch normalisation takes its statistics."""
        pieces = self.n * n_parts
        return "whole batch" if pieces == 1 else f"each of {pieces} parts of a batch by itself"


ONE_RANK = Group()


@contextmanager
def launch(n: int, config: Config, session: Session, family: str = "blocks") -> Iterator[Group]:
    """Starts ranks 1 to `n` - 1, which train the same trial, and joins them as rank 0.

    Args:
        n: how many ranks.
        config: a configuration of the family's networks.
        session: of the trial.
        family: of networks, by name.

    Raises:
        RankFailed: another rank failed.
    """
    if n == 1:
        yield ONE_RANK
        return
    _check(n)
    with tempfile.TemporaryDirectory(prefix="ranks-") as scratch:
        folder = Path(scratch)
        children = [
            _start(Group(n, rank), (family, config), session, folder) for rank in range(1, n)
        ]
        try:
            _await(children)
            _join(Group(n, 0), folder)
            yield Group(n, 0)
        except Exception as error:
            if _is_of_the_connection(error):
                _raise_reason(children, folder, error)
            raise
        finally:
            _end(children)


def _check(n: int) -> None:
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if n_devices and n > n_devices:
        raise InvalidOption(f"ranks must be at most the {n_devices} visible GPUs, got {n}")


def _start(
    group: Group, network: tuple[str, Config], session: Session, folder: Path
) -> subprocess.Popen[str]:
    family, config = network
    job = {
        "family": family,
        "config": dict(config),
        "folder": str(session.folder),
        "seed": session.seed,
        "options": dict(session.options),
        "n_out_of_memory": session.n_out_of_memory,
        "until": session.until,
        "n": group.n,
        "rank": group.rank,
        "scratch": str(folder),
    }
    with (folder / f"rank{group.rank}.log").open("w") as log:
        child = subprocess.Popen(
            command("trainers.ranks"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already: `_await` will notice
        child.stdin.write(json.dumps(job) + "\n")
        child.stdin.flush()
    return child


def _await(children: Sequence[subprocess.Popen[str]]) -> None:
    """Wait until all ranks have started: to join one that has not would
    take until the time limit.
    """
    for child in children:
        assert child.stdout is not None
        if child.stdout.readline().strip() != READY:
            raise ChildProcessError("a rank did not start")


def _join(group: Group, folder: Path) -> None:
    is_gpu = torch.cuda.is_available()
    if is_gpu:
        torch.cuda.set_device(group.rank)
    if sys.platform == "linux":
        # All ranks are on this machine; its name may not resolve.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        "nccl" if is_gpu else "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=group.rank,
        world_size=group.n,
        timeout=TIMEOUT,
    )


def _is_of_the_connection(error: Exception) -> bool:
    # gloo raises plain runtime errors.
    return type(error) is RuntimeError or isinstance(
        error, distributed.DistError | ChildProcessError
    )


def _raise_reason(
    children: Sequence[subprocess.Popen[str]], folder: Path, error: BaseException
) -> None:
    """Raise the error of another rank, whose failure has broken the connection, instead
    of the broken connection.
    """
    for rank, child in enumerate(children, 1):
        try:
            child.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            continue
        reason = folder / f"rank{rank}.json"
        if reason.exists():
            found = json.loads(reason.read_text())
            raise RankFailed(f"rank {rank}: {found['message']}", found["cause"]) from error
        if child.returncode:
            said = " / ".join((folder / f"rank{rank}.log").read_text().splitlines()[-3:])
            raise RankFailed(f"rank {rank} ended with {child.returncode}: {said}", None) from error


def _end(children: Sequence[subprocess.Popen[str]]) -> None:
    """End the ranks that this process started; they also end when their standard input closes."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
    for child in children:
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
    for child in children:
        try:
            child.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _cause(error: BaseException) -> str | None:
    own = getattr(error, "cause", None)
    if isinstance(own, str):
        return own
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return "oom"
    return "diverged" if isinstance(error, ArithmeticError) else None


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """A rank other than 0: the job comes in on the first line of the standard input."""
    from trainers.families import family
    from trainers.training import Training

    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(READY, flush=True)
    os.dup2(2, 1)  # rank 0 reads no more: from here on, output goes to the log
    group, folder = Group(job["n"], job["rank"]), Path(job["scratch"])
    session = LocalSession(job["folder"], job["seed"], job["options"], job["until"])
    session.n_out_of_memory = job["n_out_of_memory"]
    try:
        _join(group, folder)
        training = Training(job["config"], session, group, family(job["family"]))
        is_wanted = True
        while is_wanted and not training.is_where_it_ends:
            training.run_epoch()
            is_wanted = group.agree()
        distributed.destroy_process_group()
        os._exit(0)  # torch's threads sometimes abort an interpreter that shuts down
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        reason = {"message": message, "cause": _cause(error)}
        (folder / f"rank{group.rank}.json").write_text(json.dumps(reason))
        os._exit(1)


if __name__ == "__main__":
    main()
