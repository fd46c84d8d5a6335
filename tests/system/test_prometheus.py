"""A sweep on a real Ray, scraped by a real Prometheus: every metric, every query of the board."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.util.state import list_actors, list_tasks

from nasbo.report.grafana import BOARD
from nasbo.sweep import Sweep, create_folder, open_folder
from nasbo.tune.metrics import DESCRIPTIONS, RETRIED, STATES
from nasbo.tune.run import run_sweep
from tests.system.prometheus import Prometheus

pytestmark = pytest.mark.system

BOARD_CONTENT = json.loads(BOARD.read_text(encoding="utf-8"))
QUERIES = {
    f"{panel['title']}/{target['refId']}": target["expr"]
    for panel in BOARD_CONTENT["panels"]
    for target in panel.get("targets", [])
}


@dataclass(frozen=True)
class Scene:
    prometheus: Prometheus
    dashboard: str
    session: str
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A sweep that has ended in this process, whose Ray still runs and is scraped."""
    place = tmp_path_factory.mktemp("scene")
    ray.shutdown()
    context = ray.init(
        address="local", num_cpus=2, include_dashboard=True, dashboard_host="127.0.0.1",
        log_to_driver=False, logging_level="ERROR",
        _system_config={"metrics_report_interval_ms": 1000},
    )  # fmt: skip
    session = Path(context.address_info["session_dir"])
    try:
        with Prometheus(place, session) as prometheus:
            folder = place / "small"
            trainer = "tests.system.simulated:train"
            sweep = Sweep("simulation", trainer, trials=14, method="gp", slots=2, metric="loss")
            create_folder(folder, sweep)
            settings, space = open_folder(folder)
            outcome = run_sweep(folder, settings, space)
            assert outcome.state == "finished", outcome
            wanted = f'ray_nasbo_trials{{state="finished"}} >= {_n_finished(outcome)}'
            prometheus.wait_until(lambda: prometheus.query(wanted), 60)
            yield Scene(prometheus, f"http://{context.dashboard_url}", session.name, folder)
    finally:
        ray.shutdown()


def _n_finished(outcome: Any) -> int:
    return int(outcome.history.state_counts()["finished"])


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_every_metric_is_scraped_with_its_labels(scene: Scene, name: str) -> None:
    series = scene.prometheus.query(f"ray_{name}")
    assert series, f"Prometheus has no ray_{name}"
    for one in series:
        assert one["metric"]["sweep"] == "small"
        assert set(DESCRIPTIONS[name][1]) <= set(one["metric"])


def test_metrics_say_what_the_journal_says(scene: Scene) -> None:
    from nasbo.sweep import read_history

    def value(expression: str) -> float:
        (one,) = scene.prometheus.query(expression)
        return float(one["value"][1])

    _, history = read_history(scene.folder)
    assert history.best is not None
    assert value("ray_nasbo_best_value") == pytest.approx(history.best.value)
    assert value("ray_nasbo_budget") == 14
    assert value("ray_nasbo_round") == len(history.rounds) - 1
    assert value("ray_nasbo_slots") == 2
    assert value("ray_nasbo_fit_seconds") > 0
    assert value('ray_nasbo_failures{cause="diverged"}') == history.cause_counts()["diverged"] > 0
    assert value("sum(ray_nasbo_subspace_trials)") == 14
    states = {one["metric"]["state"] for one in scene.prometheus.query("ray_nasbo_trials")}
    causes = {one["metric"]["cause"] for one in scene.prometheus.query("ray_nasbo_retries")}
    assert states == set(STATES)
    assert causes == set(RETRIED)


def _filled(expression: str, scene: Scene) -> str:
    """Grafana's variables replaced, by what the board's own queries for them find."""
    for variable in BOARD_CONTENT["templating"]["list"]:
        if variable["type"] == "query":
            inner, label = re.fullmatch(
                r"label_values\((.*), (\w+)\)", variable["query"]["query"]
            ).groups()  # type: ignore[union-attr]
            chosen = "|".join(
                scene.prometheus.label_values(inner.replace("$SessionName", ".+"), label)
            )
            assert chosen, f"no value for ${variable['name']}"
            expression = expression.replace(f"${variable['name']}", chosen)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_of_the_board_returns_data(scene: Scene, name: str) -> None:
    found = scene.prometheus.query(_filled(QUERIES[name], scene))
    assert found
    assert all(float(one["value"][1]) == float(one["value"][1]) for one in found)
    legend = next(
        target["legendFormat"]
        for panel in BOARD_CONTENT["panels"]
        for target in panel.get("targets", [])
        if f"{panel['title']}/{target['refId']}" == name
    )
    for label in re.findall(r"{{(\w+)}}", legend):
        assert all(label in one["metric"] for one in found), label


def test_actors_carry_the_name_of_the_sweep_and_tasks_that_of_the_trainer(scene: Scene) -> None:
    actors = list_actors(scene.dashboard, detail=True)
    shown = {(actor.class_name, actor.repr_name) for actor in actors}
    assert shown == {("small", "tests.system.simulated:train"), ("small", "gp")}
    names = {task.name for task in list_tasks(scene.dashboard, limit=1000)}
    assert "tests.system.simulated:train.train" in names
    assert "gp.suggest" in names
