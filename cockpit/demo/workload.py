"""What the demo's people run: the cast at the start, and the jobs that keep arriving."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cockpit.demo import troubles
from cockpit.demo.jobs import Ask, SimJob
from cockpit.demo.machines import GPUS, Power
from cockpit.demo.scheduler import Pool

if TYPE_CHECKING:
    from cockpit.demo.sim import Simulation

HOUR = 3600.0
NAMES = (
    "llama3-70b-sft",
    "moe-8x22b-anneal",
    "vit-g-distill",
    "whisper-ft-de",
    "dpo-sweep-07",
    "sdxl-lora",
    "tokenizer-stats",
    "qwen2-eval",
    "retriever-index",
    "speech-align",
    "bench-allreduce",
    "clip-ablate",
)
PEOPLE = ("maria", "kenji", "tomasz", "aisha", "lucas", "wei")
DRAIN_REASONS = (
    "INC-4821 NCCL slow on rail 5, ticket with AWS (maria)",
    "Xid 79 GPU 3 fell off the bus, waiting for replacement",
    "efa ports missing: 31 of 32, keep out until RMA",
)


def populate(sim: Simulation) -> None:
    """Put the scenario's starting conditions into an empty simulation."""
    for node in sim.nodes.values():
        if node.power is Power.UP:
            node.boot_at = sim.now - sim.rng.uniform(3, 40) * 24 * HOUR
            node.idle_since, node.busy_at = sim.now, sim.now - sim.rng.uniform(0, HOUR)
    _break_nodes(sim)
    lead = _place_cast(sim)
    _fill(sim)
    troubles.place(sim, lead)
    _record_past(sim)
    if sim.scenario.queue:
        _queue_cast(sim, lead)
    sim.at(sim.now + sim.scenario.arrival_s / 3, lambda: _arrive(sim))


