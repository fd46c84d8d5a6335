"""Reachability and authentication mode of a running Ray cluster.

A driver must use the mode of its cluster. A cluster with a token refuses clients without one. On a
cluster without one, a driver in token mode refuses the workers that call it back.
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
"""Time that a starting cluster may take to answer, in seconds; Ray itself waits for minutes."""
PAUSE_S = 1.0


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Use the token inside the block if the cluster requires one, else none.

    A ``RAY_AUTH_MODE`` set by the user is kept.

    Args:
        address: ``HOST:PORT``, ``auto`` or ``ray://HOST:PORT``; nothing is done for ``local``.

    Raises:
        ClusterError: the cluster does not answer, or refuses the user's token.
    """
    if address == "local" or "://" in address:
        if address != "local":
            use_token()  # the client's server does not call back
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
    """The host and port that Ray resolves an address to."""
    try:
        head = canonicalize_bootstrap_address(address)
    except (ConnectionError, ValueError) as error:
        raise ClusterError(f"no Ray at {address}: {error}") from error
    if head is None:
        raise ClusterError(f"no Ray at {address}: RAY_ADDRESS is local")
    return str(head)


def _await(head: str, address: str) -> None:
    host, _, port = head.rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
        except (OSError, OverflowError, ValueError) as error:  # the port may be invalid
            if time.monotonic() + PAUSE_S > deadline:
                raise ClusterError(f"no Ray at {address}: no answer: {error}") from error
            time.sleep(PAUSE_S)
        else:
            return


def _asked_mode(head: str) -> str:
    with _mode("disabled"):
        return "token" if _is_refused(head) else "disabled"


@contextmanager
def _mode(mode: str) -> Iterator[str]:
    """Set the mode in the environment, from which Ray reads it, and restore it afterwards."""
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
    """Whether the cluster requires a token or a different one; Ray itself reports other errors."""
    grpc: Any = grpc_utils.grpc
    channel: Any = grpc_utils.init_grpc_channel(head)  # with the token in token mode
    try:
        nodes = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        nodes.GetClusterId(gcs_service_pb2.GetClusterIdRequest(), timeout=PATIENCE_S)
    except grpc.RpcError as error:
        return bool(error.code() == grpc.StatusCode.UNAUTHENTICATED)
    finally:
        channel.close()
    return False


def _problem(head: str, mode: str, asked: str) -> str:
    """Why the cluster and this mode do not match, and what to do; "" if they do."""
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
