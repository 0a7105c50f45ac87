"""The demo's client programs. A handler gets a call and answers as the Slurm 23.11 program of that name."""
