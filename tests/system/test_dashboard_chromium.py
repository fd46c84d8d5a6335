"""A sweep of a thousand trials as optuna-dashboard shows it, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.image
import pytest

from nasbo.interchange.study import write_study
from nasbo.sweeps.folder import SweepFolder
from tests.report.sample import make_folder
from tests.system.chromium import Browser
from tests.system.dashboard import Dashboard

pytestmark = pytest.mark.system

N_TRIALS = 1_000
N_FAILED = N_TRIALS // 9
TEXT = "document.body.innerText"
COUNTS = """[...document.querySelectorAll('.js-plotly-plot')]
  .flatMap(plot => plot.data.map(trace => (trace.x || []).length))"""
WAIT_S = 90


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    folder = tmp_path_factory.mktemp("runs") / "thousand"
    return SweepFolder(make_folder(folder, N_TRIALS, "nas_cifar10_conditional"))


@pytest.fixture(scope="module")
def dashboard(sweep: SweepFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    path = tmp_path_factory.mktemp("study") / "study.log"
    write_study(sweep, path)
    with Dashboard(path) as dashboard:
        yield dashboard


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def _wait(browser: Browser, condition: str) -> None:
    for _ in range(WAIT_S):
        if browser.evaluate(condition):
            return
        browser.rest(1.0)
    raise AssertionError(f"{condition} did not come true: {browser.evaluate(TEXT)[:2000]}")


def test_history_and_best_trial(
    browser: Browser, dashboard: Dashboard, sweep: SweepFolder, tmp_path: Path
) -> None:
    browser.open(f"{dashboard.url}/dashboard/studies/0", width=1500, height=1100)
    best = sweep.ranked("observed")[0]
    _wait(browser, f"{TEXT}.includes('Best Trial (number={best.id})')")
    n_complete = N_TRIALS - N_FAILED
    _wait(browser, f"({COUNTS}).includes({n_complete})")
    text = browser.evaluate(TEXT)
    assert str(best.value) in text
    assert "val_accuracy" in text
    assert f"nums_block: {best.config['nums_block']}" in text
    assert "conv_op[4]" in text
    browser.rest(3.0)
    browser.screenshot(tmp_path / "study.png")
    pixels = matplotlib.image.imread(tmp_path / "study.png")
    assert pixels.shape[1] > 1000
    green = (pixels[..., 1] > 0.7) & (pixels[..., 0] < 0.3) & (pixels[..., 2] < 0.7)
    assert green.sum() > 2_000, "the dots of the history"
    assert browser.problems == []
    own = (dashboard.url, "data:", "blob:")
    assert [url for url in browser.requests if not url.startswith(own)] == []


def test_all_trials_are_listed(browser: Browser, dashboard: Dashboard, sweep: SweepFolder) -> None:
    browser.open(f"{dashboard.url}/dashboard/studies/0/trials", width=1500, height=1100)
    _wait(browser, f"{TEXT}.includes('{N_TRIALS} Trials')")
    text = browser.evaluate(TEXT)
    assert "Trial 8\nFail" in text
    first = sweep.trials[0]
    assert f"nums_block {first.config['nums_block']}" in text
    assert sweep.history.subspace(first).id in text
    assert browser.problems == []
