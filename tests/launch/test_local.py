"""Launches in the background of this machine, and their records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.errors import SweepError
from nasbo.history.journal import Journal, is_locked
from nasbo.launch import records, verbs
from nasbo.launch.launcher import choose, follow_file, wait_for_end
from nasbo.launch.local import LocalLauncher, _born
from nasbo.launch.order import Order
from nasbo.launch.programs import run
from nasbo.launch.records import Record
from nasbo.storage.location import is_url
from nasbo.storage.mirror import mirror_folder
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.settings import Sweep

ROOT = str(Path(__file__).parents[2])


def test_records_are_kept_per_folder(home: Path) -> None:
    assert records.load("/a") is None
    record = Record("/a", "slurm", "17", "/a/driver.log", 3.0)
    records.save(record)
    records.save(Record("/b", "local", "1@2"))
    assert records.load("/a") == record
    records.record_file("/a").write_text("{")
    with pytest.raises(SweepError, match="cannot be read"):
        records.load("/a")


def test_a_process_is_known_by_its_birth() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    launcher, born = LocalLauncher(), _born(process.pid)
    record = Record("/a", "local", f"{process.pid}@{born}")
    try:
        assert launcher.state(record) == "running"
        assert launcher.state(Record("/a", "local", f"{process.pid}@7")) == "ended"
        with pytest.raises(SweepError, match="has not ended after"):
            wait_for_end(launcher, record, 0.1)
        launcher.stop(record)
        assert process.wait(timeout=20) == -signal.SIGTERM
    finally:
        process.kill()
    assert wait_for_end(launcher, record) == "ended"
    launcher.stop(record)


def test_a_log_is_followed_to_its_end(tmp_path: Path) -> None:
    file, said, looks = tmp_path / "log", [], iter([False, False, True])

    def is_over() -> bool:
        with file.open("a") as log:
            log.write("line\n")
        return next(looks)

    follow_file(file, is_over, True, said.append)
    assert "".join(said) == "line\n" * 3
    follow_file(tmp_path / "none", is_over, False, said.append)
    assert len(said) == 3


def test_a_sweep_that_was_not_launched_is_found_by_its_lock(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    launcher = LocalLauncher()
    assert launcher.find(str(folder)) is None
    with Journal(folder / "journal.jsonl"):
        found = launcher.find(str(folder))
        assert found is not None
        assert found.id.startswith(f"{os.getpid()}@")
        assert launcher.state(found) == "running"
    done = CliRunner().invoke(cli, ["stop", str(folder)])
    assert done.exit_code == 2
    assert "nothing runs on this machine" in done.output


class Scripted(Order):
    """An order whose driver is a few lines of Python."""

    def command(self, python: str, address: str) -> list[str]:
        return [python, "-c", self.file]


def scripted(home: Path, script: str, folder: str = "runs/a") -> Scripted:
    sweep = Sweep(space="my_space.yaml", trainer="my_own_trainer:train")
    env = {"PYTHONPATH": ROOT}
    path = folder if is_url(folder) else str(home / folder)
    return Scripted(script, path, sweep, home, env=env)


def test_a_driver_that_refuses_gives_its_words(home: Path) -> None:
    late = "import sys, time; time.sleep(1.5); print(1); sys.exit('nasbo: it cannot be')"
    (home / "runs" / "a").mkdir(parents=True)
    (home / "runs" / "a" / "driver.log").write_text("older words\n")
    with pytest.raises(SweepError, match="the driver ended with code 1: nasbo: it cannot be"):
        LocalLauncher().submit(scripted(home, late), print)
    with pytest.raises(SweepError, match=r"the driver ended with code 7: $"):
        LocalLauncher().submit(scripted(home, "raise SystemExit(7)"), print)


HOLDS = """\
import sys, time
from nasbo.history.journal import Journal
time.sleep(1.2)
journal = Journal({journal!r})
if {refuses}:
    sys.exit("nasbo: not even now")
