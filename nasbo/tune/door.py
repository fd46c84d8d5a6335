"""The door of a running cluster: whether anybody answers, and whether a token is asked for.

A driver must speak as its cluster does. A cluster with a token refuses those without one. On a
cluster without one, a driver that asks for a token refuses the workers that call it back.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray._private import grpc_utils
from ray._private.services import canonicalize_bootstrap_address
from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

from nasbo.errors import ClusterError
from nasbo.tune.token import MODE_VARIABLE, has_token, read_variables, token_file, use_token

PATIENCE_S = 30.0
"""How long a cluster that comes up just now may take to answer; Ray alone waits for minutes."""
PAUSE_S = 1.0


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Speak to a cluster with a token if it asks for one, else without, as long as the block lasts.

    A user's own ``RAY_AUTH_MODE`` is left as it is.

    Args:
        address: ``HOST:PORT``, ``auto`` or ``ray://HOST:PORT``; for ``local`` nothing is done.

    Raises:
        ClusterError: nobody answers, or the cluster refuses the token of this user.
    """
    if address == "local" or "://" in address:
        if address != "local":
            use_token()  # the client's server calls nobody back
        yield
        return
    head = _resolve(address)
    _await(head, address)
    own, asked = os.environ.get(MODE_VARIABLE), _asked_mode(head)
    with _mode(own or asked) as mode:
        if problem := _problem(head, mode, asked):
            raise ClusterError(f"the Ray at {address} {problem}")
        yield


def _resolve(address: str) -> str:
    """The host and port that Ray takes an address for."""
    try:
        head = canonicalize_bootstrap_address(address)
    except (ConnectionError, ValueError) as error:
        raise ClusterError(f"no Ray at {address}: {error}") from error
    if head is None:
        raise ClusterError(f"no Ray at {address}: RAY_ADDRESS says local")
    return str(head)


def _await(head: str, address: str) -> None:
    host, _, port = head.rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
        except (OSError, OverflowError, ValueError) as error:  # a port may be no port
            if time.monotonic() + PAUSE_S > deadline:
                raise ClusterError(f"no Ray at {address}: nobody answers: {error}") from error
            time.sleep(PAUSE_S)
        else:
            return


def _asked_mode(head: str) -> str:
    with _mode("disabled"):
        return "token" if _is_refused(head) else "disabled"


@contextmanager
def _mode(mode: str) -> Iterator[str]:
    """Ray reads the mode from the environment; what was there before comes back."""
    before = os.environ.get(MODE_VARIABLE)
    os.environ[MODE_VARIABLE] = mode
    read_variables()
    try:
        yield mode.lower()
    finally:
        if before is None:
            del os.environ[MODE_VARIABLE]
        else:
            os.environ[MODE_VARIABLE] = before
        read_variables()


def _is_refused(head: str) -> bool:
    """Whether the cluster wants a token, or another one; other faults are said by Ray itself."""
    grpc: Any = grpc_utils.grpc
    channel: Any = grpc_utils.init_grpc_channel(head)  # with the token if that is the mode
    try:
        nodes = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        nodes.GetClusterId(gcs_service_pb2.GetClusterIdRequest(), timeout=PATIENCE_S)
    except grpc.RpcError as error:
        return bool(error.code() == grpc.StatusCode.UNAUTHENTICATED)
    finally:
        channel.close()
    return False


def _problem(head: str, mode: str, asked: str) -> str:
    """Why the cluster and a driver in this mode do not go together, and what to do; "" if not."""
    if {mode, asked} == {"token", "disabled"}:
        wants = "asks for a token" if asked == "token" else "knows no token"
        return f"{wants}, but {MODE_VARIABLE} is {mode!r} here: unset it"
    if mode != "token":
        return ""
    name = "RAY_AUTH_TOKEN" if os.environ.get("RAY_AUTH_TOKEN") else str(token_file())
    if not has_token():
        where = f"{name}: put the cluster's there, or set RAY_AUTH_TOKEN"
        return f"asks for a token; there is none in {where}"
    if _is_refused(head):
        return f"asks for a token; the one in {name} is not accepted: put the cluster's own there"
    return ""
