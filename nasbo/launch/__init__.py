"""One sweep file, and where it can run: this machine, a Ray cluster, Slurm, Kubernetes.

Every launcher runs the same command, ``nasbo run ... --dir DIR --or-resume``, so that starting
again is resuming, whoever does it: a person, Slurm's requeue or a retry of Kubernetes.

Public are these modules: ``order`` (what is asked for) and ``verbs`` (launch, stop, logs).
"""

__all__ = ["order", "verbs"]
