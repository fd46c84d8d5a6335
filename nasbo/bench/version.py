"""Version of a method: a hash of its code, and the versions of the packages behind it.

The code is what the method's module imports, directly or indirectly, from the packages of nasbo
that choose configs. It is read from the source, so there is no number to maintain. Comments and
docstrings do not count, so that they can be improved without making results stale.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path

from nasbo.bench.peers import PACKAGES
from nasbo.bench.spec import MethodSpec
from nasbo.errors import NasboError
from nasbo.methods.registry import known_methods

HOME = "nasbo"
_ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "nasbo.acquisition",
    "nasbo.bench.peers",
    "nasbo.feasibility",
    "nasbo.gp",
    "nasbo.history.expression",
    "nasbo.history.front",
    "nasbo.methods",
    "nasbo.space.flat",
    "nasbo.space.kinds",
    "nasbo.space.neighbours",
    "nasbo.space.parameter",
    "nasbo.space.subspace",
    "nasbo.space.tree",
    "nasbo.space.walk",
    "nasbo.surrogates",
)
"""Modules that decide. Other imports of a method (space files, histories,
errors) only carry values."""
_INSIDE = tuple(f"{room}." for room in ROOMS)
_SPACE = "nasbo.space"
"""Re-exports names of deciding and other modules, so the package itself is followed."""
CURVE_MODULES = (
    "nasbo.bench.cell",
    "nasbo.bench.curves.cell",
    "nasbo.bench.curves.clock",
    "nasbo.bench.curves.dehb_search",
    "nasbo.bench.curves.ledger",
    "nasbo.bench.curves.members",
    "nasbo.bench.curves.optuna_halving",
    "nasbo.bench.curves.smac_fidelity",
    "nasbo.bench.curves.stopping",
    "nasbo.bench.pool",
    "nasbo.history.history",
    "nasbo.history.objectives",
    "nasbo.history.records",
    "nasbo.history.rungs",
    "nasbo.history.view",
    "nasbo.search.driver",
    "nasbo.search.round_events",
    "nasbo.search.rungs",
    "nasbo.search.schedule",
    "nasbo.search.search",
    "nasbo.search.stopping",
)
"""Code that decides how far trials are trained and which config is returned."""
DATA_SUFFIXES = (".json", ".npz", ".npy", ".pt", ".safetensors")
"""Data files beside the modules that decide what a method does, such as weights."""


def method_version(spec: MethodSpec) -> str:
    """E.g. ``3f9a1c52e07b`` or ``08b4d1e6a2c3 optuna 5.0.0``."""
    module = method_module(spec.method)
    packages = [f"{name} {_installed(name)}" for name in PACKAGES.get(spec.method, ())]
    return " ".join([code_hash(module), *packages])


def curve_version(spec: MethodSpec) -> str:
    """Version of a method that trains in part: includes the code of rungs and budgets."""
    own = f" DEHB {_installed('DEHB')}" if spec.name == "dehb" else ""
    return f"{method_version(spec)}{own} curves {modules_hash(CURVE_MODULES)}"


def method_module(method: str) -> str:
    """The module of a method, by name or path."""
    if ":" in method:
        return method.partition(":")[0]
    methods = known_methods()
    if method not in methods:
        raise NasboError(f"unknown method {method!r}; known: {', '.join(sorted(methods))}")
    return methods[method].path.partition(":")[0]


@lru_cache(maxsize=256)
def code_hash(module: str) -> str:
    """Hash of the code that a module depends on."""
    digest = hashlib.sha256()
    folders = set()
    for name in sorted(reached_modules(module)):
        file = _file(name)
        if file is not None:
            digest.update(f"{name}\n{_bare(file)}\n".encode())
            folders.add(file.parent)
    for file in sorted(data for folder in folders for data in folder.iterdir()):
        if file.suffix in DATA_SUFFIXES:
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=8)
def modules_hash(modules: tuple[str, ...]) -> str:
    """Hash of the code of modules, without their imports."""
    digest = hashlib.sha256()
    for name in modules:
        file = _file(name)
        if file is None:
            raise NasboError(f"there is no module {name!r}")
        digest.update(f"{name}\n{_bare(file)}\n".encode())
    return digest.hexdigest()[:12]


def reached_modules(module: str) -> set[str]:
    """The module and all modules of ``ROOMS`` that it imports, also inside functions."""
    found, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name in found or (file := _file(name)) is None:
            continue
        found.add(name)
        waiting += [other for other in _imported(file) if _decides(other)]
    return found


def _decides(module: str) -> bool:
    return module == _SPACE or f"{module}.".startswith(_INSIDE)


def bare_source(text: str) -> str:
    """Source without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.unparse(tree)


@lru_cache(maxsize=1024)
def _bare(file: Path) -> str:
    return bare_source(file.read_text(encoding="utf-8"))


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a bare string, which has no effect."""
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def _imported(file: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if name.startswith(HOME) and _file(name)]
            names += modules if len(modules) == len(inner) else [*modules, node.module]
    return tuple(names)


@lru_cache(maxsize=1024)
def _file(name: str) -> Path | None:
    """The file of a module; modules of nasbo are found without an import."""
    home, *inner = name.split(".")
    if home == HOME:
        path = _ROOT.joinpath(*inner)
        files = (path.with_suffix(".py"), path / "__init__.py")
        return next((file for file in files if file.is_file()), None)
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a name inside a module is no module
        return None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    return Path(found.origin)


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
