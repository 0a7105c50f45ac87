"""Benches: the cockpit in a pseudo-terminal, over a real slurmctld and the demo, beside raw commands."""
