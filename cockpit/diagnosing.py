"""One job's diagnoses, one after another, on threads of their own: for whoever looks at a screen meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cockpit.cluster import Cluster
from cockpit.config import ConfigError, state_dir
from cockpit.diagnosis.bundle import write_bundle
from cockpit.diagnosis.compare import compared
from cockpit.diagnosis.diagnose import Diagnosis, diagnose
from cockpit.diagnosis.gathered import Gathered
from cockpit.export import file_word, new_stem, private_dir
from cockpit.gather import Gatherer
from cockpit.models import FaultError
from cockpit.sources.base import unexpected

FRESH_S = 60.0  # a look that is older is no picture of now: before a bundle is written there is another one


@dataclass(frozen=True, slots=True)
class DiagnosisLook:
    """What is known now. Times are steady ones; `diagnosis` fills in while `running`."""

    job: str
    diagnosis: Diagnosis | None = None
    running: bool = False
    stopped: bool = False  # before everything had come
    began_at: float = 0.0
    seen_at: float | None = None  # when the diagnosis was whole; None: it is not
    answered: int = 0
    nodes: int = 0
    fault: str = ""  # why there is nothing at all
    changes: tuple[str, ...] = ()  # from the look before
    before_s: float | None = None  # how long before this one that was
    keeping: bool = False
    kept: str = ""  # the file, or why there is none
    kept_well: bool = True


class Diagnosing:
    """Looks at one job when told to. `changed` is called on other threads whenever `look()` tells something new."""

    def __init__(self, cluster: Cluster, job: str, changed: Callable[[], object]) -> None:
        self._cluster, self._changed = cluster, changed
        self._lock = threading.Condition()
        self._gatherer: Gatherer | None = None
        self._looks: list[Gathered] = []  # whole ones, the latest last
        self._look = DiagnosisLook(job)
        self._before: Diagnosis | None = None

    def look(self) -> DiagnosisLook:
        """What is known now."""
        with self._lock:
            return self._look

    def start(self) -> None:
        """Look once (more); nothing while one look is under way."""
        with self._lock:
            if self._gatherer is not None:
                return
            old, now = self._look, self._cluster.clock.steady()
            if old.diagnosis is not None and old.seen_at is not None:
                self._before = old.diagnosis
            gatherer = self._gatherer = Gatherer(self._cluster, old.job, changed=self._partly)
            self._look = replace(old, running=True, stopped=False, began_at=now, answered=0, fault="")
        threading.Thread(target=self._run, args=(gatherer,), name="diagnosis", daemon=True).start()
        self._changed()

    def stop(self) -> None:
        """End the look that is under way; what has come stays. Waits for nothing."""
        with self._lock:
            gatherer = self._gatherer
        if gatherer is not None:
            gatherer.stop()

    def keep(self) -> None:
        """Write all evidence into one file of the state directory, on a thread; looks again first where it is old."""
        with self._lock:
            if self._look.keeping:
                return
            self._look = replace(self._look, keeping=True, kept="")
        threading.Thread(target=self._keep, name="bundle", daemon=True).start()
        self._changed()

    # On threads.

    def _run(self, gatherer: Gatherer) -> None:
        fault, gathered, diagnosis = "", None, None
        try:
            gathered = gatherer.run()
            diagnosis = diagnose(gathered)
        except FaultError as error:
            fault = error.fault.line()
        except ConfigError as error:
            fault = str(error)
        except Exception as error:  # a thread's end must be told, whatever broke
            fault = unexpected(f"diagnosing job {self._look.job}", error).line()
        self._ended(gatherer, gathered, diagnosis, fault)

    def _partly(self, gathered: Gathered) -> None:
        # A whole answer is not taken away for the beginning of another one.
        diagnosis = diagnose(gathered) if self._before is None else None
        with self._lock:
            self._look = _told(self._look, gathered, diagnosis)
        self._changed()

    def _ended(self, gatherer: Gatherer, gathered: Gathered | None, diagnosis: Diagnosis | None, fault: str) -> None:
        with self._lock:
            look = replace(self._look, running=False, stopped=gatherer.stopped, fault=fault)
            if gathered is not None and diagnosis is not None:
                if not gatherer.stopped:
                    self._looks = [*self._looks, gathered][-2:]
                    look = replace(self._with_changes(look, diagnosis), seen_at=self._cluster.clock.steady())
                shown = diagnosis if self._before is None or not gatherer.stopped else None
                look = _told(look, gathered, shown)
            self._look, self._gatherer = look, None
            self._lock.notify_all()
        self._changed()

    def _with_changes(self, look: DiagnosisLook, diagnosis: Diagnosis) -> DiagnosisLook:
        if self._before is None:
            return look
        apart_s = diagnosis.evidence.taken_at - self._before.evidence.taken_at  # as the sentences count it
        return replace(look, changes=compared(self._before, diagnosis), before_s=apart_s)

    def _keep(self) -> None:
        try:
            path = self._written()
        except OSError as error:
            self._kept(f"not written: {error.strerror or error}", well=False)
        except Exception as error:  # told where it was asked for, whatever it is
            self._kept(unexpected("writing the evidence", error).line(), well=False)
        else:
            self._kept(str(path) if path else f"not written: {self.look().fault or 'the look was stopped'}", bool(path))

    def _written(self) -> Path | None:
        """Two looks where possible, the last one fresh; None when nothing could be read."""
        self._wait()
        if len(self._looks) < 2 or self._age_s() > FRESH_S:
            self.start()
            self._wait()
        looks = list(self._looks)
        if not looks:
            return None
        return evidence_file(self._cluster.config.name, looks)

    def _age_s(self) -> float:
        seen_at = self.look().seen_at
        return self._cluster.clock.steady() - seen_at if seen_at is not None else 2 * FRESH_S

    def _wait(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._gatherer is None)

    def _kept(self, words: str, well: bool = True) -> None:
        with self._lock:
            self._look = replace(self._look, keeping=False, kept=words, kept_well=well)
        self._changed()


def capture(cluster: Cluster, job: str, *, between_s: float) -> Path:
    """Look at a job twice and write both looks; blocks for some 20 s. Raises FaultError, ConfigError and OSError."""
    looks = [Gatherer(cluster, job).run()]
    time.sleep(between_s)
    looks.append(Gatherer(cluster, job).run())
    return evidence_file(cluster.config.name, looks)


def evidence_file(cluster: str, looks: list[Gathered]) -> Path:
    """Write the looks, oldest first, into a new private file of the state directory. Raises OSError."""
    folder = private_dir(state_dir() / "bundles")
    path = folder / f"{new_stem(f'{cluster}-job-{file_word(looks[-1].job)}')}.tar.gz"
    write_bundle(path, looks)
    return path


def _told(look: DiagnosisLook, gathered: Gathered, diagnosis: Diagnosis | None) -> DiagnosisLook:
    answered = sum(1 for node in gathered.nodes if node.answered)
    shown = diagnosis or look.diagnosis
    return replace(look, diagnosis=shown, answered=answered, nodes=len(gathered.nodes))
