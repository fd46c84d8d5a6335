"""Trainers, loaded from ``module:function`` with the optional functions of their module."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

from nasbo.blame import describe_import, last_own_line
from nasbo.errors import SweepError
from nasbo.history import CAUSES, Rungs, parse_rungs
from nasbo.shipped import PACKAGE, is_meant, is_shipped_module, settle_package, use_shipped
from nasbo.shipped import ROOT as SHIPPED_ROOT
from nasbo.space import Config

STORAGE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, errno.EIO)
"""Errors of a disk that is full, read-only or gone: not the config's fault."""
DATA = "data"
"""Cause of an exception about missing or bad data, which is not the config's fault: the sweep ends
with its message, and the trial stays open."""
ABILITIES = (
    "summary",
    "fingerprint",
    "check",
    "check_options",
    "calibrate",
    "provenance",
    "final_options",
    "final_metric",
    "export",
    "prepare",
    "steps",
    "tabulate",
)
"""Optional functions of a trainer's module."""


class Session(Protocol):
    """What a trainer with the signature ``(config, session)`` receives.

    Attributes:
        folder: the trial's own folder for checkpoints and logs, the same after a restart.
        seed: of this trial.
        options: of the sweep, the same for all trials.
        n_out_of_memory: how often this trial has run out of memory, so that a trainer can use less.
        until: the step at which the trial is to pause; ``None`` for a training to its end. Trials
            are compared at that step, so it may be evaluated more accurately.
    """

    folder: Path
    seed: int
    options: Mapping[str, Any]
    n_out_of_memory: int
    until: int | None

    def report(self, metrics: dict[str, float], step: int | None = None) -> bool:
        """Report the progress, once per epoch; returns whether to go on.

        On false a trainer saves what it needs to continue and returns. If it reports again
        instead, it is ended there.

        Args:
            metrics: by name.
            step: number of finished epochs, for a trainer that continues from checkpoints; by
                default one more than at the last report.
        """


