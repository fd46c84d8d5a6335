"""Launch order: a checked sweep, and the command that runs or resumes it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nasbo.errors import SweepError
from nasbo.space import find_space_file
from nasbo.space.load import SHIPPED
from nasbo.start import default_folder
from nasbo.storage.location import is_url
from nasbo.sweeps.checks import check_same, check_search, prepare
from nasbo.sweeps.folder import SETTINGS_FILE
from nasbo.sweeps.job import job_metadata
from nasbo.sweeps.settings import Sweep, parsed


@dataclass(frozen=True)
class Order:
    """A sweep to be launched.

    Attributes:
        file: the sweep file or space, relative to ``working_dir``, or a shipped name.
        folder: of the sweep: an absolute path or a URL.
        sweep: its checked settings.
        working_dir: shipped to the workers; contains the file and the trainer.
        words: further options of ``nasbo run``.
        env: environment variables for driver and workers.
        values: values of the recipe, such as Slurm's partition; text, ``None`` if empty.
    """

    file: str
    folder: str
    sweep: Sweep
    working_dir: Path
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str | None] = field(default_factory=dict)

    def command(self, python: str, address: str) -> list[str]:
        """The command that runs the sweep, or resumes it if its folder has a journal."""
        return [
            *(python, "-m", "nasbo.cli", "run", self.file, *self.words),
            *("--dir", self.folder, "--or-resume", "--address", address),
        ]

    @property
    def name(self) -> str:
        """A job name that all environments accept."""
        stem = re.sub(r"[^a-z0-9]+", "-", self.folder.rstrip("/").rpartition("/")[2].lower())
        return f"nasbo-{stem.strip('-')[:30].strip('-')}-{time.strftime('%m%d-%H%M%S')}"

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the job, by which it is found from its folder."""
        return {
            **job_metadata(self.folder, self.sweep),
            "nasbo_folder": self.folder,
            "nasbo_file": self.file,
            "nasbo_trials": str(self.sweep.trials),
        }


@dataclass(frozen=True)
class Request:
    """A launch as requested on the command line."""

    file: str
    given: Mapping[str, Any]
    folder: str | None = None
    words: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    values: Mapping[str, str | None] = field(default_factory=dict)


def make_order(request: Request, is_near: bool = True) -> Order:
    """Check a request, in the working directory.

    Args:
        request: of the user.
        is_near: whether the sweep can access the paths and buckets of this machine.

    Raises:
        NasboError: a setting, the space, the trainer, the method or a folder cannot be used.
    """
    working_dir = Path.cwd()
    sweep, space = prepare(request.file, parsed(request.given), Console(stderr=True))
    folder = request.folder or default_folder(sweep)
    if is_url(folder):
        folder = folder.rstrip("/")
    else:
        folder = str((working_dir / Path(folder).expanduser()).resolve())
    file = _inside(find_space_file(request.file), working_dir, request.file)
    _inside(Path(sweep.space), working_dir, request.file)
    if named := request.given.get("begin"):
        _inside(Path(named), working_dir, named)
    env = parse_env(request.env)
    if not is_url(folder) and (Path(folder) / SETTINGS_FILE).exists():
        check_same(Path(folder), sweep, space)
    else:
        is_seen = is_near or _is_here(sweep.warm_start, working_dir)
        check_search(sweep if is_seen else replace(sweep, warm_start=None), space)
    words = _with_warm_start(request.words, sweep.warm_start)
    return Order(file, folder, sweep, working_dir, words, env, request.values)


def _is_here(folder: str | None, working_dir: Path) -> bool:
    """Whether a folder must be on this machine; other paths may exist on the cluster."""
    if folder is None or is_url(folder):
        return False
    return Path(folder).exists() or Path(folder).is_relative_to(working_dir)


def _with_warm_start(words: tuple[str, ...], folder: str | None) -> tuple[str, ...]:
    """Options with the warm start that was checked, which may come from the sweep file."""
    option = "--warm-start"
    if folder is None:
        return words
    if option not in words:
        return (*words, option, folder)
    position = words.index(option) + 1
    return (*words[:position], folder, *words[position + 1 :])


def _inside(path: Path, working_dir: Path, asked: str) -> str:
    """A path relative to the working directory; the name of a shipped space."""
    path = path.resolve()
    if path.is_relative_to(working_dir.resolve()):
        return str(path.relative_to(working_dir.resolve()))
    if path.parent == SHIPPED.resolve():
        return path.stem
    raise SweepError(
        f"{asked}: {path} must be in the working directory {working_dir}, "
        "which is what the cluster gets"
    )


def parse_env(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` arguments to environment variables."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise SweepError(f"an environment variable must be NAME=VALUE, got {pair!r}")
        found[name] = value
    return found
