"""Grafana dashboard: its queries name our metrics, and it is added to Ray's own dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.report.grafana import BOARD, CORE_FILE, OWN_IDS, add_row, boards_folder, write_boards
from nasbo.tune.metrics import DESCRIPTIONS

CORE: dict[str, Any] = {
    "uid": "rayDefaultDashboard",
    "panels": [
        {"id": 1001, "type": "row", "gridPos": {"h": 1, "w": 24, "x": 0, "y": 0}, "panels": []},
        {"id": 24, "type": "graph", "gridPos": {"h": 8, "w": 12, "x": 0, "y": 1}},
        {
            "id": 1006, "type": "row", "gridPos": {"h": 1, "w": 24, "x": 0, "y": 9},
            "panels": [{"id": 50, "gridPos": {"h": 8, "w": 12, "x": 0, "y": 10}}],
        },
    ],
    "templating": {"list": [{"name": "datasource"}, {"name": "SessionName"}]},
}  # fmt: skip


def _board() -> dict[str, Any]:
    return dict(json.loads(BOARD.read_text(encoding="utf-8")))


def test_the_board_asks_for_every_metric_and_for_no_other() -> None:
    queries = [
        target["expr"] for panel in _board()["panels"] for target in panel.get("targets", [])
    ]
    queries += [one["definition"] for one in _board()["templating"]["list"] if "definition" in one]
    asked = set(re.findall(r"ray_(nasbo_\w+)", " ".join(queries)))
    assert asked == set(DESCRIPTIONS)


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = _board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["id"] in OWN_IDS for panel in panels)
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in panels)
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_our_row_comes_first_and_only_once() -> None:
    board = _board()
    once = add_row(CORE, board)
    assert add_row(once, board) == once
    assert once["uid"] == "rayDefaultDashboard"
    n_ours = len(board["panels"])
    assert once["panels"][:n_ours] == board["panels"]
    shift = 53
    assert [panel["gridPos"]["y"] for panel in once["panels"][n_ours:]] == [53, 54, 62]
    assert once["panels"][-1]["panels"][0]["gridPos"]["y"] == 10 + shift
    names = [variable["name"] for variable in once["templating"]["list"]]
    assert names == ["datasource", "SessionName", "sweep"]


def test_command_writes_beside_and_onto_rays_boards(tmp_path: Path) -> None:
    folder = tmp_path / "grafana" / "dashboards"
    result = CliRunner().invoke(cli, ["grafana", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert [file.name for file in folder.iterdir()] == [BOARD.name]
    (folder / CORE_FILE).write_text(json.dumps(CORE))
    (folder.parent / "grafana.ini").touch()
    result = CliRunner().invoke(cli, ["grafana", "--out", str(folder)])
    assert f"grafana-server --config {folder.parent / 'grafana.ini'}" in result.stdout
    assert json.loads((folder / CORE_FILE).read_text())["panels"][0]["title"] == "nasbo sweeps"
    assert json.loads((folder / BOARD.name).read_text()) == _board()


def test_the_folder_is_that_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_METRICS_GRAFANA_DASHBOARD_OUTPUT_DIR", raising=False)
    monkeypatch.delenv("RAY_METRICS_OUTPUT_ROOT", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(NasboError, match="start Ray with its dashboard first"):
        boards_folder()
    assert CliRunner().invoke(cli, ["grafana"]).exit_code == 2
    own = tmp_path / "ray" / "session_latest" / "metrics" / "grafana" / "dashboards"
    own.mkdir(parents=True)
    assert boards_folder() == own
    monkeypatch.setenv("RAY_METRICS_OUTPUT_ROOT", str(tmp_path / "m"))
    (tmp_path / "m" / "grafana" / "dashboards").mkdir(parents=True)
    assert boards_folder() == tmp_path / "m" / "grafana" / "dashboards"


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / CORE_FILE).write_text("[]")
    with pytest.raises(NasboError, match="has no list of panels"):
        write_boards(tmp_path)
    (tmp_path / CORE_FILE).write_text("{")
    with pytest.raises(NasboError, match="cannot be read"):
        write_boards(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NasboError, match="cannot be made"):
        write_boards(tmp_path / "file" / "below")
