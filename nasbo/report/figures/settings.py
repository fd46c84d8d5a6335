"""A study comes in; its best trials, settings, versions and the command to repeat it go out."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nasbo.report.axes import number_text
from nasbo.report.study import Figure, Study
from nasbo.storage.mirror import place_of, shown
from nasbo.sweep import SPACE_FILE, Sweep

N_BEST = 10
PACKAGES = ("nasbo", "torch", "ray", "botorch", "gpytorch", "numpy")
FLAGS = {
    "deadline_s": "deadline",
    "time_limit_s": "time-limit",
    "report_timeout_s": "report-timeout",
}
_YAML_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
OPTIONS = {"method_options": "-m", "trainer_options": "-o", "resources": "--resource"}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table of plain values."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    top = f"<thead><tr>{titles}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def list_best(study: Study) -> Figure:
    """The best trials and their configs."""
    study.require_values()
    trials = study.ranked[:N_BEST]
    names = [name for name in study.history.space.names if any(name in t.config for t in trials)]
    rows = [
        [
            t.id,
            number_text(t.value or 0.0, 5),
            t.round,
            t.source,
            *(setting_text(t.config.get(name)) for name in names),
        ]
        for t in trials
    ]
    html = table(["trial", study.metric, "round", "source", *names], rows)
    caption = f"The best {len(trials)} of {len(study.valued):,} trials with a value."
    return Figure("best-trials", "Best trials", caption, html=html, is_wide=True)


def setting_text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return " ".join(setting_text(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={setting_text(item)}" for key, item in value.items())
    return number_text(value, 5) if isinstance(value, float) else str(value)


def list_settings(study: Study) -> Figure:
    """Settings as they were frozen, versions of this environment, and the command."""
    given = [
        (item.name, setting_text(getattr(study.sweep, item.name)))
        for item in fields(Sweep)
        if item.name != "working_folder" and getattr(study.sweep, item.name) not in (None, {}, [])
    ]
    at_start = study.history.notes.get("versions")
    versions = ", ".join(f"{name} {number}" for name, number in (at_start or installed()).items())
    command = f"<pre>{escape(repeat_command(study))}</pre>"
    html = command + table([], given) + f"<p>{escape(versions)}</p>"
    where = "the sweep began" if at_start else "this page was made"
    caption = (
        "The command repeats the sweep with the same settings and seed; versions are those with "
        f"which {where}."
    )
    if place_of(study.folder):
        caption += f" The sweep's own copy of its space is {study.place}/{SPACE_FILE}."
    return Figure("settings", "Settings", caption, html=html)


def installed() -> dict[str, str]:
    """Versions of Python and of what the search depends on, without importing any of it."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def repeat_command(study: Study) -> str:
    """The ``nasbo run`` that starts the same sweep again, in a folder of its own."""
    # A run reads its space from a file: of a sweep in a bucket, the one that it was given.
    space = study.sweep.space if place_of(study.folder) else str(study.folder / SPACE_FILE)
    words = ["nasbo", "run", space]
    sweep = replace(study.sweep, trials=study.budget)
    for item in fields(Sweep):
        value = getattr(sweep, item.name)
        if item.name in OPTIONS:
            for key, setting in value.items():
                words += [OPTIONS[item.name], f"{key}={_yaml(setting)}"]
        elif item.name == "constraints":
            words += [word for one in value for word in ("--constraint", one)]
        elif _is_told(item.name, value):
            flag = FLAGS.get(item.name, item.name.replace("_", "-"))
            words += [f"--{flag}", str(value)]
    words += ["--dir", f"{shown(study.folder)}-again"]
    return shlex.join(words)


def _is_told(name: str, value: object) -> bool:
    """Whether a setting must be on the command line to be the same again."""
    if (
        name in ("space", "working_folder", "address", "storage_path", "provenance")
        or value is None
    ):
        return False
    if name in ("trainer", "method", "mode", "metric", "trials", "seed"):
        return True
    return bool(value != next(item for item in fields(Sweep) if item.name == name).default)


def _yaml(value: object) -> str:
    """A value that is read as YAML: plain words as they are, all else as JSON, which YAML is."""
    is_plain = isinstance(value, str) and value.isidentifier() and value.lower() not in _YAML_WORDS
    return str(value) if is_plain else json.dumps(value)
