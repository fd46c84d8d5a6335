"""One sweep file, any place to run it: this machine, a Ray cluster, Slurm, Kubernetes.

Every launcher runs the same command, ``nasbo run ... --dir DIR --or-resume``, so that starting
again is resuming, whoever does it: a person, Slurm's requeue or a retry of Kubernetes.
"""
