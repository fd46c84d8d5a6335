"""Location and reason of an error in a user's module that fails to import."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

NASBO = Path(__file__).resolve().parent
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"]).resolve()
INSTALLED = ("site-packages", "dist-packages")


def describe_import(error: BaseException, folder: str | Path) -> str:
    """``file:line: kind: message`` of an exception on import.

    Args:
        error: with its traceback.
        folder: paths below this folder are shown relative to it.
    """
    kind, words = type(error).__name__, str(error)
    where = last_own_line(error)
    if isinstance(error, SyntaxError) and _is_file(error.filename or "") and error.lineno:
        where, words = (error.filename or "", error.lineno), error.msg
    said = f"{kind}: {words}" if words else kind
    return f"{_shown(where[0], folder)}:{where[1]}: {said}" if where else said


def last_own_line(error: BaseException) -> tuple[str, int] | None:
    """Innermost file and line outside of Python, nasbo and installed packages."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [(one.filename, one.lineno or 0) for one in frames if _is_own(one.filename)]
    return own[-1] if own else None


def _is_own(name: str) -> bool:
    file = Path(name).resolve()
    if not _is_file(name) or any(part in INSTALLED for part in file.parts):
        return False
    return not file.is_relative_to(NASBO) and not file.is_relative_to(STANDARD_LIBRARY)


def _is_file(name: str) -> bool:
    """Whether a code object has a file, unlike ``<string>``."""
    return bool(name) and not name.startswith("<")


def _shown(name: str, folder: str | Path) -> str:
    file, root = Path(name).resolve(), Path(folder).resolve()
    return str(file.relative_to(root)) if file.is_relative_to(root) else name
