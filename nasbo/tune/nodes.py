"""Nodes of a cluster, and a check that their versions match the driver's."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nasbo.errors import SweepError
from nasbo.resources import room as room

PACKAGES = ("ray", "torch", "nasbo")
ANSWER_S = 60.0


def versions() -> dict[str, str]:
    """Versions that must be equal on all nodes."""
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def differences(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """Version differences as text; empty if none. Only Python's major and minor version count."""
    return ", ".join(
        f"{name} {found.get(name, 'missing')} instead of {version}"
        for name, version in expected.items()
        if _release(name, found.get(name, "")) != _release(name, version)
    )


def _release(name: str, version: str) -> str:
    return ".".join(version.split(".")[:2]) if name == "python" else version


def alive_nodes() -> list[dict[str, Any]]:
    """The alive nodes, as described by Ray."""
    return [node for node in ray.nodes() if node["Alive"]]


class NodeCheck:
    """Compares each node's versions with the driver's, once per node.

    A Ray task on the node returns its versions. Nodes that join later are
    checked when they are seen.
    """

    def __init__(self) -> None:
        self._expected = versions()
        self._asked: dict[Any, str] = {}
        self._known = {ray.get_runtime_context().get_node_id()}

    def look(self, nodes: list[dict[str, Any]], timeout_s: float = 0.0) -> str:
        """Start checks of new nodes, and collect those that have finished.

        Args:
            nodes: the alive nodes.
            timeout_s: time to wait for answers.

        Returns:
            The first difference found, with the node's name; empty if there is none.
        """
        for node in nodes:
            if node["NodeID"] not in self._known:
                self._known.add(node["NodeID"])
                self._asked[_ask(node["NodeID"])] = _name(node)
        if not self._asked:
            return ""
        waiting = list(self._asked)
        answered, _ = ray.wait(waiting, num_returns=len(waiting), timeout=timeout_s)
        problems = [self._judge(answer) for answer in answered]
        return next((problem for problem in problems if problem), "")

    @property
    def silent(self) -> list[str]:
        """Names of nodes that have not answered."""
        return list(self._asked.values())

    def _judge(self, answer: Any) -> str:
        name = self._asked.pop(answer)
        try:
            wrong = differences(ray.get(answer), self._expected)
        except ray.exceptions.RayError as error:
            if _is_gone(error):
                return ""
            wrong = f"cannot run nasbo: {str(error).strip().splitlines()[-1]}"
        return f"node {name}: {wrong}; every node needs what the driver has" if wrong else ""


def check_nodes() -> None:
    """Compare all nodes before a sweep starts.

    Raises:
        SweepError: a node differs or does not answer; the message names it.
    """
    check = NodeCheck()
    if problem := check.look(alive_nodes(), ANSWER_S):
        raise SweepError(problem)
    if check.silent:
        raise SweepError(
            f"node {check.silent[0]}: did not answer within {ANSWER_S:.0f} s; it needs the "
            f"driver's versions: {', '.join(f'{n} {v}' for n, v in versions().items())}"
        )


def _ask(node_id: str) -> Any:
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    task = ray.remote(versions).options(
        num_cpus=0, scheduling_strategy=strategy, max_retries=0, name="nasbo versions"
    )
    return task.remote()


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"


def _is_gone(error: Exception) -> bool:
    """Whether the node left before it could answer, which is no error."""
    kinds = ("NodeDiedError", "TaskUnschedulableError", "WorkerCrashedError")
    return type(error).__name__ in kinds or ("node" in str(error) and "died" in str(error))
