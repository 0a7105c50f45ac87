"""Real ranks for the rig: Python processes that srun starts, which meet in a barrier over TCP at every step."""

from __future__ import annotations

from pathlib import Path

# One process a rank. Rank 0 is the server; every step all ranks meet. A rank does what FAULT says at step 3.
PROGRAM = """
import os, signal, socket, sys, time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLACE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
FAULT, ODD = os.environ["FAULT"], int(os.environ["ODD"])


def serve_barrier(peers):
    for peer in peers:
        if not peer.recv(1):
            signal.pause()  # as NCCL: nobody tells that the other one has gone
    for peer in peers:
        peer.sendall(b"1")


def all_reduce_wait(peer):
    peer.sendall(b"1")
    peer.recv(1)


def load_batch(step):
    if FAULT == "fifo" and RANK == ODD and step == 3:
        open(os.environ["FIFO"]).read()
    return sum(number * number for number in range(20000))


def write_summary(step):
    time.sleep(1000)


def connect():
    if RANK == 0:
        server = socket.create_server(PLACE, backlog=256)
        return [server.accept()[0] for _ in range(WORLD - 1)]
    while True:
        try:
            return socket.create_connection(PLACE)
        except OSError:
            time.sleep(0.1)


def main():
    if FAULT == "never" and RANK == ODD:
        os.execvp("sleep", ["sleep", "1000"])
    peers = connect()
    for step in range(1000000):
        if FAULT == "sleeps" and RANK == ODD and step == 3:
            write_summary(step)
        if FAULT == "dies" and RANK == ODD and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if FAULT == "stops" and RANK == ODD and step == 3:
            os.kill(os.getpid(), signal.SIGSTOP)
        load_batch(step)
        serve_barrier(peers) if RANK == 0 else all_reduce_wait(peers)
        if RANK == 0:
            print(time.strftime("%Y-%m-%d %H:%M:%S"), "step", step, flush=True)
        time.sleep(0.05)


main()
"""


def script(folder: Path, python: str, fault: str, *, odd: int, world: int, tasks: int, master: tuple[str, int]) -> str:
    """A batch script for 3 nodes with those ranks; the program lies in `folder`, which every node sees."""
    (folder / "train.py").write_text(PROGRAM)
    settings = {
        "WORLD_SIZE": world,
        "MASTER_ADDR": master[0],
        "MASTER_PORT": master[1],
        "FAULT": fault,
        "ODD": odd,
        "FIFO": folder / "fifo",
    }
    exports = "\n".join(f"export {name}={value}" for name, value in settings.items())
    program = f"RANK=$SLURM_PROCID exec {python} {folder}/train.py"
    # --wait and --kill-on-bad-exit off: as in jobs whose other ranks wait for one that has gone.
    return f"{exports}\nmkfifo $FIFO\nsrun -n {tasks} --kill-on-bad-exit=0 --wait=0 sh -c '{program}'"
