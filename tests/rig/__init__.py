"""A real Slurm cluster on this one machine: slurmctld, slurmd, munge and sshd, each machine its own namespaces."""

from tests.rig.require import missing
from tests.rig.rig import Rig, RigError
from tests.rig.spec import Spec

__all__ = ["Rig", "RigError", "Spec", "missing"]
