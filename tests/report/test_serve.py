"""Live report over a real connection."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.errors import NasboError, SweepError
from nasbo.report.serve import ReportServer, serve_report, served_report
from nasbo.search import Search
from tests.report.sample import make_folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    with ReportServer(make_folder(tmp_path / "run", 8, "svm", budget=12)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _get(server: ReportServer, path: str, host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_page_knows_its_version_and_grows_with_the_journal(server: ReportServer) -> None:
    status, version = _get(server, "/version")
    assert status == 200
    status, page = _get(server, "/")
    assert status == 200
    assert f'data-version="{version}"' in page
    assert "8 / 12" in page
    with Search("svm", mode="max", journal=server.live.sweep.journal_file) as search:
        while_running = _get(server, "/version")[1]
        search.tell(search.ask(1)[0], 0.9)
    assert len({version, while_running, _get(server, "/version")[1]}) == 3
    assert "9 / 12" in _get(server, "/")[1]


def test_nothing_else_can_be_had(server: ReportServer) -> None:
    for path in ("/sweep.yaml", "/../sweep.yaml", "/journal.jsonl", "/%2e%2e/"):
        assert _get(server, path)[0] == 404
    for host in ("evil.example", "evil.example:80", "[::1]"):
        assert _get(server, "/", host)[0] == 403
    assert _get(server, "/version", "localhost:1234")[0] == 200


def test_a_damaged_journal_is_told_and_the_server_lives(server: ReportServer) -> None:
    journal = server.live.sweep.journal_file
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b'"suggested"', b'"suggestea"', 1) + b"\n")
    status, page = _get(server, "/")
    assert status == 500
    assert "damaged" in page
    journal.write_bytes(whole)
    assert _get(server, "/")[0] == 200


def test_port_in_use_and_no_sweep(server: ReportServer, tmp_path: Path) -> None:
    with pytest.raises(NasboError, match="cannot be had"):
        ReportServer(server.live.sweep.path, server.server_address[1])
    with pytest.raises(SweepError, match="holds no sweep"):
        ReportServer(tmp_path / "nowhere")


def test_serving_tells_where_and_ends_with_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: ReportServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReportServer, "serve_forever", interrupt)
    told: list[str] = []
    serve_report(make_folder(tmp_path / "run", 4, "svm"), 0, told.append)
    assert "http://127.0.0.1:" in told[0]
    assert "ssh -L" in told[1]
    assert told[-1] == "ended"
    shutil.rmtree(tmp_path / "run")


def test_served_beside_a_sweep_and_gone_with_it(folder: Path) -> None:
    with served_report(folder, 0) as url:
        with urllib.request.urlopen(url, timeout=300) as answer:
            assert "Sweep sample" in answer.read().decode()
        taken = int(url.rstrip("/").rpartition(":")[2])
        with pytest.raises(NasboError, match=f"on port {taken}"), served_report(folder, taken):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=300)


def test_served_report_ends_with_a_process_that_is_killed(folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from nasbo.report.serve import served_report\n"
        "with served_report(Path(sys.argv[1]), 0) as url: print(url, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().decode().strip()
        parent.kill()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=300).close()
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("the report is still served")
