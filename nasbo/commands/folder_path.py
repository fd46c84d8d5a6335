"""Parameter type of a sweep's folder: a path, or a URL that is replaced by its local mirror."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class FolderPath(click.ParamType):  # type: ignore[type-arg]
    """A path as it is; the local mirror of a URL such as ``s3://bucket/runs/first``."""

    name = "DIR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if "://" not in str(value):
            try:
                Path(value).exists()
            except OSError as error:
                self.fail(f"{value}: cannot be used: {error.strerror}", param, ctx)
            return Path(value)
        from nasbo.storage.mirror import open_mirror

        return open_mirror(str(value))
