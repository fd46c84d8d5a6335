"""Facts about an installation, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from nasbo.resources import gpu_names

PACKAGES = ("nasbo", "ray", "torch", "torchvision", "gpytorch", "botorch", "numpy")
EXTRAS = ("lightning", "timm", "optuna", "onnxruntime", "smac")
WIDTH = 13
MISSING = "not installed"


def version() -> str:
    """The version of nasbo, as it was installed."""
    return _version("nasbo")


def describe_installation() -> list[str]:
    """A line for each fact: versions, platform, processors, GPUs, and where the package lies."""
    facts = {name: _version(name) for name in PACKAGES}
    facts |= {name: found for name in EXTRAS if (found := _version(name)) != MISSING}
    facts |= {
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processors": str(os.cpu_count()),
        "gpus": ", ".join(gpu_names()) or "none",
        "package": str(Path(__file__).resolve().parent),
    }
    return [f"{name:<{WIDTH}}{fact}" for name, fact in facts.items()]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return MISSING
