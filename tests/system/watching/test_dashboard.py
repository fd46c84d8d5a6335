"""Ray's dashboard in a real browser: jobs, actors and tasks have the names of the sweep."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

import pytest
from ray.util.state import list_actors, list_tasks

from nasbo.report.grafana import CORE_FILE, boards_folder, write_boards
from tests.system.chromium import Browser
from tests.system.watching.conftest import TRAINER, Stage

pytestmark = [pytest.mark.system, pytest.mark.ray]


@pytest.fixture(scope="module")
def browser(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that has the token."""
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        headers = {"Authorization": f"Bearer {stage.token}"}
        browser.call("Network.setExtraHTTPHeaders", headers=headers)
        stage.wait_until("decision", lambda: "round 1 " in stage.log.read_text())
        yield browser


def test_the_driver_says_where_to_look(stage: Stage, browser: Browser) -> None:
    port = stage.dashboard.rpartition(":")[2]
    printed = stage.log.read_text()
    assert f"dashboard: {stage.dashboard} (token: " in printed
    assert re.search(rf"ssh -N -L {port}:127\.0\.0\.1:{port} \S+", printed)
    assert stage.token not in printed


def test_the_job_tells_space_method_folder_and_report(stage: Stage, browser: Browser) -> None:
    jobs = [job["metadata"] for job in stage.get("/api/jobs/")]
    (found,) = [metadata for metadata in jobs if metadata.get("sweep") == "small"]
    assert found["space"] == "simulation"
    assert (found["method"], found["trainer"]) == ("gp", TRAINER)
    assert found["folder"] == str(stage.folder)
    assert f"live report: {found['report']}" in stage.log.read_text()
    with urllib.request.urlopen(found["report"], timeout=60) as answer:
        assert "Sweep small" in answer.read().decode()


def test_actors_carry_the_name_of_the_sweep_and_tasks_that_of_the_trainer(
    stage: Stage, browser: Browser
) -> None:
    actors = list_actors(stage.dashboard, detail=True)
    ours = [actor for actor in actors if actor.class_name == "small"]
    assert {actor.repr_name for actor in ours if actor.state == "ALIVE"} == {TRAINER, "gp"}
    assert len(ours) >= 3
    names = {task.name for task in list_tasks(stage.dashboard, limit=1000)}
    assert {f"{TRAINER}.train", "gp.suggest"} <= names


def _has_words(browser: Browser, *words: str) -> bool:
    """Whether a page that is still rendering shows all words by now."""
    for _ in range(60):
        text = browser.evaluate("document.body.innerText")
        if all(word in text for word in words):
            return True
        browser.rest(0.5)
    return False


def test_pages_show_the_names(stage: Stage, browser: Browser) -> None:
    browser.open(f"{stage.dashboard}/#/actors", width=1500, height=900)
    assert _has_words(browser, "small", TRAINER, "gp"), browser.evaluate("document.body.innerText")
    job = next(job for job in stage.get("/api/jobs/") if "sweep" in job["metadata"])
    browser.open("about:blank")
    browser.open(f"{stage.dashboard}/#/jobs/{job['job_id']}", width=1500, height=1400)
    assert _has_words(browser, "small"), browser.evaluate("document.body.innerText")


def test_our_board_goes_onto_the_one_that_the_page_metrics_shows(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_METRICS_OUTPUT_ROOT", str(stage.session / "metrics"))
    core = boards_folder() / CORE_FILE
    assert write_boards(boards_folder())[-1] == core
    numbers = [int(number) for number in re.findall(r'"id": (\d+)', core.read_text())]
    assert len(numbers) == len(set(numbers)), "our panels have numbers that Ray uses too"
