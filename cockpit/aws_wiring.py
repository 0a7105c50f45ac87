"""One cluster's way to AWS: whether there is anything to ask, the calls, and the reads of the source `aws`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cockpit.aws_models import AwsReading, AwsScope
from cockpit.clock import Clock
from cockpit.config import ClusterConfig
from cockpit.hosts.survey import HeadFacts
from cockpit.kinds import Kind, find_kind, kind_of_config
from cockpit.models import Fault, FaultError, FaultKind, Node
from cockpit.price_models import Prices
from cockpit.sources.aws import AwsReads
from cockpit.sources.aws_client import AwsAccess, AwsCalls
from cockpit.sources.prices import PriceReads
from cockpit.sources.slurm import SITE, SlurmClient
from cockpit.sources.slurm_ids import SlurmIds
from cockpit.sources.storage import StorageReads, ids_in
from cockpit.storage_models import StorageReading
from cockpit.store import Store


class AwsWiring:
    """Loads nothing of AWS before the first read."""

    def __init__(
        self,
        config: ClusterConfig,
        slurm: SlurmClient,
        store: Store,
        nodes: Callable[[], Sequence[Node]],
        clock: Clock,
    ) -> None:
        self._config, self._slurm, self._store = config, slurm, store
        self._nodes, self._clock = nodes, clock
        self._reads: AwsReads | None = None
        self._calls: AwsCalls | None = None
        self._price_reads: PriceReads | None = None
        self._storage_reads: StorageReads | None = None
        self.prices: Prices | None = None  # of the instances of the last reading
        self.file_systems: tuple[str, ...] = ()  # ids of FSx file systems, as far as the stack or a mount names them
        self._stack_systems: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Whether the config names anything of AWS, or the head says which region it is in."""
        config, facts = self._config, self._slurm.known_facts()
        if config.region or config.profile or config.stack or config.instances:
            return True
        kind = self._kind(facts)
        return bool(facts and facts.region and kind and _has_parts(kind.aws_scope(config, facts)))

    def scope(self) -> AwsScope:
        """What of AWS belongs to the cluster, by what is known now; raises FaultError while its kind is not known."""
        facts = self._slurm.known_facts()
        kind = self._kind(facts)
        if kind is None:
            raise FaultError(
                Fault(
                    FaultKind.MISSING,
                    "asking AWS for this cluster",
                    "what kind of cluster it is, is not known yet",
                    "set `kind` in the config, so that AWS can be asked while the head is off",
                )
            )
        return kind.aws_scope(self._config, facts)

    def calls(self) -> AwsCalls:
        """The way to AWS, for reads and for actions; the region is the config's, or the one the head tells."""
        region = self.scope().region
        if self._calls is None or self._calls.access.region != region:
            # A head that was off at first may tell its region later; what was made for another one is of no use.
            self._calls = AwsCalls(AwsAccess(region, self._config.profile, self._config.endpoint_url))
            self._reads = self._price_reads = self._storage_reads = None
        return self._calls

    def read(self) -> AwsReading:
        """One reading; runs on the source's thread."""
        self._ask_head()
        calls = self.calls()
        if self._reads is None:
            ids = SlurmIds(self._slurm, lambda: site.version if (site := self._store.state(SITE).data) else "")
            self._reads = AwsReads(calls, self.scope, nodes=self._nodes, slurm_ids=ids.read, clock=self._clock)
        reading = self._reads.read()
        self._find_prices(reading)
        self._stack_systems = reading.stack.data.fsx_ids if reading.stack.data else self._stack_systems
        self.note_mounts(())
        return reading

    def note_mounts(self, sources: Iterable[str]) -> None:
        """Remember the file systems among these mounts' sources."""
        self.file_systems = ids_in((*self._stack_systems, *self.file_systems), sources)

    def read_storage(self) -> StorageReading:
        """One reading of the file systems known by now; runs on its source's thread."""
        if self._storage_reads is None:
            self._storage_reads = StorageReads(self.calls(), lambda: self.file_systems, self._clock)
        return self._storage_reads.read()

    def _find_prices(self, reading: AwsReading) -> None:
        """Prices come with the instances: a type that is new here is asked for at once, a known one once a day."""
        if reading.instances.data is None:
            return
        if self._price_reads is None:
            self._price_reads = PriceReads(self.calls().once(), self._clock)
        found = self._price_reads.find(reading.instances.data, reading.region)
        self.prices = found if found != self.prices else self.prices

    def fresh(self) -> AwsReading:
        """Everything read anew, for a plan or a check of what was done; waits, so never on the UI thread."""
        self._ask_head()
        return AwsReads(self.calls(), self.scope, nodes=self._nodes, clock=self._clock).read()

    def _ask_head(self) -> None:
        """Let the head tell its kind, region and stack where the config does not; it may well be off."""
        config = self._config
        if config.kind and config.region and (config.stack or config.instances):
            return
        try:
            self._slurm.facts()
        except FaultError:
            return

    def kind(self) -> Kind | None:
        """The kind by what is known now, also while the head is off."""
        return self._kind(self._slurm.known_facts())

    def _kind(self, facts: HeadFacts | None) -> Kind | None:
        found = kind_of_config(self._config) if self._config.kind else None
        return found or (find_kind(facts) if facts else None) or kind_of_config(self._config)


def _has_parts(scope: AwsScope) -> bool:
    return bool(scope.stack or scope.hyperpod or scope.filters)
