"""Execution of system programs such as sbatch and kubectl."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from nasbo.errors import SweepError


def run(words: Sequence[str], given: str | None = None, timeout_s: float = 120.0) -> str:
    """Run a program and return its output.

    Raises:
        SweepError: it is missing, fails or times out; with its error output.
    """
    if shutil.which(words[0]) is None:
        raise SweepError(f"the program {words[0]} is needed here and was not found")
    try:
        done = subprocess.run(
            list(words), input=given, capture_output=True, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise SweepError(f"{words[0]} did not answer within {timeout_s:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise SweepError(f"{' '.join(words[:2])}: {said}")
    return done.stdout.strip()
