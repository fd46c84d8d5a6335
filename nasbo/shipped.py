"""Resolution of the package ``trainers``: nasbo's own, or a user's package of the same name.

A module that nasbo ships is always nasbo's own, even if the working directory has one of that name.
All others are the user's.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

from nasbo.errors import SweepError

PACKAGE = "trainers"
ROOT = Path(__file__).resolve().parents[1]
"""Installation folder of nasbo, which also contains its trainers."""


def use_shipped() -> None:
    """Make ``import trainers`` import nasbo's package from here on."""
    _bind(ROOT / PACKAGE)


def settle_package(module: str, folder: str | Path) -> None:
    """Make ``trainers`` refer to the package that contains a trainer's module.

    Args:
        module: of a trainer; modules of other packages are ignored.
        folder: folder of the user's code.
    """
    if module.partition(".")[0] != PACKAGE:
        return
    if is_shipped_module(module):
        use_shipped()
        return
    for root in (Path(folder), *map(Path, sys.path)):
        if (source := _source(root, module)) is not None:
            is_file = source.name == f"{PACKAGE}.py"  # a module, not a package
            _bind(source if is_file else root.resolve() / PACKAGE)
            return


def is_meant(error: ImportError) -> bool:
    """Whether an import failed in a user's own package that may be one from nasbo's."""
    found = sys.modules.get(PACKAGE)
    is_own = found is not None and not _is_from(found.__spec__, ROOT / PACKAGE)
    return is_own and (error.name or "").partition(".")[0] == PACKAGE


def is_shipped_module(module: str) -> bool:
    """Whether a module is one of nasbo's trainers."""
    return module.startswith(f"{PACKAGE}.") and _source(ROOT, module) is not None


def check_own_name(trainer: str, folder: str | Path) -> None:
    """Raise for a name that matches both a user's file and one of nasbo's.

    Args:
        trainer: ``module:function``, as given by the user.
        folder: folder of the user's code.

    Raises:
        SweepError: there are two such files.
    """
    module = trainer.partition(":")[0]
    own, shipped = _source(Path(folder), module), _source(ROOT, module)
    if not is_shipped_module(module) or own is None or shipped is None:
        return
    if own.resolve() != shipped.resolve():
        raise SweepError(
            f"the trainer {trainer} may be {own} or nasbo's own {shipped}: rename the first"
        )


def _source(root: Path, module: str) -> Path | None:
    """The file of a module below a folder."""
    stem = root.joinpath(*module.split("."))
    found = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
    return next((file for file in found if file.is_file()), None)


def _bind(path: Path) -> None:
    """Import the package from a folder, or the module from a file, unless that is done."""
    known = sys.modules.get(PACKAGE)
    if known is not None and _is_from(known.__spec__, path):
        return
    for name in [n for n in sys.modules if n.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    spec = _spec(path)
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    try:
        if spec.loader is not None:
            spec.loader.exec_module(package)
    except BaseException:  # a half-imported module must not remain
        del sys.modules[PACKAGE]
        raise


def _is_from(spec: ModuleSpec | None, path: Path) -> bool:
    if spec is None:
        return False
    found = spec.submodule_search_locations or [spec.origin or ""]
    return [Path(one).resolve() for one in found] == [path.resolve()]


def _spec(path: Path) -> ModuleSpec:
    """Import specification of a package or module; a folder without
    ``__init__.py`` is a package.
    """
    if path.is_file():
        found = importlib.util.spec_from_file_location(PACKAGE, path)
    elif (source := path / "__init__.py").is_file():
        found = importlib.util.spec_from_file_location(
            PACKAGE, source, submodule_search_locations=[str(path)]
        )
    else:
        found = ModuleSpec(PACKAGE, None, is_package=True)
        found.submodule_search_locations = [str(path)]
    assert found is not None
    return found
