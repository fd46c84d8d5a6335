"""Object of an S3 or GCS bucket with conditional writes, through obstore.

pyarrow, which is used for everything else, has no conditional writes. Bucket, endpoint and
credentials are found as by pyarrow.
"""

from __future__ import annotations

import os
from configparser import ConfigParser
from configparser import Error as ConfigError
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from nasbo.errors import SweepError
from nasbo.storage.conditional import ChangedError, Found, Version, lacks_conditions

if TYPE_CHECKING:
    from obstore.store import GCSStore, S3Credential, S3Store

# A later answer would be useless for a lease.
_CLIENT: Any = {"allow_http": True, "timeout": timedelta(seconds=10)}
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
_CREDENTIALS_LIFE = timedelta(minutes=5)
_INDIRECT = ("sso_session", "sso_start_url", "credential_process", "role_arn")


class BucketObject:
    """An object of a bucket with conditional writes.

    Args:
        url: of the sweep's folder, with pyarrow's options if it has any.
        path: bucket and name of the object.
        region: of the bucket, if it has one.
    """

    def __init__(self, url: str, path: str, region: str | None) -> None:
        self._url = url
        bucket, _, self._name = path.partition("/")
        self._store = _connect(url, bucket, region)

    def read(self) -> Found | None:
        """See ``VersionedObject``."""
        from obstore.exceptions import BaseError

        try:
            result = self._store.get(self._name)
            return Found(bytes(result.bytes()), _version(result.meta))
        except FileNotFoundError:
            return None
        except BaseError as error:
            raise OSError(_text(error)) from error

    def write(self, data: bytes, expected: Version | None) -> Version:
        """See ``VersionedObject``."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        mode: Any = "create" if expected is None else expected
        try:
            return _version(self._store.put(self._name, data, mode=mode, use_multipart=False))
        except (AlreadyExistsError, PreconditionError) as error:
            raise ChangedError(self._name) from error
        except BaseError as error:
            text = _text(error)
            if "NotImplemented" in text or "501 Not Implemented" in text:
                raise lacks_conditions(self._url, f"it answers: {text}") from error
            raise OSError(text) from error


def _version(answer: Any) -> Version:
    return {key: answer[key] for key in ("e_tag", "version") if answer[key] is not None}


def _text(error: Exception) -> str:
    """The readable part of an error."""
    return str(error).partition("\n\nDebug source")[0].strip()


def _connect(url: str, bucket: str, region: str | None) -> S3Store | GCSStore:
    from obstore.exceptions import BaseError

    try:
        return _gcs(url, bucket) if url.startswith("gs:") else _s3(url, bucket, region)
    except (BaseError, ConfigError, ValueError) as error:
        raise SweepError(f"{url}: cannot be used: {_text(error)}") from error


def _s3(url: str, bucket: str, region: str | None) -> S3Store:
    from obstore.store import S3Store

    settings: dict[str, Any] = {"region": region} if region else {}
    parts = urlsplit(url)
    endpoint = _endpoint(parts.query)
    if endpoint:
        settings["endpoint"] = endpoint
    if parts.username and parts.password:
        settings["access_key_id"] = unquote(parts.username)
        settings["secret_access_key"] = unquote(parts.password)
    elif "AWS_ACCESS_KEY_ID" not in os.environ and _has_keys(url, _profile()):
        settings["credential_provider"] = _profile_credential
    return S3Store(bucket, client_options=_CLIENT, retry_config=_RETRY, **settings)


def _gcs(url: str, bucket: str) -> GCSStore:
    from obstore.store import GCSStore

    settings: dict[str, Any] = {}
    parts = urlsplit(url)
    endpoint = _endpoint(parts.query)
    if endpoint:
        settings["base_url"] = endpoint
    if parts.username == "anonymous":
        settings["bearer_token"] = "anonymous"  # unsigned writes would ask the node for a token
    return GCSStore(bucket, client_options=_CLIENT, retry_config=_RETRY, **settings)


def _endpoint(query: str) -> str | None:
    """The server in a URL's options, as pyarrow reads them."""
    options = dict(parse_qsl(query))
    server = options.get("endpoint_override")
    if not server or "://" in server:
        return server
    return f"{options.get('scheme', 'https')}://{server}"


def _profile() -> dict[str, str]:
    """The user's AWS profile from ``~/.aws/config`` and ``~/.aws/credentials``."""
    name = os.environ.get("AWS_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        parser = ConfigParser(interpolation=None, strict=False)
        parser.read(Path(os.environ.get(variable) or file).expanduser(), encoding="utf-8")
        if parser.has_section(section):
            found.update(parser[section])
    return found


def _has_keys(url: str, profile: dict[str, str]) -> bool:
    """Whether a profile contains keys; otherwise obstore asks the node or the pod for a role.

    Raises:
        SweepError: the profile gets its keys in a way that obstore does not support.
    """
    if profile.get("aws_access_key_id"):
        return True
    indirect = [key for key in _INDIRECT if profile.get(key)]
    if indirect and "AWS_WEB_IDENTITY_TOKEN_FILE" not in os.environ:
        raise SweepError(
            f"{url}: the AWS profile has '{indirect[0]}' instead of keys; put keys into the "
            'environment first: eval "$(aws configure export-credentials --format env)"'
        )
    return False


def _profile_credential() -> S3Credential:
    """Keys of the profile, read again every few minutes, as tools renew them there."""
    profile = _profile()
    return {
        "access_key_id": profile["aws_access_key_id"],
        "secret_access_key": profile["aws_secret_access_key"],
        "token": profile.get("aws_session_token"),
        "expires_at": datetime.now(UTC) + _CREDENTIALS_LIFE,
    }
