"""ONNX file of a classifier, whose logits are compared with PyTorch's."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.network import Classifier

ONNX_FILE = "model.onnx"
TOLERANCE = 1e-4
INSTALL = "pip install 'nasbo[export]'"
BATCHES = (1, 2, 33)
N_TIMED = 30


class OnnxError(RuntimeError):
    """The network cannot be exported, or the file's logits differ from those of the network."""


def write_onnx(classifier: Classifier, file: Path) -> float:
    """Write a file for any batch size and compare its logits with PyTorch's.

    Returns:
        The largest difference between the logits, on random images.

    Raises:
        OnnxError: packages are missing, the network cannot be exported, or the difference is above
            `TOLERANCE`.
    """
    with _as_onnx_error("the network cannot be exported"):
        _export(classifier, file)
    difference = compare(classifier, file)
    if not difference <= TOLERANCE:
        raise OnnxError(f"{file}: logits must be within {TOLERANCE:g} of PyTorch, got {difference}")
    return difference


def _export(classifier: Classifier, file: Path) -> None:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import onnxscript  # noqa: F401

    images = _pictures(classifier, 2)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about internals of the exporter
        torch.onnx.export(
            classifier,
            (images,),
            file,
            input_names=["images"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


@contextmanager
def _as_onnx_error(what: str) -> Iterator[None]:
    """Convert all errors of the exporter and the runtime, which share no
    base class, to `OnnxError`.
    """
    try:
        yield
    except ImportError as error:
        raise OnnxError(f"an ONNX file needs more packages: {INSTALL} ({error})") from error
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        raise OnnxError(f"{what}: {type(error).__name__}: {first}") from error


def compare(classifier: Classifier, file: Path) -> float:
    """The largest difference between the logits of an ONNX file and of the network.

    Raises:
        OnnxError: packages are missing, or the file cannot be run.
    """
    with _as_onnx_error(f"{file}: must be an ONNX file of this network"):
        return _difference(classifier, file)


def _difference(classifier: Classifier, file: Path) -> float:
    session = _session(file)
    found = 0.0
    for size in BATCHES:
        images = _pictures(classifier, size)
        with torch.inference_mode():
            wanted = classifier(images).numpy()
        (logits,) = session.run(None, {"images": images.numpy()})
        if logits.shape != wanted.shape or not np.isfinite(logits).all():
            return float("inf")
        found = max(found, float(np.abs(logits - wanted).max()))
    return found


def latency_ms(classifier: Classifier) -> float:
    """Median of the milliseconds for one image in PyTorch, on the CPU with one thread."""
    image = _pictures(classifier, 1)
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            return _median_ms(lambda: classifier(image))
    finally:
        torch.set_num_threads(n_threads)


def onnx_latency_ms(classifier: Classifier, file: Path) -> float:
    """The same with the ONNX runtime; `OnnxError` if it cannot run the file."""
    with _as_onnx_error(f"{file}: cannot be run"):
        session, image = _session(file), _pictures(classifier, 1).numpy()
        return _median_ms(lambda: session.run(None, {"images": image}))


def _median_ms(call: Callable[[], Any]) -> float:
    for _ in range(3):
        call()
    times: list[float] = []
    for _ in range(N_TIMED):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1000 * float(np.median(times))


def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _pictures(classifier: Classifier, n: int) -> torch.Tensor:
    """Random pixels, the same on every call: float `(n, 3, size, size)`."""
    size = classifier.image_size
    pixels: NDArray[np.integer] = np.random.default_rng(n).integers(0, 256, (n, 3, size, size))
    return torch.from_numpy(pixels.astype(np.float32))
