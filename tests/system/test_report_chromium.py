"""Report in a real browser: every figure is drawn, nothing is downloaded, light and dark mode."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from nasbo.report.compare import COMPARISONS, write_comparison
from nasbo.report.drawing import DARK, LIGHT
from nasbo.report.figures import FIGURES
from nasbo.report.panels import PANELS
from nasbo.report.serve import ReportServer
from nasbo.report.write import write_report
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from tests.report.sample import make_folder
from tests.system.chromium import Browser

pytestmark = pytest.mark.system

FIGURE_BOXES = """[...document.querySelectorAll('[data-figure]')].map(f => {
  const inner = (f.querySelector('svg') || f.querySelector('table')).getBoundingClientRect();
  return [f.dataset.figure, inner.width, inner.height, f.querySelectorAll('svg *, td').length];
})"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make_folder(tmp_path_factory.mktemp("runs") / "sample", 40))


def _check_quiet(browser: Browser, own: str) -> None:
    assert browser.problems == []
    others = [url for url in browser.requests if not url.startswith(("data:", own))]
    assert others == []


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn(browser: Browser, report: Path, scheme: str, width: int) -> None:
    browser.open(report.as_uri(), scheme, width)
    boxes = browser.evaluate(FIGURE_BOXES)
    assert [name for name, *_ in boxes] == list(FIGURES)
    for name, inner_width, height, n_marks in boxes:
        assert inner_width > 200, name
        assert height > 40, name
        assert n_marks > 5, name
    assert browser.evaluate(OVERFLOW) <= 0
    _check_quiet(browser, report.as_uri())


@pytest.mark.parametrize(("scheme", "colors"), [("light", LIGHT), ("dark", DARK)])
def test_colours_follow_the_scheme(
    browser: Browser, report: Path, tmp_path: Path, scheme: str, colors: dict[str, str]
) -> None:
    browser.open(report.as_uri(), scheme)
    browser.screenshot(tmp_path / "page.png")
    pixels = matplotlib.image.imread(tmp_path / "page.png")
    ground = [round(float(part) * 255) for part in pixels[3, 3][:3]]
    assert "#" + "".join(f"{part:02x}" for part in ground) == colors["surface"]
    text = browser.evaluate("getComputedStyle(document.querySelector('h1')).color")
    fill = browser.evaluate("getComputedStyle(document.querySelector('svg .f-c1')).fill")
    assert (text, fill) == (_rgb(colors["ink"]), _rgb(colors["c1"]))


def _rgb(color: str) -> str:
    parts = (str(int(color[start : start + 2], 16)) for start in (1, 3, 5))
    return f"rgb({', '.join(parts)})"


@pytest.mark.parametrize("colors", [LIGHT, DARK])
def test_words_can_be_read_on_their_ground(colors: dict[str, str]) -> None:
    for name, least in (("ink", 12.0), ("text", 6.5), ("muted", 3.0)):
        assert _contrast(colors[name], colors["surface"]) >= least


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _point_at(browser: Browser, selector: str, across: float = 0.5, down: float = 0.5) -> Any:
    """Scroll an element into view, move the pointer onto it, and return the tooltip."""
    browser.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    box = browser.evaluate(
        f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )
    browser.point_at(box[0] + across * box[2], box[1] + down * box[3])
    hint = "document.getElementById('hint')"
    return browser.evaluate(f"[{hint}.style.visibility, {hint}.textContent]")


def test_pointer_tells_trials_and_lights_them_in_all_figures(
    browser: Browser, report: Path
) -> None:
    browser.open(report.as_uri())
    visibility, words = _point_at(browser, "[data-figure=pareto] .dot.f-c6:last-of-type")
    assert visibility == "visible"
    assert words.startswith("trial ")
    n_figures = browser.evaluate(
        "new Set([...document.querySelectorAll('.on')].map(e => e.closest('figure'))).size"
    )
    assert n_figures >= 5
    browser.evaluate("window.scrollTo(0, 0)")
    browser.point_at(2, 2)
    assert browser.evaluate("document.querySelectorAll('.on').length") == 0
    assert browser.evaluate("document.getElementById('hint').style.visibility") == "hidden"


def test_pointer_tells_the_units_of_an_attention_map(browser: Browser, report: Path) -> None:
    browser.open(report.as_uri())
    _, words = _point_at(browser, "[data-figure=attention] .heat", 0.05, 0.95)
    assert words.startswith("nums_block[7]\nattends to nums_block[1]: 0.")


def test_comparison(browser: Browser, tmp_path: Path) -> None:
    folders = [
        make_folder(tmp_path / method, 16, "svm", method=method) for method in ("attnbo", "random")
    ]
    path = write_comparison(folders, tmp_path / "compare.html")
    browser.open(path.as_uri())
    names = [name for name, *_ in browser.evaluate(FIGURE_BOXES)]
    drawn = [name for name in (*COMPARISONS, *PANELS) if name != "architectures"]
    assert names == [*drawn, "sweeps"]
    tops = browser.evaluate(
        "[...document.querySelectorAll('[data-figure=calibration] section')]"
        ".map(s => s.getBoundingClientRect().top)"
    )
    assert len(tops) == 2
    assert tops[0] == tops[1]
    _point_at(browser, '[data-figure=pareto] [data-sweep="1"] .dot')
    lit = "[...document.querySelectorAll('.on')].map(e => e.closest('[data-sweep]').dataset.sweep)"
    assert set(browser.evaluate(lit)) == {"1"}
    browser.open(path.as_uri(), width=420)
    assert browser.evaluate(OVERFLOW) <= 0
    _check_quiet(browser, path.as_uri())


def test_served_report_draws_itself_anew(browser: Browser, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 8, "svm", budget=12)
    with ReportServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser.open(server.url)
            tiles = "document.querySelector('.tiles')?.textContent ?? ''"  # "" while it loads
            assert "8 / 12" in browser.evaluate(tiles)
            with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
                search.tell(search.ask(1)[0], 0.9)
            for _ in range(20):
                browser.rest(1.0)
                if "9 / 12" in browser.evaluate(tiles):
                    break
            assert "9 / 12" in browser.evaluate(tiles)
            _check_quiet(browser, server.url)
        finally:
            browser.open("about:blank")
            server.shutdown()
            thread.join()
