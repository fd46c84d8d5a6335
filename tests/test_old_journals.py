"""Journals of earlier versions: they are read as before, and can be continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE, open_journal, open_mirror
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rows import trial_rows
from nasbo.sweeps.status import status

FOLDER = Path(__file__).with_name("fixtures") / "journals"
COLUMNS = (
    *("trial", "round", "subspace", "source", "state", "value", "n_values", "repeat_of"),
    *("attempts", "seconds", "config"),
)
NAMES = sorted(path.name for path in FOLDER.iterdir())


def described(folder: Path) -> dict[str, Any]:
    """Output of ``nasbo status`` and ``nasbo export`` for a sweep."""
    held = SweepFolder(folder)
    found = status(held)
    del found["folder"]
    rows = [{name: row[name] for name in COLUMNS} for row in trial_rows(held.history)]
    plain: dict[str, Any] = json.loads(json.dumps({"status": found, "export": rows}))
    return plain


@pytest.mark.parametrize("name", NAMES)
def test_status_and_export_are_the_same(name: str) -> None:
    assert described(FOLDER / name) == json.loads((FOLDER / name / "expected.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_an_old_journal_can_be_continued(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(FOLDER / name, folder)
    held = SweepFolder(folder)
    sweep, space, before = held.settings, held.space, held.history
    options = sweep.method_options
    for _ in range(2):
        journal = open_journal(folder)
        with Search(space, sweep.method, sweep.mode, sweep.seed, journal, **options) as search:
            n_returned = search.n_returned
            assert n_returned in (0, len(before.open_runs))
            for trial in search.ask(n_returned + 1):
                search.tell(trial, 0.25)
        before = SweepFolder(folder).history
        assert not before.open_runs


def test_segments_in_a_bucket_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    shutil.copytree(FOLDER / "bucket" / "bucket", tmp_path / "bucket")
    for name in ("sweep.yaml", "space.yaml"):
        shutil.copy(FOLDER / "bucket" / name, tmp_path / "bucket" / name)
    folder = open_mirror(f"file://{tmp_path}/bucket")
    assert (folder / JOURNAL_FILE).read_bytes() == (FOLDER / "bucket" / JOURNAL_FILE).read_bytes()
    assert described(folder) == described(FOLDER / "bucket")