time.sleep(60)
"""


@pytest.mark.parametrize("folder", ["runs/a", "s3://bucket/runs/a"])
def test_a_launch_returns_when_the_driver_writes(
    home: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(home / "cache"))
    path = mirror_folder(folder) if is_url(folder) else home / folder
    launcher, journal = LocalLauncher(), str(path / "journal.jsonl")
    order = scripted(home, HOLDS.format(journal=journal, refuses=False), folder)
    record = launcher.submit(order, print)
    try:
        assert is_locked(journal)
        assert launcher.state(record) == "running"
        found = launcher.find(order.folder)
        assert found is not None
        assert found.id == record.id
    finally:
        launcher.stop(record)
    order = scripted(home, HOLDS.format(journal=journal, refuses=True), folder)
    wait_for_end(launcher, record)
    monkeypatch.setattr("nasbo.launch.local.FIRST_LOOK_S", 60.0)
    with pytest.raises(SweepError, match="not even now"):
        launcher.submit(order, print)


def test_a_driver_that_takes_long_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasbo.launch.local.START_S", 0.2)
    launcher, said = LocalLauncher(), []
    record = launcher.submit(scripted(home, "import time; time.sleep(60)"), said.append)
    launcher.stop(record)
    assert "has written nothing after 0 s" in said[0]


def test_a_sweep_that_was_resumed_by_hand_is_found_after_its_launch(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record says that it has ended, or that this is unknown; the lock shows that it runs."""
    monkeypatch.setenv("PATH", str(home))
    folder = home / "runs" / "a"
    folder.mkdir(parents=True)
    for on, ended in (("local", "1@7"), ("kuberay", "default/gone")):
        records.save(Record(str(folder), on, ended))
        with Journal(folder / "journal.jsonl"):
            launcher, record = verbs._find(str(folder), None)
            assert record.id.startswith(f"{os.getpid()}@")
            assert (record.on, launcher.state(record)) == ("local", "running")
        assert verbs._find(str(folder), None)[1].id == ended
    records.save(Record(str(folder), "local", "1@7"))
    done = CliRunner().invoke(cli, ["stop", str(folder)])
    assert "1@7 on local has ended before" in done.output


def test_words_of_programs() -> None:
    assert run(["cat"], "given") == "given"
    with pytest.raises(SweepError, match="the program nasbo-none is needed here"):
        run(["nasbo-none"])
    with pytest.raises(SweepError, match="ls /nasbo-none: ls: cannot access"):
        run(["ls", "/nasbo-none"])
    with pytest.raises(SweepError, match="did not answer within"):
        run(["sleep", "9"], timeout_s=0.1)
    with pytest.raises(SweepError, match=r"no Ray jobs at http://127.0.0.1:9: .*ssh -N -L"):
        choose("http://127.0.0.1:9").find("/a")


def cli_words(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ROOT, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nasbo.cli", *words]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)


@pytest.mark.ray
@pytest.mark.slow
def test_launched_followed_stopped_and_resumed(home: Path) -> None:
    words = ("launch", "sweep.yaml", "--on", "local", "--dir", "runs/a", "--slots", "2")
    options = ("--cpus-per-trial", "0.5", "--trials", "40")
    launched = cli_words(home, *words, *options)
    assert launched.returncode == 0, launched.stderr
    assert "nasbo logs -f" in launched.stdout
    again = cli_words(home, *words, *options)
    assert again.returncode == 2
    assert "runs already as" in again.stderr
    folder, deadline = home / "runs" / "a", time.monotonic() + 240
    while not (folder / "journal.jsonl").exists() or SweepFolder(folder).history.n_ended < 2:
        assert time.monotonic() < deadline, (folder / "driver.log").read_text()
        time.sleep(0.2)
    stopped = cli_words(home, "stop", "runs/a")
    assert stopped.returncode == 0, stopped.stderr
    n_ended = SweepFolder(folder).history.n_ended
    assert 2 <= n_ended < 40
    assert cli_words(home, *words, *options).returncode == 0
    followed = cli_words(home, "logs", "-f", "runs/a")
    assert "finished: 40 of 40 trials" in followed.stdout
    assert followed.stdout.count("interrupted:") == 1
