"""All trials of a large sweep in a real browser: quick, whole at every width, and by keyboard."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nasbo.report.serve import LivePage, ReportServer
from nasbo.report.study import open_study
from nasbo.report.write import write_report
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.decoding import read_data
from tests.report.large import make_large_folder
from tests.report.sample import make_folder
from tests.rung_search import make_rung_folder
from tests.system.chromium import Browser

pytestmark = pytest.mark.system

N_TRIALS, N_REPORTS = 10_000, 20
MAX_BYTES = 6_000_000
MAX_S = 1.0
"""To open, and to filter, in CPU seconds of the page."""
WIDTHS = (360, 1_000, 1_600)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COUNT = "document.querySelector('#trials output')?.textContent ?? ''"
SHOWN = "[...document.querySelectorAll('#trials tbody a')].map(a => Number(a.textContent))"
DRAWER = "(d => [d.open, d.querySelector('h2').textContent])(document.getElementById('drawer'))"
PRESS = "[...document.querySelectorAll('#trials button')].find(b => b.textContent === '{}').click()"
KINDS = "button, input, select, label, h2, h3, p, dd, dt, output, svg"
CUT_OFF = """[...document.querySelectorAll('ROOT :is(KINDS)')]
.filter(e => e.getClientRects().length && !e.closest('.scroll, .unseen, #hint')).filter(e => {
  const box = e.getBoundingClientRect();
  return box.left < -0.5 || box.right > document.documentElement.clientWidth + 0.5;
}).map(e => e.outerHTML.slice(0, 80))""".replace("KINDS", KINDS)
"""What reaches beyond the window and cannot be scrolled to."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make_large_folder(tmp_path_factory.mktemp("large") / "run", N_TRIALS))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make_folder(tmp_path_factory.mktemp("runs") / "sample", 60))


def _set(browser: Browser, selector: str, value: str) -> float:
    """Type or choose in a filter; the CPU seconds until the page is painted again."""
    before = browser.busy_s()
    browser.evaluate(
        f"""(() => {{
          const control = document.querySelector({json.dumps("#trials " + selector)});
          control.value = {json.dumps(value)};
          control.dispatchEvent(new Event('input', {{bubbles: true}}));
          control.dispatchEvent(new Event('change', {{bubbles: true}}));
        }})()"""
    )
    browser.call("Page.captureScreenshot", format="png")  # needs a frame
    return browser.busy_s() - before


def _open_anew(browser: Browser, url: str, **how: Any) -> None:
    """A page of which another part may be open already is loaded again."""
    browser.open("about:blank")
    browser.open(url, **how)


def test_a_large_sweep_is_small_and_quick(browser: Browser, large: Path) -> None:
    assert large.stat().st_size <= MAX_BYTES
    _open_anew(browser, large.as_uri())
    assert 0.05 < browser.busy_s() < MAX_S
    assert browser.problems == []
    assert browser.evaluate(COUNT) == f"{N_TRIALS} of {N_TRIALS} trials"
    for selector, value in (
        ("select", "nums_block=5"),
        ("input[type=search]", "kernel_size=5 learning_rate<0.1"),
        ("input[type=search]", "0.12"),
        ("input[type=number]", "0.78"),
    ):
        assert 0.0 < _set(browser, selector, value) < MAX_S, value
    browser.evaluate("document.querySelector('#trials .check input').click()")
    assert _set(browser, "select", "nums_block=6") < MAX_S
    assert browser.evaluate("document.querySelectorAll('svg .off').length") > 1_000


def test_filters_choose_what_the_data_says(browser: Browser, large: Path) -> None:
    columns = read_data(large)["columns"]
    n_rows = {
        "nums_block=5": sum(one == "nums_block=5" for one in columns["subspace"]),
        "failed": sum(one == "failed" for one in columns["state"]),
        "oom": sum(one == "oom" for one in columns["cause"]),
    }
    _open_anew(browser, large.as_uri())
    for at, (value, n) in enumerate(n_rows.items()):
        assert 0 < n < N_TRIALS
        _set(browser, f"label:nth-of-type({at + 2}) select", value)
        assert browser.evaluate(COUNT) == f"{n} of {N_TRIALS} trials"
        _set(browser, f"label:nth-of-type({at + 2}) select", "")
    rates, kernels = columns["config.learning_rate"], columns["config.kernel_size"]
    rows = zip(rates, kernels, columns["value"], strict=True)
    wanted = sum(
        rate < 0.1 and 5 in kernel and value is not None and 0.75 <= value <= 0.8
        for rate, kernel, value in rows
    )
    _set(browser, "input[type=search]", "learning_rate<0.1 kernel_size=5")
    _set(browser, "label:nth-of-type(5) input", "0.75")
    _set(browser, "label:nth-of-type(6) input", "0.8")
    assert browser.evaluate(COUNT) == f"{wanted} of {N_TRIALS} trials"
    browser.evaluate(PRESS.format("Reset"))
    assert browser.evaluate(COUNT) == f"{N_TRIALS} of {N_TRIALS} trials"
    _set(browser, "input[type=search]", "no such words anywhere")
    assert browser.evaluate(COUNT) == f"0 of {N_TRIALS} trials"
    assert browser.evaluate("document.querySelectorAll('#trials nav button:enabled').length") == 0


