"""What keeps strangers out of Ray: the token's file, and the loopback for a Ray of one's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray
from ray._private import ray_constants

MODE_VARIABLE = "RAY_AUTH_MODE"
LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def token_file() -> Path:
    """Where Ray looks for the token of this user."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def protect_token() -> None:
    """Ray writes its token readable for everybody."""
    token = token_file()
    if token.is_file() and token.stat().st_uid == os.getuid():
        token.chmod(0o600)


def require_token() -> None:
    """Have a Ray that is started now ask for the token, and make one where there is none.

    A user's own ``RAY_AUTH_MODE`` is left as it is. Not every Ray asks for one by default.
    """
    if os.environ.setdefault(MODE_VARIABLE, "token").lower() != "token":
        return
    if "RAY_AUTH_TOKEN" not in os.environ:
        _make_token(token_file())
    read_variables()


def has_token() -> bool:
    """Whether this user has a token at hand."""
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or token_file().is_file()


def use_token() -> None:
    """Speak with the token of this user, if there is one: Ray's clients do not by themselves."""
    if has_token():
        os.environ.setdefault(MODE_VARIABLE, "token")
        protect_token()
        read_variables()


def read_variables() -> None:
    """Have Ray read again what it read when it was imported."""
    config: Any = getattr(ray._raylet, "Config", None)  # what Ray's own start does
    if config is not None:
        config.initialize("")


def _make_token(file: Path) -> None:
    """Write a token that nobody else can read, unless there is one; whole, or not at all."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(secrets.token_hex(32))
    with suppress(FileExistsError):  # another process was first
        os.link(fresh, file)
    fresh.unlink()


@contextmanager
def on_loopback() -> Iterator[None]:
    """All servers of a Ray that is started in the block listen on 127.0.0.1 only.

    Ray does so on Macs, where clusters are not supported; here it must be told that this is none.
    A user's own setting of that variable is left as it is.
    """
    if LOOPBACK_VARIABLE in os.environ:
        yield
        return
    was_enabled = getattr(ray_constants, "ENABLE_RAY_CLUSTER", True)
    os.environ[LOOPBACK_VARIABLE] = "0"  # for the processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = False  # for this one, which has read the variable
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = was_enabled
        del os.environ[LOOPBACK_VARIABLE]
