"""Recipes: their values, their placeholders, and Ray's schema for ``ray up``."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from nasbo.errors import SweepError
from nasbo.launch.recipes import RECIPES, count, fill, read_values
from tests.launch.hosts import ROOT

SPEC = importlib.util.find_spec("ray")
assert SPEC is not None
assert SPEC.origin is not None
SCHEMA = json.loads((Path(SPEC.origin).parent / "autoscaler" / "ray-schema.json").read_text())


def test_values_of_types_keep_them_and_missing_ones_leave_no_trace() -> None:
    template = {"a": "${n}", "b": ["${none}", "x-${n}"], "c": {"d": "${none}"}, "e": 3}
    assert fill(template, {"n": 4, "none": None}) == {"a": 4, "b": ["x-4"], "c": {}, "e": 3}
    nasty = "1\nkind: Other"
    assert fill({"a": "${n}", "b": "is ${n}"}, {"n": nasty}) == {"a": nasty, "b": f"is {nasty}"}
    with pytest.raises(SweepError, match="needs 'm'; values: n"):
        fill("${m}", {"n": 1})


def test_files_and_words_override(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("nodes: 3\npartition: gpu\n")
    values = read_values("slurm", file, ["nodes=5"])
    assert (values["nodes"], values["partition"], values["cpus_per_node"]) == ("5", "gpu", "8")
    file.write_text("- nodes\n")
    with pytest.raises(SweepError, match="must be a mapping of values"):
        read_values("slurm", file, [])
    file.write_text("qos: [a, b]\n")
    with pytest.raises(SweepError, match=r"the value of 'qos' must be text, got \['a', 'b'\]"):
        read_values("slurm", file, [])


def test_values_are_text_and_empty_ones_are_none(tmp_path: Path) -> None:
    text = {"time_limit": "12:00:00", "account": "0123", "partition": "on"}
    file = tmp_path / "mine.yaml"
    file.write_text("".join(f"{name}: {value}\n" for name, value in text.items()) + "signal_s:\n")
    words = [f"{name}={value}" for name, value in text.items()] + ["signal_s="]
    for values in (read_values("slurm", file, []), read_values("slurm", None, words)):
        assert {name: values[name] for name in text} == text
        assert values["signal_s"] is None


def test_counts_are_checked() -> None:
    assert count({"n": "08"}, "n") == 8
    for text in (None, "", "many", "-1", "1.5", "0", "²"):
        with pytest.raises(SweepError, match="-v n=N must be a whole number >= 1, got"):
            count({"n": text}, "n")


@pytest.mark.parametrize("name", ["onprem", "aws", "gcp"])
def test_ray_up_files_fit_rays_schema(name: str) -> None:
    text = (RECIPES / "ray_up" / f"{name}.yaml").read_text()
    config = yaml.safe_load(text)
    jsonschema.validate(config, SCHEMA)
    assert "Not run by us" in text
    assert "# yours" in text
    heads, others = config["head_start_ray_commands"], config["worker_start_ray_commands"]
    for command in (heads[-1], others[-1]):
        assert command.startswith("RAY_AUTH_MODE=token")
        assert "--disable-usage-stats" in command
        # Jobs inherit the path, and their entrypoint is the Python that has nasbo.
        assert " PATH=$HOME/nasbo/bin:$PATH ray start " in command
    assert "--dashboard-host=127.0.0.1" in heads[-1]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**config, "workers": 3}, SCHEMA)


@pytest.mark.parametrize("name", ["onprem", "aws", "gcp"])
def test_ray_up_installs_what_it_brought_along(name: str) -> None:
    config = yaml.safe_load((RECIPES / "ray_up" / f"{name}.yaml").read_text())
    mounts, commands = config["file_mounts"], config["setup_commands"]
    assert {"dist", "requirements.lock"} <= set(mounts.values())
    remote = {local: path for path, local in mounts.items()}
    packages, own = (command for command in commands if " install " in command)
    assert packages.endswith(f"-r {remote['requirements.lock']}")
    assert own.endswith(
        f"--no-deps --force-reinstall --no-index --find-links {remote['dist']} nasbo"
    )
    assert (RECIPES.parent / "requirements.lock").exists()
    assert "build --wheel" in (RECIPES / "ray_up" / "README.md").read_text()


def test_the_tokens_folder_is_made_before_the_token_is_copied() -> None:
    text = (RECIPES / "hosts" / "README.md").read_text()
    assert 0 < text.find("ssh OTHER mkdir -p -m 700 .ray ") < text.index("scp ~/.ray/auth_token")


def test_every_placeholder_has_a_value() -> None:
    known = set(read_values("kuberay", None, []))
    derived = {"name", "files", "files_path", "entrypoint", "runtime_env", "metadata"}
    for file in (RECIPES / "kuberay").glob("ray*.yaml"):
        used = set(re.findall(r"\$\{(\w+)\}", file.read_text()))
        assert used <= known | derived | {"gpus", "autoscaling"}, file


@pytest.mark.parametrize("name", ["hosts", "slurm", "kuberay", "ray_up", "container"])
def test_every_recipe_has_a_readme_that_is_listed(name: str) -> None:
    assert len((RECIPES / name / "README.md").read_text()) > 100
    assert f"({name}/README.md)" in (RECIPES / "README.md").read_text()


def test_stop_ends_the_processes_of_its_own_cluster_only(tmp_path: Path) -> None:
    """With Ray's names of processes; `ray stop` would end those of every cluster."""
    (tmp_path / "cluster.env").write_text(
        "HEAD_ADDRESS=10.0.0.1\nRAY_PORT=45671\nTOKEN_FILE=/nowhere\n"
    )
    names = ("--gcs-address=10.0.0.1:45671", "--gcs_server_port=45671", "--gcs-address=a:456712")
    code = "import time; time.sleep(60)"
    started = [subprocess.Popen([sys.executable, "-c", code, name, "last"]) for name in names]
    try:
        environment = {**os.environ, "NASBO_CLUSTER_ENV": str(tmp_path / "cluster.env")}
        script = ROOT / "cluster" / "hosts" / "start.sh"
        assert subprocess.run([script, "stop"], env=environment).returncode == 0
        assert [process.wait(timeout=20) for process in started[:2]] == [-signal.SIGTERM] * 2
        assert started[2].poll() is None
        assert subprocess.run([script, "stop"], env=environment).returncode == 0
    finally:
        for process in started:
            process.kill()
            process.wait()
