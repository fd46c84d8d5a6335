"""Metrics of a running sweep in a real Prometheus, and all queries of the Grafana dashboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nasbo.report.grafana import BOARD
from nasbo.sweeps.folder import SweepFolder
from nasbo.tune.metrics import DESCRIPTIONS, RETRIED, STATES
from tests.system.watching.conftest import Stage
from tests.system.watching.prometheus import Prometheus

pytestmark = [pytest.mark.system, pytest.mark.ray]

FRONTS = ("nasbo_hypervolume", "nasbo_front_trials")
"""Of several objectives, which the watched sweep has not; tests/report/test_fronts.py has them."""
BOARD_CONTENT = json.loads(BOARD.read_text(encoding="utf-8"))
TARGETS: dict[str, dict[str, Any]] = {
    f"{panel['title']}/{target['refId']}": target
    for panel in BOARD_CONTENT["panels"]
    for target in panel.get("targets", [])
    if not any(name in target["expr"] for name in FRONTS)
}
VARIABLES = [one for one in BOARD_CONTENT["templating"]["list"] if one["type"] == "query"]


@pytest.fixture(scope="module")
def prometheus(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus after a failure and a fit of the surrogate."""
    with Prometheus(tmp_path_factory.mktemp("prometheus"), stage.session) as prometheus:
        wanted = 'ray_nasbo_failures{cause="diverged"} > 0 and on(sweep) ray_nasbo_fit_seconds > 0'
        stage.wait_until("metrics of a failure and a fit", lambda: prometheus.ask(wanted))
        yield prometheus


@pytest.mark.parametrize("name", [name for name in DESCRIPTIONS if name not in FRONTS])
def test_every_metric_is_scraped_with_its_labels(prometheus: Prometheus, name: str) -> None:
    series = prometheus.query(f"ray_{name}")
    assert series, f"Prometheus has no ray_{name}"
    for one in series:
        assert one["metric"]["sweep"] == "small"
        assert set(DESCRIPTIONS[name][1]) <= set(one["metric"])


def test_metrics_say_what_the_journal_says(prometheus: Prometheus, stage: Stage) -> None:
    def value(expression: str) -> float:
        (one,) = prometheus.query(expression)
        return float(one["value"][1])

    best, n_trials = value("ray_nasbo_best_value"), value("sum(ray_nasbo_subspace_trials)")
    finished = value('ray_nasbo_trials{state="finished"}')
    history = SweepFolder(stage.folder).history
    assert any(best == pytest.approx(known) for known in history.best_so_far())
    assert 0 < n_trials <= len(history.trials)
    assert 0 < finished <= history.state_counts()["finished"]
    assert value("ray_nasbo_budget") == 5000
    assert value("ray_nasbo_slots") == 2
    assert 0 < value("ray_nasbo_fit_seconds") <= value("ray_nasbo_suggest_seconds")
    states = {one["metric"]["state"] for one in prometheus.query("ray_nasbo_trials")}
    causes = {one["metric"]["cause"] for one in prometheus.query("ray_nasbo_retries")}
    assert (states, causes) == (set(STATES), set(RETRIED))
    (sweep,) = prometheus.query("ray_nasbo_sweep")
    told = [sweep["metric"][name] for name in ("method", "space", "metric", "mode")]
    assert told == ["gp", "simulation", "loss", "min"]


def _filled(expression: str, prometheus: Prometheus) -> str:
    """Grafana's variables, replaced by the results of the dashboard's queries for them."""
    for variable in VARIABLES:
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert match is not None, variable
        found = prometheus.label_values(match[1].replace("$SessionName", ".+"), match[2])
        assert found, f"no value for ${variable['name']}"
        expression = expression.replace(f"${variable['name']}", "|".join(found))
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("name", TARGETS)
def test_every_query_of_the_board_returns_data(prometheus: Prometheus, name: str) -> None:
    found = prometheus.query(_filled(TARGETS[name]["expr"], prometheus))
    assert found
    for one in found:
        assert float(one["value"][1]) >= 0
        for label in re.findall(r"{{(\w+)}}", TARGETS[name]["legendFormat"]):
            assert one["metric"].get(label), f"the legend has no {label}"


def test_rays_own_files_lead_a_prometheus_to_the_metrics(stage: Stage) -> None:
    """Ray writes the configuration with which users start Prometheus; its
    addresses are those of nasbo.
    """
    settings = stage.session / "metrics" / "prometheus" / "prometheus.yml"
    assert str(stage.session / "prom_metrics_service_discovery.json") in settings.read_text()
