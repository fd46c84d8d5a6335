"""Starting points for sweeps of one's own: files that run as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nasbo.errors import NasboError

KINDS = {
    "torch": "a plain PyTorch trainer with networks and data of your own",
    "lightning": "a LightningModule of your own",
    "timm": "networks of timm on a folder of pictures, by nasbo's own trainer",
}
DEFAULT = "torch"
FOLDER = Path(__file__).with_name("starters")
HERE = "@HERE@"
"""Stands in a file for the folder to which it is written."""


def write_starter(kind: str, folder: Path) -> list[Path]:
    """Write the files of a kind of sweep; all of them, or none.

    Args:
        kind: one of ``KINDS``.
        folder: made if it is missing.

    Raises:
        NasboError: a file of that name is there already, or the folder cannot be written.
    """
    files = {folder / source.name: source for source in _sources(kind)}
    if there := [str(target) for target in files if target.exists()]:
        raise NasboError(f"files are not overwritten, and there are {', '.join(there)} already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, source in files.items():
            text = source.read_text(encoding="utf-8").replace(HERE, str(folder.resolve()))
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise NasboError(f"{folder}: cannot be written: {error}") from error
    return list(files)


def next_commands(kind: str, folder: Path) -> list[str]:
    """What to type now."""
    is_here = folder.resolve() == Path.cwd()
    first = [] if is_here else [f"cd {folder}"]
    drawn = ["python pictures.py"] if kind == "timm" else []
    return [
        *(first + drawn),
        "nasbo run sweep.yaml --dry-run",
        "nasbo run sweep.yaml --dir runs/first",
        "nasbo report runs/first",
    ]


def _sources(kind: str) -> Iterator[Path]:
    if kind not in KINDS:
        raise NasboError(f"a starter must be one of {', '.join(KINDS)}, got {kind!r}")
    yield from (file for file in sorted((FOLDER / kind).iterdir()) if file.is_file())