def test_columns_sort_and_pages_turn(browser: Browser, large: Path) -> None:
    history = open_study(large.parent).history
    ranked = [trial.id for trial in history.ranked()]
    _open_anew(browser, large.as_uri())
    assert browser.evaluate(SHOWN) == ranked[:25]
    browser.evaluate(PRESS.format("Next"))
    assert browser.evaluate(SHOWN) == ranked[25:50]
    sort = "document.querySelector('#trials [data-column=\"{}\"]').click()"
    browser.evaluate(sort.format("trial"))
    assert browser.evaluate(SHOWN) == [*range(25)]
    browser.evaluate(sort.format("trial"))
    assert browser.evaluate(SHOWN) == [*range(N_TRIALS - 1, N_TRIALS - 26, -1)]
    assert (
        browser.evaluate(
            "document.querySelector('#trials th[aria-sort]').getAttribute('aria-sort')"
        )
        == "descending"
    )
    browser.evaluate(sort.format("rank"))
    browser.evaluate(PRESS.format("Last"))
    assert all(history.trial(number).value is None for number in browser.evaluate(SHOWN))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(browser: Browser, small: Path, width: int, scheme: str) -> None:
    _open_anew(browser, small.as_uri(), scheme=scheme, width=width)
    _set(browser, "input[type=search]", "kernel_size=5")
    assert browser.evaluate(OVERFLOW) <= 0
    assert browser.evaluate(CUT_OFF.replace("ROOT", "body")) == []
    browser.evaluate("location.hash = '#trial-17'")
    browser.rest(0.2)
    assert browser.evaluate(DRAWER) == [True, "Trial 17"]
    assert browser.evaluate(CUT_OFF.replace("ROOT", "#drawer")) == []
    assert browser.evaluate("document.querySelectorAll('#drawer svg, #drawer dd').length") > 10


def test_a_trial_has_an_address_of_its_own(browser: Browser, small: Path) -> None:
    trial = open_study(small.parent).history.trial(30)
    _open_anew(browser, small.as_uri() + "#trial-30")
    assert browser.evaluate(DRAWER) == [True, "Trial 30"]
    words = browser.evaluate("document.querySelector('#drawer .facts').innerText")
    for part in (
        f"{trial.config['learning_rate']:.5g}",
        "0.6 (0.5 to 0.7)",
        "log_ei -1",
        f"{math.exp(-1.0):.3g} standard deviations",
        f"nasbo why {small.parent} 30",
        "trials/00030",
    ):
        assert part in words
    assert browser.evaluate("document.querySelectorAll('#drawer polyline').length") == 1
    browser.evaluate("[...document.querySelectorAll('#drawer button')].at(-1).click()")
    browser.rest(0.2)
    assert browser.evaluate("location.hash") == ""
    assert not browser.evaluate(DRAWER)[0]
    browser.evaluate("location.hash = '#trial-999999'")
    browser.rest(0.2)
    assert not browser.evaluate(DRAWER)[0]
    assert browser.problems == []


def test_a_failed_trial_tells_its_ending(browser: Browser, small: Path) -> None:
    _open_anew(browser, small.as_uri() + "#trial-17")
    words = browser.evaluate("document.querySelector('#drawer .facts').innerText")
    assert "crashed" in words
    assert "<b>oops</b>" in words  # as text


def test_everything_can_be_done_by_keyboard(browser: Browser, small: Path) -> None:
    _open_anew(browser, small.as_uri())
    browser.evaluate("document.querySelector('#trials [data-column=seconds]').focus()")
    browser.press("Enter")
    focused = "document.activeElement.dataset.column"
    assert browser.evaluate(focused) == "seconds"
    sorted_by = "document.querySelector('#trials th[aria-sort] button').dataset.column"
    assert browser.evaluate(sorted_by) == "seconds"
    browser.evaluate("document.querySelector('#trials tbody a').focus()")
    number = browser.evaluate("Number(document.activeElement.textContent)")
    browser.press("Enter")
    browser.rest(0.3)
    assert browser.evaluate(DRAWER) == [True, f"Trial {number}"]
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.closest('dialog') !== null")
    browser.press("Escape")
    browser.rest(0.3)
    assert not browser.evaluate(DRAWER)[0]
    assert browser.evaluate("Number(document.activeElement.textContent)") == number


