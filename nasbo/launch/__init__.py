"""Launching of sweeps: on this machine, on a Ray cluster, with Slurm or on Kubernetes.

Every launcher runs the same command, ``nasbo run ... --dir DIR --or-resume``, so that a restart
resumes the sweep, whether by a person, a requeue of Slurm or a retry of Kubernetes. Public are
these modules: ``order`` (what is launched) and ``verbs`` (launch, stop, logs).
"""

__all__ = ["order", "verbs"]
