"""What the cockpit may tell the probe: `name=value` words on its command line."""

DEFAULTS = {
    "interval": "2",
    "slow": "10",  # ECC, remap, NVLink, processes
    "efa": "15",
    "mounts": "30",
    "timeout": "5",  # of one mount, of EFA's counters, of the look at processes
    "driver_silent": "1.7",  # told at once, and no trouble yet
    "driver_slow": "10",
    "driver_hung": "30",
    "smi": "10",  # one run costs a second of CPU time, and initialises GPUs that nothing else holds
    "backoff": "60,300,900",
    "block": "30",
    "heartbeat": "15",
    "proc": "/proc",
    "sys": "/sys",
    "dev": "/dev",
    "kmsg": "/dev/kmsg",
    "mount_check": "",
    "root": "",  # where all other absolute paths of checks begin
    "tools": "",  # where the programs of checks are, instead of their usual places
    "nvidia_smi": "nvidia-smi",
    "journalctl": "journalctl",
    "dmesg": "dmesg",
    "neuron_ls": "neuron-ls",
    "neuron_monitor": "neuron-monitor",
}


SLOW_FACTOR = 2  # by which a beat may stretch the interval


class Options:
    """Values by name; an unknown name or a bad number raises ValueError."""

    def __init__(self, words: "list[str]") -> None:
        self._given = dict(DEFAULTS)
        for word in words:
            name, mark, value = word.partition("=")
            if not mark or name not in DEFAULTS:
                raise ValueError(f"unknown option {word[:60]}")
            self._given[name] = value

    def text(self, name: str) -> str:
        """The value as it was given."""
        return self._given[name]

    def seconds(self, name: str) -> float:
        """One number."""
        return float(self._given[name])

    def list(self, name: str) -> "list[float]":
        """Numbers separated by commas."""
        return [float(word) for word in self._given[name].split(",")]
