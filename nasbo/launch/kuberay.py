"""Launcher for Kubernetes: a sweep as a KubeRay RayJob."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from nasbo.errors import SweepError
from nasbo.launch.crd import check_manifest
from nasbo.launch.launcher import Tell
from nasbo.launch.order import Order
from nasbo.launch.programs import run
from nasbo.launch.ray_jobs import STOP_WAIT_S
from nasbo.launch.recipes import count, fill, read_template
from nasbo.launch.records import Record
from nasbo.storage.location import is_url

SWEEP_FOLDER = "/etc/nasbo"
"""Folder of the sweep's files in every container, from a config map, so that no image is built."""
_STATES = {
    "": "waiting",
    "Initializing": "waiting",
    "Waiting": "waiting",
    "Running": "running",
    "Retrying": "running",
    "Suspending": "running",
}


_ENDED = ("complete", "failed", "validationfailed")
"""States of an ended job, which must be deleted before it is applied again."""
DASHBOARD = "http://127.0.0.1:8265"
DELETE_S = 300.0


class KubeRayLauncher:
    """Applies ``cluster/kuberay/rayjob.yaml`` with kubectl; retries of the job resume the sweep."""

    def plan(self, order: Order) -> str:
        record = _record(order)
        delete, apply = (shlex.join(words) for words in (_delete(record), _apply(record)))
        return f"# if it has ended before: {delete}\n# {apply}\n{_text(order)}"

    def submit(self, order: Order, tell: Tell) -> Record:
        record, text = _record(order), _text(order)
        if self.state(record) in _ENDED:
            tell(run(_delete(record), timeout_s=DELETE_S))
        tell(run(_apply(record), text))
        namespace, _, name = record.id.partition("/")
        tell(f"dashboard: kubectl -n {namespace} port-forward svc/{name}-head-svc 8265:8265")
        return record

    def state(self, record: Record) -> str:
        name = record.id.rpartition("/")[2]
        words = _kubectl(record, "get", "rayjob", name, "--ignore-not-found")
        found = run([*words, "-o", "jsonpath={.metadata.name} {.status.jobDeploymentStatus}"])
        if not found:
            return "deleted"
        status = found.partition(" ")[2]
        return _STATES.get(status, status.lower())

    def stop(self, record: Record) -> None:
        """Stop the driver, then suspend the job: its pods are removed, and a launch resumes it.

        Kubernetes alone would kill the head, with the driver in it, at once.
        """
        merge = ("--type", "merge", "-p", '{"spec":{"suspend":true}}')
        suspend = _kubectl(record, "patch", "rayjob", record.id.rpartition("/")[2], *merge)
        try:
            _stop_driver(record)
        except SweepError as error:
            run(suspend)
            raise SweepError(f"{record.id}: suspended, but not stopped cleanly: {error}") from error
        run(suspend)

    def logs(self, record: Record, follow: bool, write: Tell) -> None:
        words = _kubectl(record, "logs", f"job/{record.id.rpartition('/')[2]}")
        if not follow:
            write(run(words))
            return
        with subprocess.Popen([*words, "-f"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                write(line)

    def find(self, folder: str) -> Record | None:
        words = ["kubectl", "get", "rayjob", "--all-namespaces", "--ignore-not-found"]
        path = "jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{'\\n'}{end}"
        for found in run([*words, "-o", path]).splitlines():
            if found.rpartition("/")[2] == job_name(folder):
                return Record(folder, "kuberay", found)
        return None


def _kubectl(record: Record, verb: str, *words: str) -> list[str]:
    return ["kubectl", verb, "--namespace", record.id.partition("/")[0], *words]


def _apply(record: Record) -> list[str]:
    return _kubectl(record, "apply", "-f", "-")


def _delete(record: Record) -> list[str]:
    """Delete the job with its cluster and its submitter, whose name the next job will reuse."""
    name = record.id.rpartition("/")[2]
    return _kubectl(record, "delete", "rayjob", name, "--wait", "--cascade=foreground")


def _stop_driver(record: Record) -> None:
    """Stop the job on the head, if one runs, and wait for its end."""
    path = "jsonpath={.status.rayClusterName}/{.status.jobId}/{.status.jobStatus}"
    found = run(_kubectl(record, "get", "rayjob", record.id.rpartition("/")[2], "-o", path))
    cluster, _, rest = found.partition("/")
    job, _, status = rest.partition("/")
    if status not in ("PENDING", "RUNNING"):
        return
    head = ("-l", f"ray.io/cluster={cluster},ray.io/node-type=head", "-o", "name")
    pods = run(_kubectl(record, "get", "pod", *head)).splitlines()
    if not pods:
        raise SweepError(f"the cluster {cluster} has no head")
    stop = ("ray", "job", "stop", "--address", DASHBOARD, job)
    words = _kubectl(record, "exec", pods[0], "-c", "ray-head", "--", *stop)
    run(words, timeout_s=2.0 * STOP_WAIT_S)


def _record(order: Order) -> Record:
    namespace = order.values.get("namespace") or "default"
    return Record(order.folder, "kuberay", f"{namespace}/{job_name(order.folder)}")


def _text(order: Order) -> str:
    return yaml.safe_dump_all(manifests(order), sort_keys=False, width=100)


def job_name(folder: str) -> str:
    """Name of the job of a folder; applying it again resumes the sweep."""
    return f"nasbo-{hashlib.sha256(folder.encode()).hexdigest()[:10]}"


def manifests(order: Order) -> list[dict[str, Any]]:
    """The config map with the sweep's files, and the RayJob.

    Raises:
        SweepError: the pods could not access the folder, or a field is not in the given CRD.
    """
    values = dict(order.values)
    if not is_url(order.folder) and not values.get("volume_claim"):
        raise SweepError(
            f"--dir must be a URL, or -v volume_claim=NAME must bring a disk to every pod: on the "
            f"pods' own disks {order.folder} would be lost with them"
        )
    if not is_url(order.folder) and not order.folder.startswith(f"{values['mount_path']}/"):
        raise SweepError(
            f"--dir must be a URL, or be below mount_path ({values['mount_path']}), which the "
            f"claim {values['volume_claim']!r} brings to every pod; got {order.folder}"
        )
    job = fill_manifest("rayjob.yaml", {**values, **_derived(order)})
    return [_config_map(order), job]


def fill_manifest(template: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of the recipe with values filled in; validated if the values name a CRD.

    Raises:
        SweepError: a value is missing or no count, or a field is not in the CRD.
    """
    if not values.get("image"):
        raise SweepError("the recipe kuberay needs -v image=REGISTRY/NAME:TAG")
    filled = fill(read_template("kuberay", template), {**values, **_counts(values)})
    if not values.get("volume_claim"):
        filled = _without(filled, "runs")
    if values.get("crd"):
        check_manifest(filled, Path(str(values["crd"])))
    manifest: dict[str, Any] = filled
    return manifest


def _counts(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numeric values; ``max_workers`` defaults to ``workers``."""
    workers = count(values, "workers", 0)
    most = count(values, "max_workers", 0) if values.get("max_workers") else workers
    if most < max(workers, 1):
        raise SweepError(
            f"max_workers >= workers and max_workers >= 1 must hold, but got max_workers = {most}, "
            f"workers = {workers}"
        )
    return {
        "workers": workers,
        "max_workers": most,
        "autoscaling": most > workers,
        "gpus": (count(values, "gpus_per_worker", 0) if values.get("gpus_per_worker") else 0)
        or None,
        "retries": count(values, "retries", 0),
    }


def _derived(order: Order) -> dict[str, Any]:
    """Values of the RayJob besides the recipe's own."""
    in_pod = replace(order, file=f"{SWEEP_FOLDER}/sweep.yaml")
    environment: dict[str, Any] = {
        "env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT_S), **order.env}
    }
    if order.values.get("working_dir"):
        environment["working_dir"] = order.values["working_dir"]
    return {
        "name": job_name(order.folder),
        "files": f"{job_name(order.folder)}-files",
        "files_path": SWEEP_FOLDER,
        "entrypoint": shlex.join(in_pod.command("python", "auto")),
        "runtime_env": yaml.safe_dump(environment, sort_keys=False),
        "metadata": order.metadata,
    }


def _config_map(order: Order) -> dict[str, Any]:
    """Config map with the sweep file and its space."""
    file = order.working_dir / order.file
    settings: Any = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    if not isinstance(settings, dict) or not isinstance(settings.get("space"), str):
        settings = {}
    settings = {**settings, "space": "space.yaml", "trainer": order.sweep.trainer}
    space = Path(order.sweep.space).read_text(encoding="utf-8")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{job_name(order.folder)}-files"},
        "data": {"sweep.yaml": yaml.safe_dump(settings, sort_keys=False), "space.yaml": space},
    }


def _without(document: Any, volume: str) -> Any:
    """Remove a volume from all declarations and mounts."""
    if isinstance(document, dict):
        return {key: _without(item, volume) for key, item in document.items()}
    if isinstance(document, list):
        is_it = [isinstance(item, dict) and item.get("name") == volume for item in document]
        pairs = zip(document, is_it, strict=True)
        return [_without(item, volume) for item, is_volume in pairs if not is_volume]
    return document
