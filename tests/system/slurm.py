"""Slurm of one node for the tests: munge, controller and node, started and stopped here."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.chaos.nodes import family
from tests.launch.hosts import free_port

NEEDED = {
    "munged": "munge",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "sbatch": "slurm-wlm",
    "unshare": "util-linux",
}
CONFIG = """\
ClusterName=nasbo
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=1,sched_interval=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
JobRequeue=1
ReturnToService=2
KillWait=20
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=90
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
"""


class Slurm:
    """One node with four processors, in process and file spaces of its own.

    Ray's own programs, such as ``ray stop``, see nothing there of what else runs on this machine.
    """

    def __init__(self) -> None:
        for program, package in NEEDED.items():
            assert _which(program), f"{program} is missing: apt-get install {package}"
        assert os.geteuid() == 0, "Slurm's own processes need root: run make test-system as root"
        self.folder = Path(tempfile.mkdtemp(prefix="nasbo-slurm-"))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.config = self.folder / "slurm.conf"
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.config.write_text(
            CONFIG.format(
                host=socket.gethostname(),
                folder=self.folder,
                controller_port=free_port(),
                node_port=free_port(),
            )
        )
        try:
            self._start_all()
        except BaseException:
            self.shutdown()
            raise

    def _start_all(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        folder = str(self.folder)
        own = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
        self._start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *own)
        self._wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._start("slurmctld", "-D", "-f", str(self.config))
        # /tmp/ray is where Ray notes the address of the cluster on a machine: not on this one.
        # The shell stays as the first process there, since zombies must be reaped.
        script = "mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray && slurmd -D -f $0; exit"
        space = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        self._start(*space, "sh", "-c", script, str(self.config))
        self._wait_for(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T"), "the node")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.config)}

    def _start(self, *words: str) -> None:
        log = (self.folder / "daemons.log").open("ab")
        environment = {**self.environment, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        self.processes.append(
            subprocess.Popen(words, stdout=log, stderr=log, env=environment, start_new_session=True)
        )

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip()

    def _wait_for(self, condition: object, what: str) -> None:
        assert callable(condition)
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come:\n{self.words()}"
            time.sleep(0.2)

    def words(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def shutdown(self) -> None:
        for process in reversed(self.processes):
            for pid in reversed(family(process.pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
