"""Conversion between plain values and YAML text, with the numbers of YAML 1.2 (``1e-3``)."""

from __future__ import annotations

import re
from typing import Any

import yaml

UNREADABLE = (OSError, ValueError, LookupError, ArithmeticError, RecursionError, yaml.YAMLError)
"""Exceptions that reading an arbitrary file as YAML can raise."""
_CORE = "tag:yaml.org,2002:"
_FLOAT = re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")
_FIRST = list("-+.0123456789")


class PlainLoader(yaml.SafeLoader):
    """YAML 1.1 with ``1e-3`` as a number and ``2001-01-01`` as text, as in YAML 1.2."""


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _CORE + "timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
PlainLoader.add_implicit_resolver(_CORE + "float", _FLOAT, _FIRST)


class _PlainDumper(yaml.SafeDumper):
    """Dumper that quotes text that ``PlainLoader`` would read as a number."""


_PlainDumper.add_implicit_resolver(_CORE + "float", _FLOAT, _FIRST)


def read_yaml(text: str) -> Any:
    """Parse YAML text; raises one of ``UNREADABLE``."""
    return yaml.load(text, Loader=PlainLoader)


def write_yaml(value: Any, is_compact: bool = False) -> str:
    """A text that ``read_yaml`` turns into the same value.

    Args:
        value: plain.
        is_compact: lists of single values on one line.
    """
    style = None if is_compact else False
    return yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, default_flow_style=style)
