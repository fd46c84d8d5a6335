"""Process pool that survives the death of a worker process."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Outcome(Generic[Task]):
    """A task with its result or its error text."""

    task: Task
    result: Any = None
    error: str = ""


@dataclass
class _Worker(Generic[Task]):
    process: Any
    connection: Connection
    task: Task


def run_tasks(
    function: Callable[[Task], Any], tasks: Iterable[Task], jobs: int
) -> Iterator[Outcome[Task]]:
    """Run a function over tasks in ``jobs`` processes with one thread each.

    An exception or the death of a process ends its own task only. Processes are spawned, not
    forked, and reused. Remaining ones are killed when the caller stops.

    Args:
        function: importable by its name.
        tasks: plain values.
        jobs: number of parallel processes.
    """
    waiting = deque(tasks)
    busy: dict[Any, _Worker[Task]] = {}
    with _one_thread():
        try:
            while waiting and len(busy) < jobs:
                _begin(_start(function, waiting.popleft()), busy)
            while busy:
                for connection in wait(list(busy)):
                    worker = busy.pop(connection)
                    outcome = _collect(worker)
                    is_alive = worker.process.is_alive() and not outcome.error.startswith(_DIED)
                    if waiting and is_alive:
                        worker.task = waiting.popleft()
                        worker.connection.send(worker.task)
                        busy[connection] = worker
                    else:
                        _end(worker)
                        if waiting:
                            _begin(_start(function, waiting.popleft()), busy)
                    yield outcome
        finally:
            for worker in busy.values():
                worker.process.kill()
                _end(worker)


_DIED = "the process died"


def _begin(worker: _Worker[Task], busy: dict[Any, _Worker[Task]]) -> None:
    busy[worker.connection] = worker


def _start(function: Callable[[Task], Any], task: Task) -> _Worker[Task]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(function, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.send(task)
    return _Worker(process, ours, task)


def _collect(worker: _Worker[Task]) -> Outcome[Task]:
    try:
        is_done, result = worker.connection.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        text = f"{_DIED} (exit code {worker.process.exitcode})"
        return Outcome(worker.task, error=text)
    return Outcome(worker.task, result) if is_done else Outcome(worker.task, error=result)


def _end(worker: _Worker[Task]) -> None:
    worker.connection.close()  # the process sees end of file and exits
    worker.process.join()


def _serve(function: Callable[[Any], Any], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    warnings.simplefilter("ignore")  # from the compared packages, not ours to fix
    logging.getLogger("nasbo").setLevel(logging.ERROR)  # fallbacks are counted in the results
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    while True:
        try:
            task = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer = True, function(task)
        except Exception:
            answer = False, traceback.format_exc()
        try:
            connection.send(answer)
        except ConnectionError:  # the parent is gone
            return


def _leave_with_the_parent() -> None:
    """End this process if its parent is killed, since a task may take long."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread in processes that are started inside."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
