"""Report as a file, and the commands that write it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.methods import Suggestion
from nasbo.report.figures import FIGURES
from nasbo.report.study import Study, open_study
from nasbo.report.write import REPORT_FILE, make_page, write_report, write_text
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE, open_mirror
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep
from tests.report.sample import make_folder

TABLES = ("best-trials", "trials", "settings")
VOID = {"meta", "link", "br", "img", "hr", "input"}


class _Checker(HTMLParser):
    """Collects figures, addresses and unclosed tags."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.figures: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.stack.append(tag)
        for name, value in attrs:
            if name == "data-figure":
                self.figures.append(value or "")
            if name in ("src", "href", "action"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def _checked(text: str) -> _Checker:
    checker = _Checker()
    checker.feed(text)
    checker.close()
    assert checker.stack == []
    return checker


def _call(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_report_is_one_file_with_all_figures(folder: Path, tmp_path: Path) -> None:
    path = write_report(folder, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    page = _checked(text)
    assert page.figures == list(FIGURES)
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not re.search(r"https?://", text)
    assert len(text) < 5_000_000
    assert list(tmp_path.iterdir()) == [path]


def test_report_of_an_empty_sweep_says_why_figures_are_missing(tmp_path: Path) -> None:
    create_folder(tmp_path / "new", make_sweep({"space": "svm", "trainer": "own:train"}))
    path = write_report(tmp_path / "new")
    assert path == tmp_path / "new" / REPORT_FILE
    text = path.read_text(encoding="utf-8")
    assert _checked(text).figures == ["settings"]
    for name in FIGURES:
        assert name == "settings" or f'data-left-out="{name}"' in text


def test_names_from_the_space_and_the_trainer_cannot_break_out(tmp_path: Path) -> None:
    hostile = '"><script>alert(1)</script>'
    space = {
        "a": {"type": "choice", "range": [hostile, "b"], "submodule": {hostile: {"<i>x": {
            "type": "float", "range": [0, 1]}}, "b": None}},
    }  # fmt: skip
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space))
    sweep = make_sweep({"space": str(tmp_path / "space.yaml"), "trainer": "own:train", "trials": 12,
                        "metric": hostile})  # fmt: skip
    create_folder(tmp_path / "run", sweep)
    with Search(tmp_path / "space.yaml", journal=tmp_path / "run" / JOURNAL_FILE) as search:
        for trial in search.ask(12):
            is_bad = trial.id == 3
            search.tell(trial, None if is_bad else float(trial.id),
                        error="crashed" if is_bad else None, message=hostile)  # fmt: skip
    text = write_report(tmp_path / "run").read_text(encoding="utf-8")
    page = _checked(text)
    assert page.tags.count("script") == 2  # the data of the trials, and what shows them
    assert "<i>" not in text
    assert "best-so-far" in page.figures


def test_command_report(folder: Path, tmp_path: Path) -> None:
    result = _call("report", folder, "--out", tmp_path / "a.html")
    assert result.exit_code == 0
    assert result.stdout.strip() == str(tmp_path / "a.html")
    result = _call("report", folder, "--figure", "pareto", "--png", tmp_path / "p.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [n for n in FIGURES if n not in TABLES])
def test_every_drawing_becomes_png(folder: Path, tmp_path: Path, name: str) -> None:
    result = _call("report", folder, "--figure", name, "--png", tmp_path / "p.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--figure", "pareto"], "go together"),
        (["--png", "x.png"], "go together"),
        (["--serve", "--out", "x.html"], "do not go together"),
        (["--figure", "nothing", "--png", "x.png"], "known: best-so-far"),
        (["--figure", "settings", "--png", "x.png"], "is a table"),
        (["--figure", "pareto", "--png", "no/where/x.png"], "cannot be written"),
        (["--out", "no/where/x.html"], "cannot be written"),
        (["--serve", "--port", "70000"], "port"),
    ],
)
def test_mistakes(
    folder: Path, words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = _call("report", folder, *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_nulls_in_the_journal_are_not_drawn(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 12, "svm", budget=13)
    nulls = dict.fromkeys(("log_ei", "fit_s", "predicted", "predicted_low", "predicted_high"))
    with Search("svm", mode="max", journal=folder / JOURNAL_FILE) as search:
        config = search.space.subspace(0).decode([0.5] * 9)
        (trial,) = search.add_round([Suggestion(config, "model", nulls)], 1.0)
        search.report(trial, 1, None, {"epochs": None, "params": None, "flops": None})
        search.tell(trial, 0.5)
    page = make_page(open_study(folder))
    assert not [why for _, why in page.left_out if "Error" in why]
    assert "suggestion-cost" in [figure.name for figure in page.figures]


def test_a_figure_that_fails_is_left_out_with_its_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(study: Study) -> None:
        raise KeyError("<b>7</b>")

    monkeypatch.setitem(FIGURES, "pareto", fail)  # type: ignore[arg-type]
    page = make_page(open_study(folder))
    assert list(page.left_out) == [("pareto", "KeyError: '<b>7</b>'")]
    assert len(page.figures) == len(FIGURES) - 1
    assert "in fail" in caplog.text
    result = _call("report", folder, "--figure", "pareto", "--png", "x.png")
    assert result.exit_code == 2
    assert "no figure 'pareto': KeyError" in result.stderr


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize("out", [".", "..", "here"])
def test_a_folder_is_no_file_to_write(
    folder: Path, tmp_path: Path, command: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    result = _call(command, *[folder] * (1 + (command == "compare")), "--out", out)
    assert result.exit_code == 2
    assert f"{out}: must be a file to write, but is a folder" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_what_could_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(NasboError, match="cannot be written"):
        write_text(tmp_path / "a.html", "text")
    assert list(tmp_path.iterdir()) == []


def test_report_of_a_sweep_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path}/bucket/runs/first"
    create_folder(open_mirror(url), make_sweep({"space": "svm", "trainer": "own:train"}))
    result = _call("report", url)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == f"stored as {url}/report.html"
    text = (tmp_path / "bucket" / "runs" / "first" / REPORT_FILE).read_text(encoding="utf-8")
    assert f"<title>Sweep {url}</title>" in text
    assert "nasbo run svm --trainer own:train" in text
    assert f"--dir {url}-again" in text
    assert "mirrors" not in text
    _call("report", url, "--out", tmp_path / "own.html")
    assert not (tmp_path / "bucket" / "runs" / "first" / "own.html").exists()
    shown = _call("status", url, "--watch").stdout
    assert shown.startswith(f"{url}: attnbo")


def test_no_sweep_and_no_data(tmp_path: Path) -> None:
    assert _call("report", tmp_path).exit_code == 2
    folder = make_folder(tmp_path / "run", 4, "svm", method="random")
    result = _call("report", folder, "--figure", "attention", "--png", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "the method has no surrogate" in result.stderr