@dataclass(frozen=True)
class Trainer:
    """A trainer with the optional functions of its module.

    The module may define ``METRIC`` and ``MODE``; ``RESUMES = True`` states that trainings continue
    from the files in their folder. It may also define functions of a config: ``summary`` (named
    numbers, and rows to draw), ``fingerprint`` (equal for configs that train the same network) and
    ``check`` (raises for configs that cannot be built). A ``summary`` or a ``check`` with an
    argument ``options`` receives the sweep's trainer options.

    And functions of these options: ``check_options`` raises for options with which no trial can be
    trained; ``calibrate`` measures this machine, so that ``summary`` can predict ``seconds``;
    ``provenance`` returns which data and split are used, as plain values; ``final_options``
    converts them, and a recipe's name or ``None``, to those of finalists; ``final_metric`` returns
    the metric of finalists, which is reported at the end at the latest, and to which ``MODE``
    applies; ``prepare`` prepares the data, and is called on each node before its first trial and
    before a sweep on this machine; ``steps`` returns the number of steps of a full training.
    ``tabulate(values, options)`` returns numbers of the summary for many configs at once, as
    arrays. Finally, ``export(config, trial_folder, folder, options)`` writes a trained network to a
    folder and returns facts about it.
    """

    path: str
    function: Callable[..., Any]
    takes_session: bool
    metric: str | None = None
    mode: str | None = None
    summary: Callable[..., Mapping[str, Any]] | None = None
    fingerprint: Callable[[Config], str] | None = None
    check: Callable[..., None] | None = None
    check_options: Callable[[Mapping[str, Any]], None] | None = None
    calibrate: Callable[[Mapping[str, Any]], Any] | None = None
    provenance: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    final_options: Callable[[Mapping[str, Any], str | None], dict[str, Any]] | None = None
    final_metric: Callable[[Mapping[str, Any]], str] | None = None
    export: Callable[..., Mapping[str, Any]] | None = None
    prepare: Callable[[Mapping[str, Any]], Any] | None = None
    steps: Callable[[Mapping[str, Any]], int] | None = None
    tabulate: Callable[..., Mapping[str, Any]] | None = None
    resumes: bool = False

    def describe(self, config: Config, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The trainer's summary of a config with these options; empty if it has none."""
        if self.summary is None:
            return {}
        if self._summary_takes_options:
            return self.summary(config, options=options)
        return self.summary(config)

    def check_config(self, config: Config, options: Mapping[str, Any]) -> None:
        """Run the trainer's ``check`` of a config with these options, which may raise."""
        if self.check is None:
            return
        if self._check_takes_options:
            self.check(config, options=options)
        else:
            self.check(config)

    @cached_property
    def _summary_takes_options(self) -> bool:
        return _takes_options(self.summary)

    @cached_property
    def _check_takes_options(self) -> bool:
        return _takes_options(self.check)

    def rungs(
        self, words: str | Sequence[int], eta: int, options: Mapping[str, Any]
    ) -> Rungs | None:
        """The rungs of a sweep for trainings with these options; ``None`` without rungs."""
        full = None if self.steps is None else int(self.steps(options))
        return parse_rungs(words, full, eta, self.resumes)

    def __call__(self, config: Config, session: Session) -> Any:
        return self.function(config, session) if self.takes_session else self.function(config)


def load_trainer(path: str, folder: str | os.PathLike[str] | None = None) -> Trainer:
    """Import a trainer.

    Args:
        path: ``module:function``; the module is importable or in ``folder``.
        folder: where to look first; by default the working directory.

    Raises:
        SweepError: no such module or function; the message names what was looked for and where.
    """
    module_name, _, function_name = path.partition(":")
    is_name = all(part.isidentifier() for part in module_name.split("."))
    if not is_name or not function_name:
        raise SweepError(f"a trainer must be module:function, got {path!r}")
    root = str(Path(folder or os.getcwd()).resolve())
    if root not in sys.path:
        sys.path.insert(0, root)
    module = _import(module_name, path, root)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = ", ".join(n for n, item in vars(module).items() if inspect.isfunction(item))
        raise SweepError(f"{module_name} has no function {function_name!r}; it has: {known}")
    metric, mode = _goal(module, module_name)
    return Trainer(
        path=path,
        function=function,
        takes_session=_takes_session(function, path),
        metric=metric,
        mode=mode,
        resumes=getattr(module, "RESUMES", False) is True,
        **{name: getattr(module, name, None) for name in ABILITIES},
    )


def check_outside(path: str, folder: str | os.PathLike[str]) -> None:
    """Raise for code in a sweep's own folder: a received folder must not run code.

    Nothing is imported for this check, which could itself run a package of the folder.

    Args:
        path: ``module:name``, from the sweep's settings.
        folder: the sweep's folder.

    Raises:
        SweepError: the module, or a package around it, is in the folder.
    """
    module, inside = path.partition(":")[0], Path(folder).resolve()
    parts = module.split(".")
    roots = (str(SHIPPED_ROOT),) if is_shipped_module(module) else (os.getcwd(), *sys.path)
    for root in dict.fromkeys(roots):
        for n in range(1, len(parts) + 1):
            found = Path(root, *parts[:n]).resolve()
            is_there = found.exists() or any(found.parent.glob(f"{found.name}.*"))
            if is_there and found.is_relative_to(inside):
                raise SweepError(
                    f"{path} lies in the sweep's own folder, from which no code is run"
                )


@dataclass(frozen=True)
class TrainerSummary:
    """A trainer's summary of configs, picklable by the trainer's path."""

    path: str
    options: Mapping[str, Any]
    folder: str = ""

    def __call__(self, config: Config, /) -> Mapping[str, Any]:
        return _loaded(self.path, self.folder).describe(config, self.options)


@dataclass(frozen=True)
class TrainerTable:
    """A trainer's ``tabulate``, by the trainer's path: it can be sent to other processes."""

    path: str
    options: Mapping[str, Any]
    folder: str = ""

    @property
    def is_there(self) -> bool:
        """Whether the trainer has such a function."""
        return _loaded(self.path, self.folder).tabulate is not None

    def __call__(self, values: Mapping[str, Any], /) -> Mapping[str, Any]:
        tabulate = _loaded(self.path, self.folder).tabulate
        assert tabulate is not None
        return tabulate(values, self.options)


@lru_cache
def _loaded(path: str, folder: str) -> Trainer:
    return load_trainer(path, folder or None)


def _import(module_name: str, path: str, root: str) -> Any:
    try:
        settle_package(module_name, root)
        return _import_beside(module_name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        is_missing = isinstance(error, ModuleNotFoundError) and last_own_line(error) is None
        if is_missing and _is_part(error, module_name):
            told = f"no module {module_name!r} (also looked in {root})"
            if module_name.endswith(".py"):
                told += f"; did you mean {path.replace('.py:', ':', 1)}?"
            raise SweepError(told) from error
        reason = describe_import(error, root)
        raise SweepError(f"{path} cannot be imported: {reason}") from error


def _import_beside(module_name: str) -> Any:
    """A module that may use nasbo's ``trainers``, also where a user's own lies beside it."""
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        if module_name.startswith(f"{PACKAGE}.") or not is_meant(error):
            raise
        use_shipped()
        return importlib.import_module(module_name)


def _is_part(error: BaseException, module_name: str) -> bool:
    """Whether the missing module is the trainer's module itself or a package around it."""
    name = getattr(error, "name", None) or ""
    return module_name == name or module_name.startswith(f"{name}.")


def _goal(module: Any, module_name: str) -> tuple[str | None, str | None]:
    """``METRIC`` and ``MODE`` of the module, checked."""
    metric, mode = getattr(module, "METRIC", None), getattr(module, "MODE", None)
    if metric is not None and not isinstance(metric, str):
        raise SweepError(f"{module_name}: METRIC must be text, got {metric!r}")
    if mode is not None and mode not in ("min", "max"):
        raise SweepError(f"{module_name}: MODE must be 'min' or 'max', got {mode!r}")
    return metric, mode


def _takes_options(function: Callable[..., Any] | None) -> bool:
    try:
        return function is not None and "options" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # builtins may have no signature
        return False


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
    """Cause of a trainer's exception, which may carry its own as ``cause``.

    The result is one of ``CAUSES``, or ``DATA``.
    """
    own = getattr(error, "cause", None)
    if own in (*CAUSES, DATA):
        return str(own)
    if isinstance(error, OSError) and error.errno in STORAGE_ERRORS:
        return "lost"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "oom"
    return "diverged" if isinstance(error, ArithmeticError) else "crashed"
