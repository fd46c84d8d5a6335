"""Other process in which a method or surrogate must give the same answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

import torch

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def in_another_process(
    function: Callable[_Arguments, _Result],
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Result of a function in a new interpreter with the same path and number of threads.

    The interpreter is kept for the next call, until ``end_other_process``.
    """
    return _other_process().submit(function, *args, **kwargs).result()


def end_other_process() -> None:
    """End the interpreter, if there is one."""
    if _other_process.cache_info().currsize:
        _other_process().shutdown()
        _other_process.cache_clear()


@cache
def _other_process() -> ProcessPoolExecutor:
    # The number of threads can affect the last digits.
    return ProcessPoolExecutor(
        1, get_context("spawn"), torch.set_num_threads, (torch.get_num_threads(),)
    )
