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

import ray
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import AuthenticationError

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
    place = _resolve(address)
    _await(place, address)
    own = os.environ.get(MODE_VARIABLE)
    with _mode(own or _asked_mode(place)) as mode:
        if mode == "token" and not has_token():
            raise ClusterError(_refusal(address, own))
        if mode in ("token", "disabled") and _is_refused(place):
            raise ClusterError(_refusal(address, own))
        yield


def _resolve(address: str) -> str:
    """The host and port that Ray takes an address for."""
    try:
        return str(canonicalize_bootstrap_address(address))
    except (ConnectionError, ValueError) as error:
        raise ClusterError(f"no Ray at {address}: {error}") from error


def _await(place: str, address: str) -> None:
    host, _, port = place.rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
        except (OSError, OverflowError) as error:  # a port may be no port
            if time.monotonic() + PAUSE_S > deadline:
                raise ClusterError(f"no Ray at {address}: nobody answers: {error}") from error
            time.sleep(PAUSE_S)
        else:
            return


def _asked_mode(place: str) -> str:
    with _mode("disabled"):
        return "token" if _is_refused(place) else "disabled"


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


def _is_refused(place: str) -> bool:
    """Whether the cluster wants a token, or another one; other faults are said by Ray itself."""
    raylet: Any = ray._raylet  # the client that ray.init uses; it has no public name
    try:
        raylet.GcsClient(address=place)
    except AuthenticationError:
        return True
    except (OSError, RuntimeError, ValueError):
        return False
    return False


def _refusal(address: str, own_mode: str | None) -> str:
    """What a user can do about it."""
    name = "RAY_AUTH_TOKEN" if os.environ.get("RAY_AUTH_TOKEN") else str(token_file())
    if own_mode is not None and own_mode.lower() != "token":
        todo = f"{MODE_VARIABLE} is {own_mode!r} here: unset it"
    elif has_token():
        todo = f"the one in {name} is not accepted: put the cluster's own there"
    else:
        todo = f"there is none in {name}: put the cluster's there, or set RAY_AUTH_TOKEN"
    return f"the Ray at {address} asks for a token; {todo}"
