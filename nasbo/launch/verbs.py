"""Actions of ``nasbo launch``, ``stop`` and ``logs``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.launch import records
from nasbo.launch.launcher import RUNNING, Launcher, Tell, choose, wait_for_end
from nasbo.launch.order import Request, make_order
from nasbo.launch.recipes import read_values
from nasbo.launch.records import Record
from nasbo.storage.location import is_url

RECIPES = ("slurm", "kuberay")
"""Launchers with a recipe of their own; on a Ray cluster only the Python executable can be set."""

NEAR = ("local", "slurm")
"""Launchers that share this machine's paths."""


def launch(request: Request, on: str, is_dry: bool, tell: Tell) -> None:
    """Launch a sweep, or print how; a folder with a journal is resumed.

    Raises:
        NasboError: the sweep, the recipe's values or the cluster cannot be used.
    """
    launcher = choose(on)
    order = make_order(request, on in NEAR)
    plan = launcher.plan(order)
    if is_dry:
        tell(plan.rstrip())
        return
    before = records.load(order.folder)
    if before is not None and _is_running(before):
        raise SweepError(
            f"{order.folder}: runs already as {before.id} on {before.on}; "
            f"nasbo stop {order.folder} ends it"
        )
    record = launcher.submit(order, tell)
    records.save(record)
    tell(f"launched {order.folder}: {record.id} on {on}")
    tell(f"follow it:  nasbo logs -f {order.folder}")
    tell(f"its state:  nasbo status {order.folder} --watch")
    tell(f"stop it:    nasbo stop {order.folder}")


def _is_running(record: Record) -> bool:
    """Whether an earlier launch is alive; false if its cluster is gone."""
    try:
        return choose(record.on).state(record) in RUNNING
    except SweepError:
        return False


def values_of(on: str, file: Path | None, pairs: Sequence[str]) -> dict[str, str | None]:
    """Values of a launcher's recipe."""
    if on in RECIPES:
        return read_values(on, file, pairs)
    return read_values("hosts", file, pairs) if on != "local" else _no_values(file, pairs)


def _no_values(file: Path | None, pairs: Sequence[str]) -> dict[str, str | None]:
    if file is not None or pairs:
        raise SweepError("--on local has no values: its options are those of nasbo run")
    return {}


def stop(folder: str, on: str | None, tell: Tell) -> None:
    """Stop a sweep cleanly and wait for its end; it can be resumed.

    Raises:
        SweepError: nothing runs, or it does not end.
    """
    folder = full_name(folder)
    launcher, record = _find(folder, on)
    if launcher.state(record) not in RUNNING:
        raise SweepError(f"{folder}: {record.id} on {record.on} has ended before")
    launcher.stop(record)
    tell(f"asked {record.id} on {record.on} to stop ...")
    state = wait_for_end(launcher, record)
    tell(f"{state}; resume it by nasbo launch again, or nasbo resume {folder}")


def logs(folder: str, on: str | None, follow: bool, write: Tell) -> None:
    """Pass the output of a sweep's driver to ``write``."""
    launcher, record = _find(full_name(folder), on)
    launcher.logs(record, follow, write)


def full_name(folder: str) -> str:
    """A folder's URL or absolute path, as in records of launches."""
    return folder.rstrip("/") if is_url(folder) else str(Path(folder).expanduser().resolve())


def _find(folder: str, on: str | None) -> tuple[Launcher, Record]:
    """The launch of a folder: from the record of this machine, or from ``on``.

    If the recorded launch has ended, the sweep may have been resumed by hand since.
    """
    record = records.load(folder)
    if record is not None and on not in (None, record.on):
        record = None
    if record is not None and _is_running(record):
        return choose(record.on), record
    launchers = [on] if on else ["local", *([record.on] if record else [])]
    for launcher in dict.fromkeys(launchers):
        found = _running_at(launcher, folder) if record else choose(launcher).find(folder)
        if found is not None:
            return choose(launcher), replace(found, on=launcher)
    if record is not None:
        return choose(record.on), record
    where = on or "this machine"
    raise SweepError(
        f"{folder}: nothing was launched from here and nothing runs on {where}; say where by --on"
    )


def _running_at(launcher: str, folder: str) -> Record | None:
    """The running launch of a folder, or ``None`` if there is none or the
    launcher cannot be reached.
    """
    try:
        found = choose(launcher).find(folder)
    except SweepError:
        return None
    return found if found is not None and _is_running(replace(found, on=launcher)) else None
