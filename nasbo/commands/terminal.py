"""Terminal output of commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """As wide as the terminal; 160 columns if the output is a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, markup=False)
