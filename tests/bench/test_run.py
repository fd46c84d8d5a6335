"""Benchmarks in several processes: results, crashes, and which cells are run again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import nasbo.bench.plan as plan_module
from nasbo.bench.cell import Protocol
from nasbo.bench.plan import Part, Plan, make_plan
from nasbo.bench.results import load_results
from nasbo.bench.run import Settings, read_cells, run_plan
from nasbo.bench.workers import run_tasks
from nasbo.errors import NasboError
from nasbo.methods.optional import import_optional
from tests.bench.tiny import double, n_threads

PLAIN, NOISY = "tests.bench.tiny:PLAIN", "tests.bench.tiny:NOISY"
NEARBY = "tests.bench.tiny:Nearby"


def small_plan(*problems: str, methods: tuple[str, ...] = (NEARBY, "random")) -> Plan:
    return make_plan([Part(problems or (PLAIN,), methods, 2, Protocol(trials=4))])


def test_workers_survive_exceptions_and_deaths() -> None:
    found = {outcome.task: outcome for outcome in run_tasks(double, range(6), jobs=2)}
    assert {task: one.result for task, one in found.items() if not one.error} == {
        0: 0, 1: 2, 4: 8, 5: 10,
    }  # fmt: skip
    assert "ValueError: two is not wanted" in found[2].error
    assert found[3].error == "the process died (exit code 3)"


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = (
        "from nasbo.bench.workers import run_tasks\n"
        "from tests.bench.test_run import note_and_wait\n"
        "if __name__ == '__main__':\n"
        f"    list(run_tasks(note_and_wait, [{str(file)!r}], 1))\n"
    )
    main = tmp_path / "main.py"
    main.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    parent = subprocess.Popen([sys.executable, str(main)], env=env)
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_text()):
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    worker = int(file.read_text())
    parent.kill()
    parent.wait()
    while _is_running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def note_and_wait(file: str) -> None:
    """Task that writes its process id, and takes long."""
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A dead process is a zombie until its new parent reaps it.
    return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()


def test_workers_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert [outcome.result for outcome in run_tasks(n_threads, [0], jobs=1)] == ["1"]
    import os

    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_crashes_do_not_stop_the_others_and_are_tried_again(tmp_path: Path) -> None:
    broken = "tests.bench.tiny:broken_problem"
    plan = small_plan(PLAIN, broken)
    states = []
    state = run_plan(plan, Settings(tmp_path, jobs=2), lambda s: states.append(s.n_left))
    assert states[0] == 8
    assert states[-1] == 0
    assert (state.n_run, state.n_cached, len(state.crashes)) == (4, 0, 4)
    assert all("the left branch is broken" in text for text in state.crashes.values())
    assert len(list((tmp_path / "crashes").iterdir())) == 4
    results = load_results(tmp_path)
    assert len(results.missing) == 4
    assert results.missing[0] == f"{broken} {NEARBY} seed 0"
    again = run_plan(plan, Settings(tmp_path, jobs=1))
    assert (again.n_run, again.n_cached, len(again.crashes)) == (0, 4, 4)


def made_at(out: Path) -> dict[str, float]:
    return {f"{r['label']} {r['key']['seed']}": r["made"] for r in read_cells(out)}


def test_finished_cells_are_kept_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(tmp_path, jobs=1)
    run_plan(small_plan(), settings)
    first = made_at(tmp_path)
    (gone,) = list((tmp_path / "cells").glob("*random--seed1*"))
    gone.unlink()
    (tmp_path / "cells" / f"{gone.name}.partial").write_text("{", encoding="utf-8")
    assert run_plan(small_plan(), settings).n_run == 1
    second = made_at(tmp_path)
    assert [name for name in second if second[name] != first[name]] == ["random 1"]

    monkeypatch.setattr("nasbo.bench.cell.method_version", lambda spec: "another version")
    kept = Settings(tmp_path, jobs=1, any_version=True)
    assert run_plan(small_plan(), kept).n_run == 0
    assert (
        run_plan(make_plan([Part((PLAIN,), ("random",), 1, Protocol(trials=5))]), kept).n_run == 1
    )


def test_fresh_runs_everything_again(tmp_path: Path) -> None:
    plan = small_plan(methods=("random",))
    run_plan(plan, Settings(tmp_path, jobs=1))
    state = run_plan(plan, Settings(tmp_path, jobs=1, fresh=True))
    assert (state.n_run, state.n_cached) == (2, 0)


def test_seeds_come_first_so_that_a_stopped_run_is_balanced() -> None:
    parts = [
        Part((PLAIN,), ("random", "random@1", "random"), 1),
        Part((NOISY, PLAIN), ("random",), 2),
    ]
    cells = make_plan(parts).cells
    assert [(cell.problem, cell.method, cell.seed) for cell in cells] == [
        (PLAIN, "random", 0),
        (PLAIN, "random@1", 0),
        (NOISY, "random", 0),
        (NOISY, "random", 1),
        (PLAIN, "random", 1),
    ]


class Absent:
    """A method of a package that is not installed."""

    def __init__(self, space: Any, seed: int = 0) -> None:
        import_optional("a_package_that_is_absent", "absent", "bench")


def test_missing_packages_refuse_or_are_named(tmp_path: Path) -> None:
    absent = "tests.bench.test_run:Absent"
    part = Part((PLAIN,), (absent, "random"), 1, Protocol(trials=2))
    with pytest.raises(NasboError, match=r"needs the package 'a_package_that_is_absent'.*--skip"):
        make_plan([part])
    plan = make_plan([part], skip_missing=True)
    assert plan.methods == ["random"]
    run_plan(plan, Settings(tmp_path, jobs=1))
    assert list(load_results(tmp_path).left_out) == [absent]
    with pytest.raises(NasboError, match="no method is left"):
        make_plan([Part((PLAIN,), (absent,), 1)], skip_missing=True)


def test_faults_of_a_plan_are_found_before_anything_runs() -> None:
    with pytest.raises(NasboError, match="problem 'nope'"):
        make_plan([Part(("nope",), ("random",), 1)])
    with pytest.raises(NasboError, match="unknown method 'nope'"):
        make_plan([Part((PLAIN,), ("nope",), 1)])
    with pytest.raises(NasboError, match="no option 'speed'"):
        make_plan([Part((PLAIN,), ("tpe[speed=2]",), 1)], skip_missing=True)
    with pytest.raises(NasboError, match="at least one problem"):
        make_plan([Part((), ("random",), 1)])
    with pytest.raises(NasboError, match="seeds >= 1"):
        make_plan([Part((PLAIN,), ("random",), 0)])
    assert not plan_module.is_missing_package(NasboError("needs the package"))


def test_folders_without_cells_are_named(tmp_path: Path) -> None:
    with pytest.raises(NasboError, match="there are no finished cells"):
        read_cells(tmp_path)
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "a.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(NasboError, match=r"a\.json: must hold an object, got list"):
        read_cells(tmp_path)
    (tmp_path / "cells" / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(NasboError, match=r"a\.json: is no cell of a benchmark: 'key' is missing"):
        read_cells(tmp_path)
