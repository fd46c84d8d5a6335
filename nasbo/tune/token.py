"""Access control of Ray: its token file, and loopback binding of a local Ray."""

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
    """Where Ray looks for this user's token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def protect_token() -> None:
    """Restrict the token file to its owner: Ray writes it world-readable."""
    token = token_file()
    if token.is_file() and token.stat().st_uid == os.getuid():
        token.chmod(0o600)


def require_token() -> None:
    """Make a Ray that is started now require the token, and create one if there is none.

    A ``RAY_AUTH_MODE`` set by the user is kept. Not every Ray version requires a token by default.
    """
    if os.environ.setdefault(MODE_VARIABLE, "token").lower() != "token":
        return
    if "RAY_AUTH_TOKEN" not in os.environ:
        _make_token(token_file())
    read_variables()


def has_token() -> bool:
    """Whether this user has a token."""
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or token_file().is_file()


def use_token() -> None:
    """Authenticate with this user's token, if any; Ray's clients do not do so by default."""
    if has_token():
        os.environ.setdefault(MODE_VARIABLE, "token")
        protect_token()
        read_variables()


def read_variables() -> None:
    """Make Ray reread the variables that it read on import."""
    config: Any = getattr(ray._raylet, "Config", None)  # what Ray's own start does
    if config is not None:
        config.initialize("")


def _make_token(file: Path) -> None:
    """Atomically write a token that only its owner can read, unless there is one."""
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
    """Bind all servers of a Ray that is started in the block to 127.0.0.1.

    Ray does so on Macs, where clusters are not supported. Here the same switch is set explicitly. A
    user's own setting of that variable is kept.
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
