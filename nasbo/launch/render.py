"""Renderer of KubeRay manifests without a sweep, such as a permanent RayCluster.

python -m nasbo.launch.render raycluster -v image=REGISTRY/nasbo:TAG | kubectl apply -f -
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from nasbo.errors import NasboError
from nasbo.launch.kuberay import fill_manifest
from nasbo.launch.recipes import read_values


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m nasbo.launch.render", description=__doc__)
    parser.add_argument("template", choices=["raycluster"])
    parser.add_argument("-v", "--value", action="append", default=[], metavar="K=V")
    parser.add_argument("--values", type=Path, help="a copy of cluster/kuberay/values.yaml")
    chosen = parser.parse_args(words)
    try:
        values = read_values("kuberay", chosen.values, chosen.value)
        manifest = fill_manifest(f"{chosen.template}.yaml", values)
    except NasboError as error:
        print(f"nasbo: {error}", file=sys.stderr)
        return 2
    print(yaml.safe_dump(manifest, sort_keys=False), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
