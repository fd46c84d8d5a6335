"""Race of several processes for the same lease."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

from nasbo.errors import JournalError
from nasbo.storage.conditional import VersionedObject
from nasbo.storage.lease import Lease
from nasbo.storage.location import Location

ROUNDS = 10
N_PROCESSES = 3
STALL_S = 1.0
TIMEOUT_S = 120


class SlowLocation(Location):
    """Its first write stalls, as on a slow network, so that what it has read may be outdated."""

    def __init__(self, url: str, stall_s: float) -> None:
        super().__init__(url)
        self._stall_s = stall_s

    def _stall(self) -> None:
        time.sleep(self._stall_s)
        self._stall_s = 0.0

    def write(self, *words: Any, **options: Any) -> None:
        self._stall()
        super().write(*words, **options)

    def versioned(self, name: str) -> VersionedObject:
        found = super().versioned(name)
        write = found.write

        def slow(*words: Any) -> Any:
            self._stall()
            return write(*words)

        found.write = slow  # type: ignore[method-assign]
        return found


def race(url: str, rounds: int = ROUNDS, lease_s: float = 3.0) -> list[int]:
    """Number of processes that got the lease, in each round.

    Args:
        url: each round has its own folder below it, named by its number.
        rounds: every second one is without a stall.
        lease_s: see ``Lease``; longer than a stall, or a lease has expired before it is taken.
    """
    context = multiprocessing.get_context("spawn")
    barrier, winners = context.Barrier(N_PROCESSES), context.Queue()
    settings = (url, rounds, lease_s, barrier, winners)
    runners = [context.Process(target=_run, args=(n, *settings)) for n in range(N_PROCESSES)]
    for runner in runners:
        runner.start()
    won = [number for _ in runners for number in winners.get(timeout=rounds * 10 + 60)]
    for runner in runners:
        runner.join()
    assert [runner.exitcode for runner in runners] == [0] * N_PROCESSES
    return [won.count(number) for number in range(rounds)]


def _run(
    seed: int, url: str, rounds: int, lease_s: float, barrier: Barrier, winners: Queue[list[int]]
) -> None:
    stalls, won = random.Random(seed), []
    try:
        for number in range(rounds):
            location = SlowLocation(f"{url}/{number}", stalls.choice((0.0, STALL_S)) * (number % 2))
            barrier.wait(TIMEOUT_S)
            lease = _take(location, lease_s)
            barrier.wait(TIMEOUT_S)
            if lease is not None:
                won.append(number)
                lease.release()
    except BaseException:
        barrier.abort()  # the others need not wait
        raise
    finally:
        winners.put(won)


def _take(location: Location, lease_s: float) -> Lease | None:
    try:
        lease = Lease(location, lease_s=lease_s)
        lease.confirm()
    except JournalError as error:
        if "is being written by process" not in str(error):
            raise
        return None
    return lease
