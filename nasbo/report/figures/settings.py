"""Tables of a study: its best trials, settings, versions, and the command that repeats it."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nasbo.history import Trial
from nasbo.report.axes import number_text
from nasbo.report.study import Figure, Study, values_text
from nasbo.sweeps.declaration import Setting
from nasbo.sweeps.folder import SETTINGS_FILE, SPACE_FILE
from nasbo.sweeps.settings import SETTINGS, taken_by

N_BEST = 10
PACKAGES = ("nasbo", "torch", "ray", "botorch", "gpytorch", "numpy")
_YAML_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
NOT_AGAIN = ("address",)
"""Settings with a flag that are not repeated: where a sweep runs may differ."""
ALWAYS = ("trainer", "method", "mode", "metric", "trials", "seed")


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
    has_rungs = study.history.rungs is not None
    rows = [
        [
            t.id,
            values_text(t),
            t.round,
            t.source,
            *([promotions_text(t)] if has_rungs else []),
            *(setting_text(t.config.get(name)) for name in names),
        ]
        for t in trials
    ]
    why = ["why it went on"] if has_rungs else []
    html = table(["trial", study.metric, "round", "source", *why, *names], rows)
    caption = f"The best {len(trials)} of {len(study.valued):,} trials with a value."
    caption += study.in_full
    return Figure("best-trials", "Best trials", caption, html=html, is_wide=True)


def promotions_text(trial: Trial) -> str:
    """Why a trial was promoted at each of its rungs."""
    return "; ".join(trial.first.reasons.values()) or "–"


def setting_text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return " ".join(setting_text(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={setting_text(item)}" for key, item in value.items())
    return number_text(value, 5) if isinstance(value, float) else str(value)


def list_settings(study: Study) -> Figure:
    """Settings at the start, versions of this environment, and the command."""
    given = [
        (name, _shown(study, name))
        for name in SETTINGS
        if name != "working_folder" and getattr(study.sweep, name) not in (None, {}, [])
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
    if study.folder.location:
        caption += f" The sweep's own copy of its space is {study.address}/{SPACE_FILE}."
        if study.sweep.begin:
            caption += f" Its configs to begin with are in {study.address}/{SETTINGS_FILE}."
    return Figure("settings", "Settings", caption, html=html)


def _shown(study: Study, name: str) -> str:
    """A setting, with that at the start if it has changed."""
    text = setting_text(getattr(study.sweep, name))
    if name == "trials" and study.budget != study.sweep.trials:
        return f"{study.budget} (begun with {text})"
    return text


def installed() -> dict[str, str]:
    """Versions of Python and of the main dependencies, without importing them."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def repeat_command(study: Study) -> str:
    """The ``nasbo run`` command that repeats the sweep in a new folder."""
    # A run reads its space from a file: for a sweep in a bucket, the original one.
    space = study.sweep.space if study.folder.location else str(study.folder.path / SPACE_FILE)
    words = ["nasbo", "run", space]
    # Configs to begin with have no flag of their own: they stand in the sweep's settings.
    settings = str(study.folder.path / SETTINGS_FILE)
    begin: str | list[Any] = settings if study.sweep.begin and not study.folder.location else []
    sweep = replace(study.sweep, trials=study.budget, begin=begin)
    for declared in taken_by("run"):
        value = getattr(sweep, declared.name)
        if _is_told(declared, value):
            words += [
                word for text in _texts(declared, value) for word in (declared.flags[0], text)
            ]
    words += ["--dir", f"{study.folder.name}-again"]
    return shlex.join(words)


def _is_told(declared: Setting, value: object) -> bool:
    """Whether a setting must be given on the command line to be the same again."""
    if declared.name in NOT_AGAIN or value is None:
        return False
    return declared.name in ALWAYS or (value != declared.default and value != [])


def _texts(declared: Setting, value: Any) -> list[str]:
    """A value as arguments of its flag; one per item for merged settings."""
    if isinstance(value, dict):
        return [f"{key}={_yaml(item)}" for key, item in value.items()]
    items = [str(item) for item in (value if isinstance(value, list) else [value])]
    return items if declared.kind.joins == "items" else [",".join(items)]


def _yaml(value: object) -> str:
    """A value as YAML: plain words as they are, all else as JSON, which is valid YAML."""
    is_plain = isinstance(value, str) and value.isidentifier() and value.lower() not in _YAML_WORDS
    return str(value) if is_plain else json.dumps(value)
