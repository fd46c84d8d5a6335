"""Grafana dashboard of nasbo, installed next to Ray's dashboards and into Ray's own.

Ray embeds its core dashboard as a whole in its page "Metrics": a row of panels that is added to
that file is shown there.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from nasbo.errors import NasboError
from nasbo.report.write import write_text

BOARD = Path(__file__).resolve().parents[2] / "cluster" / "grafana" / "nasbo_grafana_dashboard.json"
CORE_FILE = "default_grafana_dashboard.json"
OWN_IDS = range(9_000, 9_100)
"""Ids of nasbo's panels; those of Ray's own dashboards are lower."""


def boards_folder() -> Path:
    """Folder of the dashboards of the last Ray that was started on this machine.

    Raises:
        NasboError: there is none.
    """
    given = os.environ.get("RAY_METRICS_GRAFANA_DASHBOARD_OUTPUT_DIR")
    root = os.environ.get("RAY_METRICS_OUTPUT_ROOT") or Path(
        os.environ.get("RAY_TMPDIR", tempfile.gettempdir()), "ray", "session_latest", "metrics"
    )
    folder = Path(given) if given else Path(root) / "grafana" / "dashboards"
    if not folder.is_dir():
        raise NasboError(
            f"no Grafana boards of Ray in {folder}: start Ray with its dashboard first, "
            "or say where to write by --out DIR"
        )
    return folder


def write_boards(folder: Path) -> list[Path]:
    """Write nasbo's dashboard into a folder of Grafana, and add it to Ray's core dashboard there.

    Args:
        folder: created if missing.

    Returns:
        The written files.

    Raises:
        NasboError: the folder cannot be written, or Ray's dashboard cannot be read.
    """
    board = _read(BOARD)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NasboError(f"{folder}: cannot be made: {error}") from error
    written = [folder / BOARD.name]
    write_text(written[0], _text(board))
    core = folder / CORE_FILE
    if core.exists():
        write_text(core, _text(add_row(_read(core), board)))
        written.append(core)
    return written


def add_row(core: dict[str, Any], board: dict[str, Any]) -> dict[str, Any]:
    """Ray's core dashboard with nasbo's panels on top; those of an earlier call are replaced."""
    ours = board["panels"]
    others = [panel for panel in core["panels"] if panel.get("id") not in OWN_IDS]
    shift = _bottom(ours) - min((panel["gridPos"]["y"] for panel in others), default=0)
    moved = [_shifted(panel, shift) for panel in others]
    variables = core.get("templating", {}).get("list", [])
    known = {variable["name"] for variable in variables}
    new = [one for one in board["templating"]["list"] if one["name"] not in known]
    return {**core, "panels": ours + moved, "templating": {"list": variables + new}}


def _bottom(panels: list[dict[str, Any]]) -> int:
    return max(int(panel["gridPos"]["y"]) + int(panel["gridPos"]["h"]) for panel in panels)


def _shifted(panel: dict[str, Any], by: int) -> dict[str, Any]:
    """A panel moved down; a collapsed row contains panels of its own."""
    position = {**panel["gridPos"], "y": panel["gridPos"]["y"] + by}
    inner = {"panels": [_shifted(one, by) for one in panel["panels"]]} if "panels" in panel else {}
    return {**panel, "gridPos": position, **inner}


def _read(path: Path) -> dict[str, Any]:
    try:
        board = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NasboError(f"{path}: cannot be read: {error}") from error
    if not isinstance(board, dict) or not isinstance(board.get("panels"), list):
        raise NasboError(f"{path}: is no Grafana board: it has no list of panels")
    return board


def _text(board: dict[str, Any]) -> str:
    return json.dumps(board, indent=2, ensure_ascii=False) + "\n"
