"""Conditional writes to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.errors import JournalError
from nasbo.storage.conditional import ChangedError, FileObject, Version, check_conditions


@pytest.fixture
def target(tmp_path: Path) -> FileObject:
    return FileObject(tmp_path / "folder" / "object")


def test_a_file_is_created_once_and_replaced_if_unchanged(target: FileObject) -> None:
    assert target.read() is None
    first = target.write(b"1", None)
    with pytest.raises(ChangedError):
        target.write(b"2", None)
    second = target.write(b"3", first)
    with pytest.raises(ChangedError):
        target.write(b"4", first)
    assert target.read() == (b"3", second)


def test_a_file_that_is_gone_is_not_replaced(target: FileObject, tmp_path: Path) -> None:
    first = target.write(b"1", None)
    (tmp_path / "folder" / "object").unlink()
    with pytest.raises(ChangedError):
        target.write(b"2", first)


class Deaf(FileObject):
    """A store that ignores one of the two conditions."""

    def __init__(self, path: Path, ignores_create: bool) -> None:
        super().__init__(path)
        self._ignores_create = ignores_create

    def write(self, data: bytes, expected: Version | None) -> Version:
        if (expected is None) == self._ignores_create:
            found = self.read()
            expected = found.version if found else None
        return super().write(data, expected)


@pytest.mark.parametrize("ignores_create", [True, False])
def test_a_store_that_ignores_conditions_is_found_out(tmp_path: Path, ignores_create: bool) -> None:
    target = FileObject(tmp_path / "object")
    target.write(b"1", None)
    check_conditions(target, b"1", "s3://bucket")
    header = "If-None-Match" if ignores_create else "If-Match"
    with pytest.raises(JournalError, match=f"s3://bucket: .* but it ignores {header};"):
        check_conditions(Deaf(tmp_path / "object", ignores_create), b"1", "s3://bucket")
