"""Networks of the package timm, from configurations that name a model and its arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from torch import nn

from trainers.architecture import Config, InvalidArchitecture
from trainers.families import Family
from trainers.recipe import InvalidOption
from trainers.summary import summarise

DEFAULTS = {"batch_size": 64, "learning_rate": 0.05, "step_size": 100}
"""Of how a network is trained; a step of 100 % is a rate that stays."""
TRAINING = (*DEFAULTS, "optimizer", "weight_decay")
OPTIMIZERS = ("sgd", "adamw")
LARGEST_BATCH = 65_536


def require_timm() -> Any:
    """The package, or `InvalidOption` that says where it comes from."""
    try:
        import timm
    except ModuleNotFoundError as error:
        raise InvalidOption(
            "the trainer trainers.timm needs the package timm: pip install 'nasbo[timm]'"
        ) from error
    return timm


def build(config: Config, width: float, n_classes: int, image_size: int) -> nn.Module:
    """The network of a configuration; `width` is for other families.

    Raises:
        InvalidArchitecture: timm has no such model, or the model no such argument.
    """
    return _created(config, n_classes, image_size, bool(config.get("pretrained", False)))


def summary(config: Config, width: float, n_classes: int, image_size: int) -> dict[str, Any]:
    """`params`, `flops` and `activations`, traced."""
    text = json.dumps(_canonical(config), sort_keys=True)
    return dict(_traced(text, n_classes, image_size))


def sizes(config: Config, width: float, n_classes: int, image_size: int) -> dict[str, Any]:
    """Parameters and FLOPs: the network that is trained is the architecture in full."""
    found = summary(config, width, n_classes, image_size)
    both = {"params": found["params"], "flops": found["flops"]}
    return both | {f"trial_{name}": value for name, value in both.items()}


def fingerprint(config: Config) -> str:
    """Canonical hash of a configuration with its defaults."""
    text = json.dumps({**DEFAULTS, **_canonical(config)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def complete(config: Config) -> Config:
    """A configuration with defaults for how it is trained."""
    return {**DEFAULTS, **_canonical(config)}


def check(config: Config) -> None:
    """Raises `InvalidArchitecture` for what can neither be built nor trained."""
    whole = complete(config)
    size = whole["batch_size"]
    if not isinstance(size, int) or isinstance(size, bool) or not 2 <= size <= LARGEST_BATCH:
        raise InvalidArchitecture(f"batch_size must be in 2..{LARGEST_BATCH}, got {size!r}")
    if (optimizer := whole.get("optimizer", OPTIMIZERS[0])) not in OPTIMIZERS:
        known = " or ".join(OPTIMIZERS)
        raise InvalidArchitecture(f"optimizer must be {known}, got {optimizer!r}")
    for name in ("learning_rate", "weight_decay"):
        value = whole.get(name, 0.0)
        if not isinstance(value, int | float) or not 0 <= value < 100:
            raise InvalidArchitecture(f"{name} must be a number in [0, 100), got {value!r}")


@lru_cache(maxsize=1024)
def _traced(config: str, n_classes: int, image_size: int) -> Mapping[str, int]:
    known = json.loads(config)
    shape = (3, image_size, image_size)
    return summarise(lambda: _created(known, n_classes, image_size, False), shape)


def _created(config: Config, n_classes: int, image_size: int, is_pretrained: bool) -> nn.Module:
    timm, arguments = require_timm(), _canonical(config)
    name = arguments.pop("model", None)
    for other in (*TRAINING, "pretrained"):
        arguments.pop(other, None)
    if not isinstance(name, str) or not timm.is_model(name):
        raise InvalidArchitecture(f"model must be one of timm.list_models(), got {name!r}")
    if _has_fixed_size(timm, name):
        arguments.setdefault("img_size", image_size)
    try:
        created: nn.Module = timm.create_model(
            name, pretrained=is_pretrained, num_classes=n_classes, **arguments
        )
    except (TypeError, ValueError, AssertionError, KeyError, RuntimeError) as error:
        if isinstance(error, NotImplementedError):  # of the meta device: it is built elsewhere
            raise
        raise InvalidArchitecture(f"{name} with {arguments} cannot be built: {error}") from error
    return created


def _has_fixed_size(timm: Any, name: str) -> bool:
    """Whether the model must be told the size of the pictures."""
    known = timm.get_pretrained_cfg(name)
    return bool(known is not None and known.fixed_input_size)


def _canonical(config: Config) -> dict[str, Any]:
    """Without what is not set."""
    return {name: value for name, value in config.items() if value is not None}


TIMM = Family("timm", build, summary, sizes, fingerprint, complete)
