"""This machine: the config that was read, and the place where the record of changes is kept."""

from __future__ import annotations

import shutil

from cockpit.config import Config, config_path, state_dir
from cockpit.doctor.models import Finding, Step, failed, passed
from cockpit.export import new_stem, open_private, private_dir
from cockpit.words import plural, size

_LEAST_BYTES = 50 * 2**20


class Here:
    """Asks nobody else."""

    def __init__(self, config: Config, name: str) -> None:
        self._config, self._name = config, name

    def steps(self) -> tuple[Step, ...]:
        return (
            Step("config", "config", self._read, (), 5.0),
            Step("state", "place for the record", self._state, (), 10.0),
        )

    def _read(self) -> Finding:
        entry = self._config.clusters[self._name]
        if self._config.path is None:
            return passed(f"none ({config_path()} is not there): the Slurm of this machine, as `{self._name}`")
        clusters = plural(len(self._config.clusters), "cluster")
        return passed(f"{self._config.path}: every key is known; {clusters}, this is `{self._name}` at {entry.head}")

    def _state(self) -> Finding:
        place = state_dir()
        remedy = f"without it no change can be made: mkdir -p {place} && chmod 700 {place}, or set XDG_STATE_HOME"
        try:
            private_dir(place)
            path = place / f"{new_stem('doctor')}.tmp"
            with open_private(path) as file:
                file.write("x")
            mode = path.stat().st_mode & 0o777
            path.unlink()
        except OSError as error:
            return failed(f"{place}: {error.strerror or error}", remedy)
        if mode != 0o600:
            return failed(f"{place}: files get mode {mode:04o}, not 0600", "use a file system with Unix modes")
        free = shutil.disk_usage(place).free
        if free < _LEAST_BYTES:
            return failed(f"{place}: only {size(free)} free", "make room: a change without a record is refused")
        return passed(f"{place}: writable, files are 0600, {size(free)} free")
