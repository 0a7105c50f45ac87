"""A Slurm cluster on one machine: real slurmctld, slurmd, munge and sshd in namespaces of their own."""

from tests.rig.machines import RigError
from tests.rig.require import missing
from tests.rig.rig import Rig
from tests.rig.spec import Spec

__all__ = ["Rig", "RigError", "Spec", "missing"]
