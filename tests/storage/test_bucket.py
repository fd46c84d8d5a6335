"""Conditional writes to a bucket: S3 and GCS, faulty servers, and sources of credentials."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from nasbo.errors import JournalError, SweepError
from nasbo.storage.conditional import ChangedError
from nasbo.storage.lease import Lease
from nasbo.storage.location import Location
from tests.storage.object_server import ObjectServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ObjectServer]:
    found = ObjectServer("heeds")
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{found.address}",
        "AWS_ACCESS_KEY_ID": "from-environment",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    yield found
    found.shutdown()
    found.server_close()


def url_of(scheme: str, server: ObjectServer) -> str:
    if scheme == "s3":
        return "s3://bucket/runs/first"
    return f"gs://anonymous@bucket/runs/first?scheme=http&endpoint_override={server.address}"


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_object_is_created_once_and_replaced_if_unchanged(
    server: ObjectServer, scheme: str
) -> None:
    target = Location(url_of(scheme, server)).versioned("lease.json")
    assert target.read() is None
    first = target.write(b"1", None)
    with pytest.raises(ChangedError):
        target.write(b"2", None)
    second = target.write(b"3", first)
    with pytest.raises(ChangedError):
        target.write(b"4", first)
    found = target.read()
    assert found is not None
    assert found.data == b"3"
    assert target.write(b"5", found.version) != second
    assert [unquote(name) for name in server.objects] == ["/bucket/runs/first/lease.json"]


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("ignores", "it ignores If-None-Match"),
        ("rejects", "it answers: .*NotImplemented"),
        ("refuses", "it refused to write lease.json, which had not changed"),
    ],
)
def test_a_store_without_conditional_writes_is_named(
    server: ObjectServer, manner: str, reason: str
) -> None:
    server.manner = manner
    begin = time.monotonic()
    with pytest.raises(JournalError, match=f"(?s)must support conditional writes .* but {reason}"):
        Lease(Location("s3://bucket/runs/first"))
    assert time.monotonic() - begin < 15


def test_a_server_that_is_gone_is_an_error_that_can_be_read(server: ObjectServer) -> None:
    target = Location("s3://bucket/runs/first").versioned("lease.json")
    server.shutdown()
    server.server_close()
    with pytest.raises(OSError, match=r"lease\.json") as caught:
        target.read()
    assert "Debug source" not in str(caught.value)


def test_keys_come_from_the_url_the_environment_or_the_profile(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = "[{}]\naws_access_key_id = {}\naws_secret_access_key = x%y\n"
    names = ("default", "from-file"), ("other", "from-profile")
    (tmp_path / "credentials").write_text("".join(keys.format(*name) for name in names))
    url = "s3://from-url:secret@bucket/a?region=us-east-1&scheme=http&endpoint_override="
    Location(url + server.address).versioned("1").write(b"", None)
    Location("s3://bucket/a").versioned("2").write(b"", None)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    Location("s3://bucket/a").versioned("3").write(b"", None)
    monkeypatch.setenv("AWS_PROFILE", "other")
    Location("s3://bucket/a").versioned("4").write(b"", None)
    assert server.signers == ["from-url", "from-environment", "from-file", "from-profile"]


def test_a_profile_without_keys_says_how_to_get_them(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    (tmp_path / "config").write_text("[default]\nsso_session = work\n")
    with pytest.raises(SweepError, match=r"'sso_session' instead of keys.*export-credentials"):
        Location("s3://bucket/a").versioned("lease.json")
    (tmp_path / "config").write_text("no section\n")
    with pytest.raises(SweepError, match="s3://bucket/a: cannot be used"):
        Location("s3://bucket/a").versioned("lease.json")