def _break_nodes(sim: Simulation) -> None:
    static = [node for node in sim.nodes.values() if node.static]
    if len(static) < 4:
        return
    per = max(1, len(sim.nodes) // 48)
    for number in range(sim.scenario.drained * per):
        node = static[(len(static) * 5 // 8 + number) % len(static)]
        node.drain, node.reason = True, DRAIN_REASONS[number % len(DRAIN_REASONS)]
        node.reason_by, node.reason_at = "root", sim.now - (26 + number) * HOUR
    for number in range(sim.scenario.down * per):
        node = static[-1 - number]
        node.down, node.responding, node.reason = True, False, "Not responding"
        node.reason_by, node.reason_at = "root", sim.now - 17 * 60 - number * HOUR


def _place(sim: Simulation, pool: Pool, ask: Ask, age_s: float) -> SimJob | None:
    """Start a job in the past, if there is room for it."""
    hosts = pool.fit(ask)
    if hosts is None:
        return None
    pool.take(hosts, ask.gpus)
    return sim.start(sim.submit(ask, ago_s=age_s + sim.rng.uniform(20, HOUR)), hosts, age_s=age_s)


def _place_cast(sim: Simulation) -> SimJob | None:
    """The jobs that are always there, on nodes that are up; returns the big training run."""
    up = Pool([node for node in sim.nodes.values() if node.power is Power.UP])
    day = 24 * HOUR
    # The small jobs come first, so that they share a node and the big run gets whole ones.
    notebook = Ask("jupyter", "aisha", 1, 1, 5 * HOUR, 8 * HOUR, "interactive", comment="ask before draining")
    _place(sim, up, notebook, 2.2 * HOUR)
    evals = Ask("eval-sweep", "kenji", 1, 1, 0.4 * HOUR, HOUR, tasks=tuple(range(24)), throttle=4, comment="nightly")
    _start_array(sim, up, evals)
    _place(sim, up, Ask("asr-debug", "lucas", 1, 2, 2 * HOUR, 6 * HOUR, whole=True), 0.7 * HOUR)
    size = max(1, min(64, int(len(up.free) * sim.scenario.training)))
    lead = Ask("llama3-405b-pretrain", "maria", size, GPUS, 3 * day, 5 * day, typed=True)
    placed = _place(sim, up, lead, 31 * HOUR)
    _place(sim, up, Ask("训练[ckpt=3]-lr{1e-4}", "wei", 1, GPUS, 9 * HOUR, 12 * HOUR), 4.1 * HOUR)
    safety = Ask("safety-eval", "tomasz", 1, GPUS, 3 * HOUR, 6 * HOUR, "prio", 12000, own_errors=True)
    _place(sim, up, safety, 1.3 * HOUR)
    if sim.scenario.waking:
        _wake(sim)
    for node in [node for node in sim.nodes.values() if not node.static][: sim.scenario.awake]:
        node.power, node.boot_at = Power.UP, sim.now - sim.rng.uniform(1, 6) * HOUR
        sim.rest(node)
    return placed


def _start_array(sim: Simulation, pool: Pool, ask: Ask) -> None:
    if pool.fit(ask) is None:
        return
    array = sim.submit(ask, ago_s=1.1 * HOUR)
    for number in range(ask.throttle):
        hosts = pool.fit(ask)
        if hosts is not None:
            pool.take(hosts, ask.gpus)
            sim.start(array, hosts, age_s=120.0 + 140.0 * number)


def _wake(sim: Simulation) -> None:
    """Some dynamic nodes boot for a job, an eighth is on its way down or gone, the others run."""
    dynamic = [node for node in sim.nodes.values() if not node.static]
    if len(dynamic) < 4:
        return
    half = min(16, len(dynamic) // 2)
    booting = [node.name for node in dynamic[:half]]
    ask = Ask("moe-8x22b-anneal", "kenji", half, GPUS, 2 * HOUR, 8 * HOUR, priority=4000)
    sim.start(sim.submit(ask, ago_s=95.0), booting, age_s=40.0)
    leaving = max(1, len(dynamic) // 8)
    for node in dynamic[half:]:
        node.power, node.boot_at = Power.UP, sim.now - sim.rng.uniform(1, 6) * HOUR
    for node in dynamic[-leaving:]:
        sim.power_down(node, since_s=sim.rng.uniform(5.0, 60.0))


def _fill(sim: Simulation) -> None:
    """Random running jobs on what the cast left of the nodes that are up."""
    pool = Pool([node for node in sim.nodes.values() if node.power is Power.UP])
    target = round(sum(pool.free.values()) * (1 - sim.scenario.load))
    misses = 0
    while sum(pool.free.values()) > target and misses < 30:
        ask = random_ask(sim)
        age_s = sim.rng.uniform(0.05, 0.9) * min(ask.runs_s, ask.limit_s or ask.runs_s)
        misses += _place(sim, pool, ask, age_s) is None


def _record_past(sim: Simulation) -> None:
    """A few jobs that ended within MinJobAge; `squeue -t all` still shows them."""
    host = next(iter(sim.nodes))
    for name, outcome, ago_s in (
        ("tokenizer-stats", "COMPLETED", 40.0),
        ("dpo-sweep-07", "FAILED", 85.0),
        ("clip-ablate", "CANCELLED", 150.0),
        ("qwen2-eval", "TIMEOUT", 200.0),
    ):
        job = sim.submit(Ask(name, "tomasz", 1, 1, 900.0, 1800.0, ends_as=outcome), ago_s=ago_s + 2000.0)
        job.hosts, job.eligible_at = (host,), job.submitted_at
        job.started_at, job.ended_at = sim.now - ago_s - 1800.0, sim.now - ago_s
        sim.record_end(job, outcome)


def _queue_cast(sim: Simulation, lead: SimJob | None) -> None:
    """One waiting job for every usual reason."""
    static = sum(1 for node in sim.nodes.values() if node.static)
    size = max(1, min(static * 2 // 3, max(32, static // 6)))  # more than what is free or powered down
    big = Ask("llama3-70b-sft", "aisha", size, GPUS, 5 * HOUR, 24 * HOUR, priority=3000)
    sim.submit(big, ago_s=2.5 * HOUR)
    one = Ask("vit-g-distill", "maria", 1, GPUS, HOUR, 10 * HOUR, priority=1500)
    sim.submit(one, ago_s=1.9 * HOUR)
    sim.submit_het(
        (
            replace(one, name="rlhf-actor", user="wei", nodes=min(2, static), limit_s=48 * HOUR),
            replace(one, name="rlhf-rollout", user="wei", gpus=4, limit_s=48 * HOUR),
        ),
        ago_s=1.2 * HOUR,
    )
    sim.submit(replace(one, name="nightly-bench", user="lucas", begin_in_s=7.5 * HOUR), ago_s=0.5 * HOUR)
    sim.submit(replace(one, name="lr-search", user="kenji", held="user"), ago_s=6 * HOUR)
    sim.submit(replace(one, name="crypto-miner?", user="lucas", held="admin"), ago_s=9 * HOUR)
    failed = next((job.job_id for job in sim.jobs.values() if job.state == "FAILED"), None)
    sim.submit(replace(one, name="dpo-merge", user="tomasz", after=failed), ago_s=70.0)
    if lead is not None:
        sim.submit(replace(one, name="405b-evals", after=lead.job_id), ago_s=20 * HOUR)
    drained = next((node.name for node in sim.nodes.values() if node.drain), "")
    if drained:
        sim.submit(replace(one, name="repro-inc-4821", on=drained), ago_s=3 * HOUR)


def random_ask(sim: Simulation) -> Ask:
    """A believable submission: mostly single nodes, some multi-node, some a few GPUs."""
    rng = sim.rng
    gpus = rng.choices((GPUS, 4, 2, 1), (70, 12, 8, 10))[0]
    nodes = rng.choices((1, 2, 4), (80, 14, 6))[0] if gpus == GPUS and len(sim.nodes) >= 8 else 1
    runs_s = min(4 * HOUR, max(180.0, rng.lognormvariate(7.4, 0.8)))
    limit_s = (int(runs_s * rng.uniform(0.95, 4.0)) // 1800 + 1) * 1800.0
    return Ask(
        rng.choice(NAMES),
        rng.choice(PEOPLE),
        nodes,
        gpus,
        runs_s,
        limit_s,
        "prio" if rng.random() < 0.08 else "gpu",
        rng.randint(400, 1400),
        typed=rng.random() < 0.3,
        ends_as=rng.choices(("COMPLETED", "FAILED", "CANCELLED"), (88, 8, 4))[0],
    )


def _arrive(sim: Simulation) -> None:
    """Somebody submits a job, unless enough are waiting already."""
    scale = max(1.0, len(sim.nodes) / 12)
    cast = 10 if sim.scenario.queue else 0
    waiting = sum(1 for job in sim.jobs.values() if job.state == "PENDING")
    if waiting < cast + sim.scenario.backlog * scale:
        sim.submit(random_ask(sim))
    sim.at(sim.now + sim.rng.expovariate(scale / sim.scenario.arrival_s), lambda: _arrive(sim))
