"""S3 server on this machine's loopback, in its own environment."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from pathlib import Path

from tests.launch.hosts import ROOT, free_port

MOTO = Path(os.environ.get("NASBO_MOTO") or ROOT / ".venv-s3" / "bin" / "moto_server")
PROGRAM = Path(__file__).with_name("moto_server.py")


class BucketServer:
    """moto with one bucket, in memory."""

    def __init__(self, folder: Path, bucket: str = "nasbo") -> None:
        assert MOTO.exists(), f"{MOTO} is missing: make s3-server"
        self.port, self.bucket = free_port(), bucket
        log = (folder / "moto.log").open("ab")
        command = [str(MOTO.with_name("python")), str(PROGRAM), str(self.port)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not self._make_bucket():
            assert self.process.poll() is None, (folder / "moto.log").read_text()
            assert time.monotonic() < deadline, (folder / "moto.log").read_text()
            time.sleep(0.3)

    def _make_bucket(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/{self.bucket}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=5):
                return True
        except OSError:
            return False

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, name: str) -> str:
        return f"s3://{self.bucket}/{name}"

    def shutdown(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)
