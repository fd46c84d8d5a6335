"""Weights & Biases: a group with a run for the sweep and one for each trial.

The id of a run follows from the sweep's identity and the trial's number, so that there is one of
each. Online, runs are resumed at the step that the server has. Offline, a run is written when it
has ended, as one folder with a mark when it is whole; one without, or with another content, is
written anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import wandb

from nasbo.errors import NasboError
from nasbo.tracking.destination import Tracked, TrackingError, Wish
from nasbo.tracking.records import SWEEP, TrackedRun

MARK_FILE = "nasbo.json"
OFFLINE, DISABLED = ("offline", "dryrun"), ("disabled",)
INIT_TIMEOUT_S = 30.0


class WandbRuns:
    """Shows a sweep in Weights & Biases; see ``Destination``."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        settings = wandb.setup().settings
        if settings.mode in DISABLED:
            raise NasboError(f"WANDB_MODE={settings.mode}: must be online or offline")
        self._is_offline = settings.mode in OFFLINE
        self._root = Path(settings.wandb_dir)
        self._identity = self._group = ""
        self._open: dict[str, Any] = {}
        self._sent: dict[str, TrackedRun] = {}

    def send(self, tracked: Tracked) -> None:
        self._identity = tracked.identity
        self._group = f"{self._wish.name or tracked.runs[0].name}-{tracked.identity[:8]}"
        for run in tracked.runs:
            if self._sent.get(run.key) is run or (self._is_offline and run.is_open):
                continue
            try:
                if self._is_offline:
                    self._write(run)
                else:
                    self._bring(run)
            except wandb.Error as error:
                self._open.pop(run.key, None)
                is_passing = not isinstance(error, wandb.errors.UsageError)
                raise TrackingError(f"W&B: {error}", is_passing) from error
            self._sent[run.key] = run

    def forget(self) -> None:
        """The ids of runs follow from the sweep: nothing can be there twice."""

    def where(self) -> str:
        if self._is_offline:
            return f"{self._root}: wandb sync {self._root}/offline-run-*-{self._id('')}*"
        return f"project {self._wish.project}, group {self._group}"

    def close(self) -> None:
        """Runs that are open here end here; a tracker that is begun again resumes them."""
        opened, self._open = self._open, {}
        for one in opened.values():
            one.finish()

    def _id(self, key: str) -> str:
        return f"nasbo-{self._identity}-{key.replace('/', '-')}"

    def _begin(self, run: TrackedRun) -> Any:
        """A run of W&B, resumed if the server has it."""
        is_named = run.key == SWEEP and self._wish.name
        return wandb.init(
            project=self._wish.project,
            id=self._id(run.key),
            name=self._wish.name if is_named else run.name,
            group=self._group,
            job_type=run.kind,
            config=dict(run.params),
            resume="allow",
            reinit="create_new",
            settings=self._settings(),
        )

    def _settings(self) -> wandb.Settings:
        uri = {} if self._wish.tracking_uri is None else {"base_url": self._wish.tracking_uri}
        return wandb.Settings(
            console="off",
            disable_code=True,
            disable_git=True,
            init_timeout=INIT_TIMEOUT_S,
            silent=True,
            x_disable_stats=True,
            x_save_requirements=False,
            **uri,
        )

    # Online

    def _bring(self, run: TrackedRun) -> None:
        """Log what the server does not have, and end a run that has ended."""
        if run.key not in self._open:
            self._open[run.key] = self._begin(run)
        _log(self._open[run.key], run, since=self._open[run.key].step)
        if not run.is_open:
            self._open.pop(run.key).finish(exit_code=int(run.is_failure))

    # Offline

    def _write(self, run: TrackedRun, files: Mapping[str, Path] | None = None) -> None:
        """Write a run as a folder of its own, unless it is there as a whole."""
        mark = {"run": _digest(run), "files": {}}
        folders = self._folders(run.key)
        if files is None and [self._mark(folder).get("run") for folder in folders] == [mark["run"]]:
            return
        for folder in folders:
            shutil.rmtree(folder)
        made = self._begin(run)
        try:
            _log(made, run, since=0)
            for name, path in (files or {}).items():
                made.save(str(path), base_path=_base(name, path), policy="now")
        finally:
            made.finish(exit_code=int(run.is_failure))
        (folder,) = self._folders(run.key)
        (folder / MARK_FILE).write_text(json.dumps(mark), encoding="utf-8")

    def _folders(self, key: str) -> list[Path]:
        return list(self._root.glob(f"offline-run-*-{self._id(key)}"))

    def _mark(self, folder: Path) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((folder / MARK_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    # Files

    def files(self) -> Mapping[str, str]:
        """Online nobody knows: files of the same names replace each other."""
        if not self._is_offline:
            return {}
        marks = [self._mark(folder) for folder in self._folders(SWEEP)]
        return dict(marks[0].get("files", {})) if marks else {}

    def send_files(self, files: Mapping[str, Path], digests: Mapping[str, str]) -> None:
        run = self._sent.get(SWEEP)
        if run is None:  # offline, and the sweep goes on
            return
        if self._is_offline:
            self._write(run, files)
            (folder,) = self._folders(SWEEP)
            mark = {**self._mark(folder), "files": dict(digests)}
            (folder / MARK_FILE).write_text(json.dumps(mark), encoding="utf-8")
            return
        made = self._open.get(SWEEP) or self._begin(run)
        for name, path in files.items():
            made.save(str(path), base_path=_base(name, path), policy="now")
        if SWEEP not in self._open:
            made.finish()


def _log(made: Any, run: TrackedRun, since: int) -> None:
    """The points from a step on, and what may change as the summary."""
    for point in sorted(run.points, key=lambda point: point.step):
        if point.step >= since:
            made.log({**point.values, "_timestamp": point.time}, step=point.step, commit=True)
    made.summary.update({f"nasbo.{name}": text for name, text in run.tags.items()})
    if run.value is not None:
        made.summary.update({"nasbo.value": run.value, "nasbo.n_values": run.n_values})


def _digest(run: TrackedRun) -> str:
    text = json.dumps(asdict(run), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _base(name: str, path: Path) -> str:
    """The folder below which a file has its name."""
    return str(path).removesuffix(name).rstrip("/")
