"""Calls of kubectl by the launcher for Kubernetes, recorded by a fake kubectl."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.launch.kuberay import job_name

FOLDER = "s3://bucket/runs/a"
NAME = job_name(FOLDER)
KUBECTL = """\
#!/usr/bin/env bash
cd "$(dirname "$0")"
echo "$*" >>said
case "$*" in
  "get "*jobDeploymentStatus*) if [ -e state ]; then echo "NAME $(cat state)"; fi ;;
  "get "*jobStatus*) echo "cluster-1/job-1/$(cat job 2>/dev/null)" ;;
  "get "*" pod -l ray.io/cluster=cluster-1,"*) if [ -e head ]; then cat head; fi ;;
  "delete "*) rm state ;;
  "apply "*) cat >applied; echo Running >state ;;
  "exec "*) if [ -e broken ]; then echo "no such job" >&2; exit 1; fi ;;
  "patch "*) echo Suspended >state ;;
esac
"""


@pytest.fixture
def kubectl(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def nasbo(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, list(words))
    assert done.exit_code == code, done.output
    return done.output


def launch(*words: str) -> str:
    given = ("sweep.yaml", "--on", "kuberay", "--dir", FOLDER, "-v", "image=x", *words)
    return nasbo("launch", *given)


def verbs(folder: Path) -> list[str]:
    """The calls that change something, in order."""
    lines = (folder / "said").read_text().splitlines()
    return [line.partition(" ")[0] for line in lines if not line.startswith("get ")]


@pytest.mark.parametrize("state", ["Complete", "Failed", "ValidationFailed"])
def test_a_job_that_has_ended_is_deleted_before_it_is_launched_again(
    kubectl: Path, state: str
) -> None:
    (kubectl / "state").write_text(state)
    launch("-v", "namespace=mine")
    assert verbs(kubectl) == ["delete", "apply"]
    deleted = f"delete --namespace mine rayjob {NAME} --wait --cascade=foreground"
    assert deleted in (kubectl / "said").read_text().splitlines()
    kinds = [each["kind"] for each in yaml.safe_load_all((kubectl / "applied").read_text())]
    assert kinds == ["ConfigMap", "RayJob"]


@pytest.mark.parametrize("state", [None, "Suspended"])
def test_a_new_or_suspended_job_is_applied(kubectl: Path, state: str | None) -> None:
    if state is not None:
        (kubectl / "state").write_text(state)
    launch()
    assert verbs(kubectl) == ["apply"]


def test_the_driver_is_stopped_before_its_pod_goes(kubectl: Path) -> None:
    launch()
    (kubectl / "job").write_text("RUNNING")
    (kubectl / "head").write_text("pod/cluster-1-head\n")
    assert "suspended; resume it" in nasbo("stop", FOLDER)
    assert verbs(kubectl) == ["apply", "exec", "patch"]
    said = (kubectl / "said").read_text().splitlines()
    assert (
        "exec --namespace default pod/cluster-1-head -c ray-head -- "
        "ray job stop --address http://127.0.0.1:8265 job-1"
    ) in said
    launch()
    assert verbs(kubectl)[-1] == "apply"


def test_without_a_driver_the_job_is_suspended_at_once(kubectl: Path) -> None:
    launch()
    nasbo("stop", FOLDER)
    assert verbs(kubectl) == ["apply", "patch"]


@pytest.mark.parametrize(("head", "reason"), [("", "has no head"), ("pod/x", "no such job")])
def test_a_stop_that_was_not_clean_is_said(kubectl: Path, head: str, reason: str) -> None:
    launch()
    (kubectl / "job").write_text("RUNNING")
    (kubectl / "head").write_text(head)
    (kubectl / "broken").touch()
    said = nasbo("stop", FOLDER, code=2)
    assert "suspended, but not stopped cleanly" in said
    assert reason in said
    assert verbs(kubectl)[-1] == "patch"


def test_a_dry_run_says_what_kubectl_does_and_where(kubectl: Path) -> None:
    lines = launch("-v", "namespace=mine", "--dry-run").splitlines()
    assert lines[0].endswith(f"kubectl delete --namespace mine rayjob {NAME} --wait "
                             "--cascade=foreground")  # fmt: skip
    assert lines[1] == "# kubectl apply --namespace mine -f -"
    assert len(list(yaml.safe_load_all("\n".join(lines)))) == 2
    assert not (kubectl / "said").exists()
