"""``module:function`` comes in; the trainer and whatever its module offers beside it goes out."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nasbo.errors import SweepError
from nasbo.history import CAUSES
from nasbo.space import Config

STORAGE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, errno.EIO)
"""A disk that is full, read-only or gone: no fault of the config."""


class Session(Protocol):
    """What a trainer that takes ``(config, session)`` is handed.

    Attributes:
        folder: the trial's own folder, the same after a restart: checkpoints and logs go there.
        seed: of this trial.
        options: of the sweep, the same for all trials.
    """

    folder: Path
    seed: int
    options: Mapping[str, Any]

    def report(self, metrics: dict[str, float]) -> None:
        """Say how far the trial is, once per epoch."""


@dataclass(frozen=True)
class Trainer:
    """A trainer and what its module offers.

    The module may define ``METRIC`` and ``MODE``, and three functions of a config:
    ``summary`` (numbers and rows to draw), ``fingerprint`` (equal for configs that train the same
    network), ``check`` (raises for configs that cannot be built). ``prepare``, a function of the
    sweep's options, makes the data ready; it is called on each node before its first trial.
    """

    path: str
    function: Callable[..., Any]
    takes_session: bool
    metric: str | None = None
    mode: str | None = None
    summary: Callable[[Config], Mapping[str, Any]] | None = None
    fingerprint: Callable[[Config], str] | None = None
    check: Callable[[Config], None] | None = None
    prepare: Callable[[Mapping[str, Any]], Any] | None = None

    def __call__(self, config: Config, session: Session) -> Any:
        return self.function(config, session) if self.takes_session else self.function(config)


def load_trainer(path: str, folder: str | os.PathLike[str] | None = None) -> Trainer:
    """Import a trainer.

    Args:
        path: ``module:function``; the module is importable or lies in ``folder``.
        folder: where to look first; default the working directory.

    Raises:
        SweepError: no such module or function; the message says what was looked for and where.
    """
    module_name, _, function_name = path.partition(":")
    is_name = all(part.isidentifier() for part in module_name.split("."))
    if not is_name or not function_name:
        raise SweepError(f"a trainer must be module:function, got {path!r}")
    place = str(Path(folder or os.getcwd()).resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    module = _import(module_name, path, place)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = ", ".join(n for n, item in vars(module).items() if inspect.isfunction(item))
        raise SweepError(f"{module_name} has no function {function_name!r}; it has: {known}")
    return Trainer(
        path=path,
        function=function,
        takes_session=_takes_session(function, path),
        metric=getattr(module, "METRIC", None),
        mode=getattr(module, "MODE", None),
        summary=getattr(module, "summary", None),
        fingerprint=getattr(module, "fingerprint", None),
        check=getattr(module, "check", None),
        prepare=getattr(module, "prepare", None),
    )


def _import(module_name: str, path: str, place: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.split(".")[0] == error.name.split(".")[0]:
            raise SweepError(f"no module {module_name!r} (also looked in {place})") from error
        raise SweepError(f"{path}: {error}") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        raise SweepError(f"{path}: {type(error).__name__} at {where}: {error}") from error


def _takes_session(function: Callable[..., Any], path: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not needed:
        raise SweepError(f"{path} must take (config) or (config, session)")
    return len(needed) >= 2 and (
        needed[1].default is needed[1].empty or needed[1].name == "session"
    )


def cause_of(error: BaseException) -> str:
    """Why a trainer ended, by its exception; an exception may say so itself by ``cause``."""
    own = getattr(error, "cause", None)
    if own in CAUSES:
        return str(own)
    if isinstance(error, OSError) and error.errno in STORAGE_ERRORS:
        return "lost"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "oom"
    return "diverged" if isinstance(error, ArithmeticError) else "crashed"
