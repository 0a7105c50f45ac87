"""The environment Slurm's programs run in: a user's own settings silently change columns and drop rows."""

from __future__ import annotations

# %s turns every time into epoch seconds; 0 lifts the 64-character cut of array task lists.
SLURM_SET = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}

_SQUEUE = (
    "FORMAT FORMAT2 STATES USERS PARTITION ACCOUNT NAMES QOS LICENSES SORT"
    " ALL ARRAY PRIORITY LOCAL FEDERATION SIB SIBLING"
)
_SINFO = "FORMAT PARTITION SORT ALL FUTURE LOCAL FEDERATION"
_SCONTROL = "ALL FUTURE LOCAL FEDERATION SIB SIBLING"
_SCANCEL = "STATE USER PARTITION NAME ACCOUNT QOS WCKEY INTERACTIVE VERBOSE BATCH FULL HURRY CTLD CRON"

# Slurm's manuals name each of these; SLURM_CLUSTERS alone turns every call into a database lookup.
SLURM_UNSET: tuple[str, ...] = tuple(
    f"{program}_{name}"
    for program, names in (
        ("SQUEUE", _SQUEUE),
        ("SINFO", _SINFO),
        ("SCONTROL", _SCONTROL),
        ("SCANCEL", _SCANCEL),
        ("SACCT", "FORMAT FEDERATION LOCAL"),
        ("SLURM", "CLUSTERS JSON YAML TOPO_LEN DEBUG_FLAGS"),
    )
    for name in names.split()
)
