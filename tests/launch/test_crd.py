"""Checker of manifests: it knows every field, and reports all errors."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from nasbo.errors import SweepError
from nasbo.launch.crd import check_manifest
from nasbo.launch.kuberay import fill_manifest
from nasbo.launch.recipes import read_values
from nasbo.launch.render import main

CRD = Path(__file__).parent / "crd.yaml"


@pytest.fixture
def cluster() -> dict[str, Any]:
    return fill_manifest("raycluster.yaml", read_values("kuberay", None, ["image=x", f"crd={CRD}"]))


def test_the_shipped_cluster_fits(
    cluster: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    check_manifest(cluster, CRD)
    assert main(["raycluster", "-v", "image=x", "-v", f"crd={CRD}"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == cluster
    assert main(["raycluster"]) == 2
    assert "needs -v image=" in capsys.readouterr().err


def test_every_kind_of_mistake_is_named_with_its_path(cluster: dict[str, Any]) -> None:
    wrong = copy.deepcopy(cluster)
    spec = wrong["spec"]
    spec["rayVersoin"] = "2.60.0"
    spec["authOptions"]["mode"] = "open"
    spec["workerGroupSpecs"][0]["replicas"] = "two"
    del spec["workerGroupSpecs"][0]["groupName"]
    pod = spec["headGroupSpec"]["template"]["spec"]
    pod["containers"][0]["ports"][1]["containerPort"] = True
    pod["containers"][0]["resources"]["requests"]["cpu"] = 1.5
    spec["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
    with pytest.raises(SweepError) as error:
        check_manifest(wrong, CRD)
    for problem in (
        "spec.rayVersoin: unknown field",
        "spec.authOptions.mode: must be one of disabled, token, got 'open'",
        "spec.workerGroupSpecs[0].replicas: must be integer, got 'two'",
        "spec.workerGroupSpecs[0].groupName: is required",
        "spec.headGroupSpec.template.spec.containers[0].ports[1].containerPort: must be integer",
        "containers[0].resources.requests.cpu: must be a number or text, got 1.5",
        "spec.headGroupSpec.rayStartParams.num-cpus: must be string, got 0",
    ):
        assert problem in str(error.value)


def test_a_kind_that_is_not_defined(cluster: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"does not define ray.io/v2 RayCluster; it has: ray"):
        check_manifest({**cluster, "apiVersion": "ray.io/v2"}, CRD)
    with pytest.raises(SweepError, match="cannot be read"):
        check_manifest(cluster, tmp_path / "missing.yaml")
    (tmp_path / "open.yaml").write_text(
        "spec: {group: ray.io, names: {kind: RayCluster}, versions: [{name: v1, schema: "
        "{openAPIV3Schema: {properties: {spec: {type: object, "
        "x-kubernetes-preserve-unknown-fields: true}}}}}]}"
    )
    check_manifest(cluster, tmp_path / "open.yaml")
