"""Validation of a Kubernetes manifest against its custom resource definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from nasbo.errors import SweepError

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_OUTSIDE = ("apiVersion", "kind", "metadata")
"""Fields that Kubernetes itself defines."""


def check_manifest(manifest: Mapping[str, Any], crd_file: Path) -> None:
    """Validate each field of a manifest against the definition of its kind.

    Args:
        manifest: of a custom resource.
        crd_file: YAML with the ``CustomResourceDefinition`` of its kind, maybe among others.

    Raises:
        SweepError: lists all fields that are unknown, missing or of the wrong type.
    """
    schema = find_schema(manifest, crd_file)
    wrong = [
        problem
        for key, item in manifest.items()
        if key not in _OUTSIDE
        for problem in _compare(item, schema.get("properties", {}).get(key), key)
    ]
    if wrong:
        kind = manifest.get("kind")
        raise SweepError(f"{kind} does not fit {crd_file}: " + "; ".join(wrong))


def find_schema(manifest: Mapping[str, Any], crd_file: Path) -> Mapping[str, Any]:
    """The schema of a manifest's kind and version, from a file of definitions."""
    group, _, version = str(manifest.get("apiVersion", "")).partition("/")
    try:
        documents = list(yaml.safe_load_all(crd_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SweepError(f"{crd_file}: cannot be read: {error}") from error
    known = []
    for document in documents:
        spec = document.get("spec", {}) if isinstance(document, dict) else {}
        for entry in spec.get("versions", []):
            found = (spec.get("group"), entry.get("name"), spec.get("names", {}).get("kind"))
            known.append(f"{found[0]}/{found[1]} {found[2]}")
            if found == (group, version, manifest.get("kind")):
                schema: Mapping[str, Any] = entry["schema"]["openAPIV3Schema"]
                return schema
    wanted = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
    raise SweepError(f"{crd_file}: does not define {wanted}; it has: {', '.join(known) or 'none'}")


def _compare(value: Any, schema: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    if schema is None:
        yield f"{path}: unknown field"
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: must be a number or text, got {value!r}"
        return
    kind = schema.get("type")
    if kind is not None and not _is_a(value, kind):
        yield f"{path}: must be {kind}, got {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: must be one of {', '.join(map(str, schema['enum']))}, got {value!r}"
    if isinstance(value, dict):
        yield from _compare_object(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _compare(item, schema.get("items", {}), f"{path}[{index}]")


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _compare_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name}: is required"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or not (properties or others)
    for name, item in value.items():
        if name in properties:
            yield from _compare(item, properties[name], f"{path}.{name}")
        elif isinstance(others, dict):
            yield from _compare(item, others, f"{path}.{name}")
        elif not is_open and not others:
            yield f"{path}.{name}: unknown field"
