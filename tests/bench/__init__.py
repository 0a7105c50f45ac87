"""Benches: the cockpit in a pseudo-terminal over a real slurmctld and the demo, against raw commands in the same run."""
