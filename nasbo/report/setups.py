"""Setups of sweeps (all settings except the seed, the budget and the machines), and their names.

Sweeps of one setup differ only by chance, so that a median over them is meaningful.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nasbo.report.axes import number_text
from nasbo.report.drawing import shorten_text
from nasbo.report.study import Study
from nasbo.sweeps.settings import MAY_DIFFER, SETTINGS

FIRST = ("method", "method_options", "trainer", "trainer_options", "space", "provenance")
"""Settings in the order in which names mention them; the others follow."""
APART = {"seed", "stop_at", "metric", "mode", *MAY_DIFFER} - {"slots", *FIRST}
"""Settings that do not define a setup: chance, budget, machines, and the common goal."""
VALUE_MAKERS = {
    "trainer": "trainer",
    "trainer_options": "trainer options",
    "space": "space",
    "provenance": "data",
}
"""Settings that values depend on, with their names on the page."""
MAX_WORDS = 32

Trait = tuple[str, str]
"""A setting and, if it is a mapping, one of its keys."""
Setup = dict[Trait, Any]


def setup_of(study: Study) -> Setup:
    """Settings that define a setup; those that are not given are absent."""
    others = [name for name in SETTINGS if name not in (*FIRST, *APART)]
    setup: Setup = {}
    for name in (*FIRST, *others):
        value = getattr(study.sweep, name)
        if name == "space":
            setup[name, ""] = study.history.space.fingerprint()
        elif isinstance(value, dict):
            setup |= {(name, str(key)): item for key, item in sorted(value.items())}
        elif value not in (None, []):
            setup[name, ""] = value
    return setup


def varying(studies: Sequence[Study]) -> list[Trait]:
    """Traits in which the setups of sweeps differ, in their order."""
    setups = [setup_of(study) for study in studies]
    traits = sorted({trait for setup in setups for trait in setup}, key=_order)
    return [trait for trait in traits if len({_key(s, [trait]) for s in setups}) > 1]


def varying_settings(studies: Sequence[Study]) -> list[str]:
    """Settings in which the setups of sweeps differ, in their order."""
    return list(dict.fromkeys(name for name, _ in varying(studies)))


def setup_names(studies: Sequence[Study]) -> list[str]:
    """A name for the setup of each sweep, such as ``attnbo · my:train epochs=3``.

    Two sweeps have the same name if and only if they have the same setup. A name has the
    method and those differing settings that are needed to tell setups apart; a differing
    trainer or space always.
    """
    setups = [setup_of(study) for study in studies]
    chosen: list[Trait] = []
    for trait in varying(studies):
        n_before = len({_key(setup, chosen) for setup in setups})
        n_after = len({_key(setup, [*chosen, trait]) for setup in setups})
        if n_after > n_before or trait[0] in ("trainer", "space"):
            chosen.append(trait)
    return _unlike([_name(study, chosen) for study in studies], [_key(s, chosen) for s in setups])


def warning(studies: Sequence[Study]) -> str:
    """A caveat if values were obtained in different ways; else empty."""
    found = [VALUE_MAKERS[name] for name in varying_settings(studies) if name in VALUE_MAKERS]
    if not found:
        return ""
    words = " and ".join(filter(None, (", ".join(found[:-1]), found[-1])))
    return f"The sweeps differ in {words}: their values may not be comparable."


def setting_words(study: Study, name: str) -> str:
    """A sweep's setting for a table cell."""
    if name == "space":
        return f"{_space_name(study)} ({study.history.space.fingerprint()[:6]})"
    value = getattr(study.sweep, name)
    if isinstance(value, dict):
        return " ".join(f"{key}={_text(item)}" for key, item in sorted(value.items())) or "–"
    return "–" if value is None or value == [] else _text(value)


def _order(trait: Trait) -> tuple[int, str, str]:
    name, key = trait
    return (FIRST.index(name) if name in FIRST else len(FIRST), name, key)


def _key(setup: Setup, traits: Iterable[Trait]) -> str:
    """A key that two setups share if and only if they agree in these traits."""
    values = [[trait in setup, setup.get(trait)] for trait in traits]
    return json.dumps(values, sort_keys=True, default=str)


def _name(study: Study, chosen: Sequence[Trait]) -> str:
    setup = setup_of(study)
    present = [trait for trait in chosen if trait in setup]
    options = ",".join(_words(study, t) for t in present if t[0] == "method_options")
    trainer = " ".join(_words(study, t) for t in present if t[0].startswith("trainer"))
    told = ("method", "method_options", "trainer", "trainer_options")
    rest = [_words(study, trait) for trait in present if trait[0] not in told]
    method = study.sweep.method + (f"[{options}]" if options else "")
    return " · ".join(part for part in (method, trainer, *rest) if part)


def _words(study: Study, trait: Trait) -> str:
    name, key = trait
    if name == "space":
        return _space_name(study)
    value = setup_of(study)[trait]
    if name in ("trainer", "constraints"):
        return shorten_text(_text(value), MAX_WORDS)
    return shorten_text(f"{key or name}={_text(value)}", MAX_WORDS)


def _unlike(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Number equal names of different setups, as with spaces of one file name."""
    numbers: dict[str, dict[str, int]] = {}
    for name, key in zip(names, keys, strict=True):
        numbers.setdefault(name, {}).setdefault(key, len(numbers[name]) + 1)
    return [
        f"{name} ({numbers[name][key]})" if len(numbers[name]) > 1 else name
        for name, key in zip(names, keys, strict=True)
    ]


def _space_name(study: Study) -> str:
    return Path(study.sweep.space.replace("\\", "/")).stem


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return number_text(value, 5) if isinstance(value, float) else str(value)
