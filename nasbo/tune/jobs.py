"""Client for the Jobs API of a Ray cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ray.exceptions import RayError
from ray.job_submission import JobDetails, JobSubmissionClient

from nasbo.errors import ClusterError, SweepError
from nasbo.tune.token import token_file, use_token


def open_jobs(address: str) -> Jobs:
    """The jobs of a cluster.

    Args:
        address: of the dashboard (``http://127.0.0.1:8265``), or of the cluster (``HOST:6379``,
            ``auto``) from one of its hosts.

    Raises:
        ClusterError: the cluster does not answer, or does not accept the token.
    """
    use_token()
    try:
        return Jobs(JobSubmissionClient(address))
    except (ConnectionError, RayError, RuntimeError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        port = urlsplit(address).port or 8265 if "//" in address else 8265
        raise ClusterError(
            f"no Ray jobs at {address}: {first.rstrip('.')}. The dashboard listens on its head's "
            f"loopback: ssh -N -L {port}:127.0.0.1:{port} HEAD, then --on http://127.0.0.1:{port}; "
            f"the token of the cluster must be in {token_file()}"
        ) from error


class Jobs:
    """The Jobs API of one cluster."""

    def __init__(self, client: JobSubmissionClient) -> None:
        self._client = client
        self.url = str(client.get_address())

    def submit(self, job: Mapping[str, Any]) -> None:
        """Submit a job; the working directory is packed and uploaded."""
        try:
            self._client.submit_job(**job)
        except (RayError, RuntimeError, ValueError) as error:
            words = str(error).rstrip(".")
            if "No available agent" in words:
                words += " (if this persists, another Ray on the head uses the port of its agent)"
            raise SweepError(f"the job was refused: {words}") from error

    def status(self, job_id: str) -> str:
        """Ray's status of a job; ``GONE`` if the cluster does not know it (any more)."""
        try:
            return str(self._client.get_job_status(job_id).value)
        except RuntimeError as error:
            if "404" in str(error) or "does not exist" in str(error):
                return "GONE"
            raise SweepError(f"{self.url}: {error}") from error

    def stop(self, job_id: str) -> None:
        """Ask a job to stop: Ray sends SIGTERM to its driver."""
        try:
            self._client.stop_job(job_id)
        except RuntimeError as error:
            raise SweepError(f"{job_id} cannot be stopped: {error}") from error

    def logs(self, job_id: str, follow: bool, write: Callable[[str], object]) -> None:
        """Pass what a job printed to ``write``; with ``follow`` until the job has ended."""
        try:
            if follow:
                asyncio.run(self._tail(job_id, write))
            else:
                write(self._client.get_job_logs(job_id))
        except RuntimeError as error:
            raise SweepError(f"{job_id} has no words: {error}") from error

    async def _tail(self, job_id: str, write: Callable[[str], object]) -> None:
        async for lines in self._client.tail_job_logs(job_id):
            write(lines)

    def find(self, metadata: Mapping[str, str]) -> str | None:
        """The id of the newest unfinished job with all of ``metadata``."""
        jobs: list[JobDetails] = self._client.list_jobs()
        fitting = [
            job
            for job in jobs
            if not job.status.is_terminal()
            and metadata.items() <= (job.metadata or {}).items()
            and job.submission_id
        ]
        newest = max(fitting, key=lambda job: job.start_time or 0, default=None)
        return str(newest.submission_id) if newest else None
