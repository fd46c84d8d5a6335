"""Processes that the Slurm script starts, with fake srun and scontrol."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nasbo.launch.slurm import SCRIPT


@pytest.mark.parametrize(("cpus", "expected"), [("6", "6"), (None, "1")])
def test_the_step_has_all_cpus_of_its_task(tmp_path: Path, cpus: str | None, expected: str) -> None:
    programs = {"srun": f'printf "%s\\n" "$@" >{tmp_path}/words', "scontrol": "echo localhost"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tmp_path / name).chmod(0o700)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "NASBO_JOB_FOLDER": str(tmp_path),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_JOB_NUM_NODES": "1",
        **({"SLURM_CPUS_PER_TASK": cpus} if cpus else {}),
    }
    command = ["bash", str(SCRIPT), "true", "NASBO_RAY_ADDRESS"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "Ray did not start" in done.stderr
    words = (tmp_path / "words").read_text().splitlines()
    own, of_ray = words[: words.index("ray")], words[words.index("ray") :]
    assert f"--cpus-per-task={expected}" in own
    assert f"--num-cpus={expected}" in of_ray
    assert of_ray[-2:] == ["true", "127.0.0.1:20070"]
