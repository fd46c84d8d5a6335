"""Output of ``nasbo launch --dry-run``, and refused launches."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.launch.kuberay import job_name
from nasbo.launch.slurm import SCRIPT
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep

CRD = Path(__file__).parent / "crd.yaml"


def dry_run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["launch", *words, "--dry-run"])
    assert done.exit_code == code, done.output
    return done.output


def test_local(home: Path) -> None:
    lines = dry_run("sweep.yaml", "--on", "local", "--dir", "runs/a", "--trials", "9").splitlines()
    folder = home / "runs" / "a"
    assert lines == [
        f"cd {home}",
        f"mkdir -p -m 700 {folder}",
        f"RAY_USAGE_STATS_ENABLED=0 setsid {sys.executable} -m nasbo.cli run sweep.yaml --trials 9 "
        f"--dir {folder} --or-resume --address local < /dev/null >> {folder}/driver.log 2>&1 &",
    ]
    assert not folder.exists()


def test_local_can_be_pasted_into_a_shell(home: Path) -> None:
    text = dry_run("sweep.yaml", "--on", "local", "--dir", "runs/a b", "-e", "NOTE=x y")
    words = shlex.split(text)
    assert words[words.index(">>") + 1] == f"{home}/runs/a b/driver.log"
    assert words[words.index("700") + 1] == f"{home}/runs/a b"
    assert "NOTE=x y" in words


def test_a_job_of_a_ray_cluster(home: Path) -> None:
    options = ("-o", "epochs=3", "--gpus-per-trial", "0.5", "-e", "NASBO_DATA=/d")
    options += ("--method", "evolution", "-m", "population=9")
    text = dry_run("sweep.yaml", "--on", "http://127.0.0.1:1", "--dir", "/shared/a b", *options)
    job = yaml.safe_load(text)["ray job submit"]
    words = shlex.split(job["entrypoint"])
    assert words[:5] == ["python", "-m", "nasbo.cli", "run", "sweep.yaml"]
    assert words[words.index("--dir") + 1] == "/shared/a b"
    assert {"--or-resume", "epochs=3", "population=9", "0.5"} <= set(words)
    assert words[-2:] == ["--address", "auto"]
    assert job["runtime_env"]["working_dir"] == str(home)
    assert job["runtime_env"]["env_vars"]["NASBO_DATA"] == "/d"
    assert int(job["runtime_env"]["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"]) >= 30
    assert job["metadata"]["nasbo_folder"] == "/shared/a b"
    assert set(map(type, job["metadata"].values())) == {str}


def test_slurm(home: Path) -> None:
    given = ("-v", "nodes=4", "-v", "gpus_per_node=8", "-v", "partition=gpu", "-v", "signal_s=90")
    text = dry_run("sweep.yaml", "--on", "slurm", "--dir", "/shared/a", *given)
    words = shlex.split(text.replace("\\\n", ""))
    assert words[:5] == ["mkdir", "-p", "-m", "700", "/shared/a"]
    assert words[5] == "sbatch"
    expected = {"--nodes=4", "--gpus-per-node=8", "--partition=gpu", "--signal=B:USR1@90"}
    assert expected | {"--requeue", "--open-mode=append", "--comment=/shared/a"} <= set(words)
    assert "--output=/shared/a/driver.log" in words
    assert words[words.index(str(SCRIPT)) + 1 :] == [
        *(sys.executable, "-m", "nasbo.cli", "run", "sweep.yaml"),
        *("--dir", "/shared/a", "--or-resume", "--address", "NASBO_RAY_ADDRESS"),
    ]
    assert not [word for word in words if word.startswith(("--mem", "--account", "--time"))]


def test_slurm_gets_its_values_as_they_are_written(home: Path) -> None:
    (home / "mine.yaml").write_text(
        "time_limit: 12:00:00\naccount: 0123\npartition: on\nqos: 1e3\n"
    )
    text = {"time": "12:00:00", "account": "0123", "partition": "on"}
    pairs = ("-v", "time_limit=12:00:00", "-v", "account=0123", "-v", "partition=on")
    options = ("sweep.yaml", "--on", "slurm", "--dir", "/shared/a")
    for given in (pairs, ("--values", "mine.yaml")):
        words = shlex.split(dry_run(*options, *given).replace("\\\n", ""))
        assert {f"--{name}={value}" for name, value in text.items()} <= set(words)
    words = shlex.split(dry_run(*options, "-v", "signal_s=", "-v", "gpus_per_node=a100:4"))
    assert "--gpus-per-node=a100:4" in words
    assert "None" not in " ".join(words)
    assert "--signal=" not in " ".join(words)  # the script has its own


def rendered(*words: str) -> list[dict[str, Any]]:
    image = ("-v", "image=registry.example/nasbo:1")
    return list(yaml.safe_load_all(dry_run("sweep.yaml", "--on", "kuberay", *image, *words)))


def test_kuberay_on_a_bucket(home: Path) -> None:
    folder = "s3://bucket/runs/a"
    files, job = rendered("--dir", folder, "-v", f"crd={CRD}", "-v", "gpus_per_worker=1")
    assert yaml.safe_load(files["data"]["sweep.yaml"])["space"] == "space.yaml"
    assert files["data"]["space.yaml"] == (home / "my_space.yaml").read_text()
    spec = job["spec"]
    words = shlex.split(spec["entrypoint"])
    assert words[4] == "/etc/nasbo/sweep.yaml"
    assert {"--or-resume", folder} <= set(words)
    assert spec["backoffLimit"] > 0
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert job["metadata"]["name"] == job_name(folder)
    worker = spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]
    assert worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert [volume["name"] for volume in worker["volumes"]] == ["files"]
    assert "serviceAccountName" not in worker
    assert yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"] == "60"


def test_kuberay_on_a_shared_volume(home: Path) -> None:
    claim = ("-v", "volume_claim=runs", "-v", f"crd={CRD}", "-v", "max_workers=9")
    _, job = rendered("--dir", "/shared/runs/a", *claim)
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    assert [volume["name"] for volume in head["volumes"]] == ["files", "runs"]
    assert head["containers"][0]["volumeMounts"][1]["mountPath"] == "/shared"
    assert cluster["enableInTreeAutoscaling"] is True
    assert "nvidia.com/gpu" not in str(job)


def test_kuberay_has_as_many_pods_as_workers(home: Path) -> None:
    given = ("--dir", "s3://b/a", "-v", f"crd={CRD}", "-v", "workers=8", "-v", "ray_version=2.60")
    _, job = rendered(*given)
    cluster = job["spec"]["rayClusterSpec"]
    group = cluster["workerGroupSpecs"][0]
    assert [group[name] for name in ("replicas", "minReplicas", "maxReplicas")] == [8, 8, 8]
    assert cluster["enableInTreeAutoscaling"] is False
    assert cluster["rayVersion"] == "2.60"


ON_KUBERAY = ("--on", "kuberay", "--dir", "s3://b/a", "-v", "image=x")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--on", "cloud"], "must be local, slurm, kuberay or the address"),
        (["--on", "slurm", "-v", "gpus=1"], "has no value 'gpus'; it has: partition"),
        (["--on", "local", "-v", "nodes=1"], "--on local has no values"),
        (["--on", "kuberay", "-v", "image=x", "--dir", "/home/a"], "volume_claim=NAME must"),
        (
            [*("--on", "kuberay", "-v", "image=x", "-v", "volume_claim=c"), "--dir", "/home/a"],
            "below mount_path",
        ),
        (["--on", "kuberay", "--dir", "s3://b/a"], "needs -v image="),
        ([*ON_KUBERAY, "-v", "workers="], "-v workers=N must be a whole number >= 0, got ''"),
        ([*ON_KUBERAY, "-v", "max_workers=many"], "-v max_workers=N must be a whole number"),
        ([*ON_KUBERAY, "-v", "workers=3", "-v", "max_workers=2"], "max_workers >= workers and"),
        ([*ON_KUBERAY, "-v", "workers=0"], "max_workers >= 1 must hold"),
        (["--on", "slurm", "-e", "A=1,2"], "takes no comma in A"),
        (["--on", "slurm", "-v", "nodes=many"], "-v nodes=N must be a whole number >= 1"),
        (["--on", "slurm", "-v", "signal_s=2m"], "must be a whole number >= 0, got '2m'"),
        (["--on", "local", "-e", "nothing"], "must be NAME=VALUE"),
        (["--on", "local", "--gpus-per-trial", "1.5"], "must be whole above 1"),
        (["--on", "local", "--resource", "spot=0"], "amounts above 0"),
        (["--on", "slurm", "--method", "bogus"], "unknown method 'bogus'"),
        (["--on", "auto", "-m", "nonsense=1"], "'random' has no option 'nonsense'"),
        (["--on", "local", "--warm-start", "nowhere"], "nowhere' holds no sweep"),
        ([*ON_KUBERAY, "--warm-start", "nowhere"], "nowhere' holds no sweep"),
        (["--on", "slurm", "--warm-start", "/nowhere"], "nowhere' holds no sweep"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(home: Path, words: list[str], rule: str) -> None:
    text = dry_run("sweep.yaml", *words, code=2)
    assert rule in text
    assert len(text.strip().splitlines()) == 1


def test_files_outside_the_working_directory_are_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "far.yaml").write_text((home / "my_space.yaml").read_text())
    (home / "sweep.yaml").write_text(f"space: {tmp_path}/far.yaml\ntrainer: my_own_trainer:train\n")
    assert "must be in the working directory" in dry_run("sweep.yaml", "--on", "local", code=2)


def test_storage_path_names_the_folder(home: Path) -> None:
    (home / "sweep.yaml").write_text(
        "storage_path: s3://b/runs\n" + (home / "sweep.yaml").read_text()
    )
    job = yaml.safe_load(dry_run("sweep.yaml", "--on", "auto"))["ray job submit"]
    assert job["metadata"]["nasbo_folder"].startswith("s3://b/runs/my_space-")


def held(folder: Path, home: Path) -> Path:
    """The folder of a sweep that has begun."""
    given = {"working_folder": str(home), "space": str(home / "my_space.yaml")}
    sweep = make_sweep({**yaml.safe_load((home / "sweep.yaml").read_text()), **given})
    create_folder(folder, replace(sweep, mode="min"))
    return folder


@pytest.mark.parametrize("from_file", [False, True])
def test_a_warm_start_means_the_same_everywhere(home: Path, from_file: bool) -> None:
    held(home / "runs" / "first", home)
    words: tuple[str, ...] = ("--warm-start", "runs/first", "--seed", "3")
    if from_file:
        with (home / "sweep.yaml").open("a") as file:
            file.write("warm_start: runs/first\n")
        words = words[2:]
    job = yaml.safe_load(dry_run("sweep.yaml", "--on", "auto", *words))["ray job submit"]
    given = shlex.split(job["entrypoint"])
    assert given[given.index("--warm-start") + 1] == f"{home}/runs/first"
    assert given.count("--warm-start") == 1
    assert given[given.index("--seed") + 1] == "3"


def test_a_warm_start_that_only_the_cluster_sees_is_left_to_it(home: Path) -> None:
    for folder in ("/shared/runs/first", "s3://bucket/runs/first"):
        text = dry_run("sweep.yaml", "--on", "auto", "--warm-start", folder)
        assert f"--warm-start {folder}" in " ".join(text.split())


def test_another_sweep_in_the_folder_is_refused(home: Path) -> None:
    folder = held(home / "runs" / "a", home)
    options = ("sweep.yaml", "--on", "slurm", "--dir", "runs/a")
    dry_run(*options, "--trials", "99")
    text = dry_run(*options, "--method", "evolution", code=2)
    assert f"{folder} holds a sweep with method = 'random', not 'evolution'" in text


def test_a_dry_run_needs_its_words(home: Path) -> None:
    assert "--on says where" in dry_run("sweep.yaml", "--on", "local", "--address", "x:1", code=2)