def test_neighbours_in_the_drawer_follow_the_table(browser: Browser, small: Path) -> None:
    _open_anew(browser, small.as_uri())
    first, second, *_ = browser.evaluate(SHOWN)
    browser.evaluate(f"location.hash = '#trial-{first}'")
    browser.rest(0.2)
    press = "[...document.querySelectorAll('#drawer button')].find(b => b.textContent === '{}').{}"
    assert browser.evaluate(press.format("Previous", "disabled"))
    browser.evaluate(press.format("Next", "click()"))
    browser.rest(0.2)
    assert browser.evaluate(DRAWER) == [True, f"Trial {second}"]


def test_learning_curves_tell_values_and_are_filtered(browser: Browser, tmp_path: Path) -> None:
    page = write_report(make_rung_folder(tmp_path / "rungs", 14))
    history = open_study(tmp_path / "rungs").history
    _open_anew(browser, page.as_uri())
    figure = "document.querySelector('[data-figure=learning-curves]')"
    browser.evaluate(f"{figure}.scrollIntoView({{block: 'center'}})")
    x, y = browser.evaluate(
        f"""(() => {{
          const line = {figure}.querySelector('polyline[data-key=t0]');
          const [x, y] = line.getAttribute('points').split(' ').at(-1).split(',').map(Number);
          const place = new DOMPoint(x, y).matrixTransform(line.getScreenCTM());
          return [place.x - 1, place.y + 2];
        }})()"""
    )
    browser.point_at(x, y)
    step, value = history.trial(0).curve[-1]
    hint = browser.evaluate("document.getElementById('hint').textContent")
    assert hint.startswith("trial 0: loss ")
    assert hint.endswith(f"step {step}: {value:.5g}")
    seen = (
        f"[...{figure}.querySelectorAll('polyline[data-key]:not(.away)')].map(p => p.dataset.key)"
    )
    before = set(browser.evaluate(seen))
    browser.evaluate(
        f"""(() => {{ const s = {figure}.querySelector('select'); s.value = 'kernel=poly';
        s.dispatchEvent(new Event('change')); }})()"""
    )
    own = {f"t{t.id}" for t in history.trials if history.subspace(t).id == "kernel=poly"}
    assert set(browser.evaluate(seen)) == before & own
    assert own & before


def test_a_mark_opens_its_trial(browser: Browser, small: Path) -> None:
    _open_anew(browser, small.as_uri())
    browser.evaluate("document.querySelector('[data-figure=best-so-far] .dot').scrollIntoView()")
    key = browser.evaluate(
        """(() => { const dot = document.querySelector('[data-figure=slices] .dot[data-key]');
        dot.dispatchEvent(new MouseEvent('click', {bubbles: true})); return dot.dataset.key; })()"""
    )
    browser.rest(0.2)
    assert browser.evaluate(DRAWER) == [True, f"Trial {key[1:]}"]


def test_without_scripts_figures_stay(browser: Browser, small: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        _open_anew(browser, small.as_uri())
        document = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = browser.call("DOM.querySelectorAll", nodeId=document, selector="figure svg .dot")
        assert len(found["nodeIds"]) > 100
        texts = browser.call("DOM.getOuterHTML", nodeId=document)["outerHTML"]
        assert "nasbo export prints all trials" in texts
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_served_page_keeps_what_its_reader_chose(browser: Browser, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 12, "svm", budget=20)
    with ReportServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser.open(server.url)
            _set(browser, "input[type=search]", "kernel=poly")
            told = browser.evaluate(COUNT)
            with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
                search.tell(search.ask(1)[0], 0.9)
            for _ in range(30):
                browser.rest(1.0)
                if "of 13" in browser.evaluate(COUNT):
                    break
            assert "of 13 trials" in browser.evaluate(COUNT)
            assert not browser.evaluate(COUNT).startswith("13")
            assert told.endswith("of 12 trials")
            query = "document.querySelector('#trials input[type=search]').value"
            assert browser.evaluate(query) == "kernel=poly"
            assert '"linked":false' in LivePage(folder).html()  # its server gives no files
        finally:
            browser.open("about:blank")
            server.shutdown()
            thread.join()
