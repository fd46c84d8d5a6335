"""Clusters that cannot be reached: one line that says what to check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import AuthenticationError

from nasbo.errors import ClusterError, SweepError
from nasbo.tune import jobs
from nasbo.tune import token as token_module
from nasbo.tune.token import MODE_VARIABLE

pytestmark = [pytest.mark.ray]
ADDRESS = "http://127.0.0.1:28265"


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "token"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    monkeypatch.setenv(MODE_VARIABLE, "disabled")
    monkeypatch.delenv(MODE_VARIABLE)
    return file


def test_a_refused_token_is_said_with_the_tunnel_of_that_port(
    token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: str) -> Any:
        raise AuthenticationError("Missing authentication token.\nMore words")

    monkeypatch.setattr(jobs, "JobSubmissionClient", refuse)
    with pytest.raises(ClusterError, match=r"no Ray jobs at .*:28265: ") as found:
        jobs.open_jobs(ADDRESS)
    assert "ssh -N -L 28265:127.0.0.1:28265 HEAD" in str(found.value)
    assert str(token) in str(found.value)
    assert found.value.exit_code == 3


def test_ray_is_told_of_the_token_after_its_import(
    token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray reads its variables when it is imported, which was earlier."""
    read: list[str | None] = []
    monkeypatch.setattr(
        token_module, "read_variables", lambda: read.append(os.environ.get(MODE_VARIABLE))
    )
    token_module.use_token()
    assert read == []
    token.write_text("abc")
    token_module.use_token()
    assert read == ["token"]


def test_a_head_without_agent_names_the_likely_cause() -> None:
    class Client:
        def get_address(self) -> str:
            return ADDRESS

        def submit_job(self, **job: Any) -> None:
            raise RuntimeError("status code 500: No available agent to submit job, try later.")

    client: Any = Client()
    with pytest.raises(SweepError, match=r"refused: .* try later \(if this persists, another Ray"):
        jobs.Jobs(client).submit({})
