"""Everything a rig reads from disk: Slurm's, sshd's and ssh's configuration, keys, accounts, device nodes."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from pathlib import Path
from string import Template

from tests.rig import nvml
from tests.rig.require import SEARCH
from tests.rig.spec import HEAD, MUNGE_SOCKET, TOOLS, Layout

TEMPLATES = Path(__file__).parent / "templates"
# Users whose jobs a test may submit with uid=; they exist only inside the rig's namespaces.
USERS = {"alice": 20001, "bob": 20002, "carol": 20003}


def write_all(layout: Layout) -> None:
    """Make the state directory complete, so that machines can boot from it. Takes about 0.1 s."""
    for name in ("accounts", "bin", "dev", "etc", "home", "local", "ssh"):
        (layout.state / name).mkdir()
    for name in layout.machines:
        for part in ("bin", "log"):
            (layout.host_dir(name) / part).mkdir(parents=True)
    (layout.host_dir(HEAD) / "slurmctld").mkdir()
    (layout.state / ".gitignore").write_text("*\n")
    os.mkfifo(layout.state / "requests", 0o600)
    _programs(layout)
    _slurm(layout)
    _accounts(layout)
    _keys(layout)
    _ssh(layout)
    if layout.spec.booted:
        _gpu_devices(layout)
        _nvml(layout)


def _programs(layout: Layout) -> None:
    for source, target in (
        ("init.sh", "init"),
        ("power.sh", "resume"),
        ("power.sh", "suspend"),
        ("power.sh", "reboot"),
    ):
        path = layout.state / "bin" / target
        path.write_text((TEMPLATES / source).read_text())
        path.chmod(0o755)


def _slurm(layout: Layout) -> None:
    text = _slurm_conf(layout, MUNGE_SOCKET)
    layout.slurm_conf.write_text(text)
    outside = layout.host_dir(HEAD) / MUNGE_SOCKET.lstrip("/")
    layout.local_slurm_conf.write_text(_slurm_conf(layout, str(outside)))
    gpus = layout.spec.gpus
    gres = "" if not gpus else f"Name=gpu Type=h100 File={layout.state}/dev/nvidia[0-{gpus - 1}]\n"
    if gpus and not layout.spec.booted:
        gres = f"Name=gpu Type=h100 Count={gpus}\n"
    for path in (layout.slurm_conf, layout.local_slurm_conf):
        path.with_name("gres.conf").write_text("AutoDetect=off\n" + gres)
        # The value is unknown before 24.05, and without it later daemons insist on a writable cgroup tree.
        if _slurm_version() >= (24, 5):
            path.with_name("cgroup.conf").write_text("CgroupPlugin=disabled\n")


def _slurm_conf(layout: Layout, munge_socket: str) -> str:
    spec, power = layout.spec, layout.state / "bin"
    values = {
        "head": HEAD,
        "head_address": layout.address(HEAD),
        "slurmctld_port": layout.slurmctld_port,
        "spare_port": layout.spare_port,
        "munge_socket": munge_socket,
        "state": layout.state,
        "message_timeout_s": spec.message_timeout_s,
        "slurmd_timeout_s": spec.slurmd_timeout_s,
        "resume_timeout_s": spec.resume_timeout_s,
        "suspend_timeout_s": spec.suspend_timeout_s,
        "suspend_time_s": spec.suspend_time_s,
        "max_job_count": spec.max_job_count,
        "max_array_size": spec.max_job_count + 1,
        "resume_program": power / "resume" if spec.booted else "/bin/true",
        "suspend_program": power / "suspend" if spec.booted else "/bin/true",
    }
    head = Template((TEMPLATES / "slurm.conf").read_text()).substitute(values)
    keep = [f"SuspendExcNodes={','.join(spec.static_nodes)}"] if spec.static else []
    return head + "\n".join([*keep, *_node_lines(layout), *_partition_lines(layout), ""])


def _node_lines(layout: Layout) -> list[str]:
    spec = layout.spec
    size = f"CPUs={spec.cpus} RealMemory={spec.mem_mib} State=CLOUD"
    gres = f" Gres=gpu:h100:{spec.gpus}" if spec.gpus else ""
    return [
        f"NodeName={name} NodeAddr={layout.address(name)} Port={layout.slurmd_port(name)} {size}{gres}"
        f" Feature={'static' if name in spec.static_nodes else 'dynamic'},p5.48xlarge,gpu,efa"
        for name in spec.nodes
    ]


def _partition_lines(layout: Layout) -> list[str]:
    nodes = layout.spec.nodes
    half = ",".join(nodes[: max(1, len(nodes) // 2)])
    return [
        "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        f"PartitionName=prio Nodes={half} PriorityTier=10 MaxTime=7-0 State=UP",
        f"PartitionName=old Nodes={nodes[-1]} Hidden=YES State=INACTIVE",
    ]


def _slurm_version() -> tuple[int, ...]:
    done = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True, env={"PATH": SEARCH})
    return tuple(int(number) for number in re.findall(r"\d+", done.stdout)[:2])


def _accounts(layout: Layout) -> None:
    """passwd, shadow and hosts as the machines of the rig see them; the real ones are left alone."""
    home, accounts = layout.state / "home", layout.state / "accounts"
    rows = [row for row in Path("/etc/passwd").read_text().splitlines() if not row.startswith("root:")]
    rows.insert(0, f"root:x:0:0:root:{home}/root:/bin/bash")
    rows += [f"{name}:x:{uid}:100::{home}/{name}:/bin/bash" for name, uid in USERS.items()]
    (accounts / "passwd").write_text("\n".join([*rows, ""]))
    # `*` is no password, but unlike `!` no lock either: sshd refuses locked accounts without PAM.
    (accounts / "shadow").write_text("root:*:19000:0:99999:7:::\n")
    (accounts / "shadow").chmod(0o600)
    names = [f"{layout.address(name)} {name}" for name in layout.machines]
    (accounts / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    (home / "root" / ".ssh").mkdir(parents=True, mode=0o700)
    (home / "root" / ".ssh" / "config").write_text(f"Include {layout.ssh_config}\n")
    for name, uid in USERS.items():
        (home / name).mkdir()
        os.chown(home / name, uid, 100)


def _keys(layout: Layout) -> None:
    (layout.state / "etc" / "munge.key").write_bytes(os.urandom(128))
    (layout.state / "etc" / "munge.key").chmod(0o400)
    paths = [
        layout.state / "ssh" / "id_ed25519",
        *(layout.host_dir(name) / "host_key" for name in layout.machines),
    ]
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f"]
    running = [subprocess.Popen([*argv, str(path)], stdin=subprocess.DEVNULL, env={"PATH": SEARCH}) for path in paths]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise OSError("ssh-keygen could not make the rig's keys")


def _ssh(layout: Layout) -> None:
    known, blocks = [], []
    for name in layout.machines:
        address, port = layout.address(name), layout.sshd_port
        key = (layout.host_dir(name) / "host_key.pub").read_text().rsplit(" ", 1)[0]
        known.append(f"[{address}]:{port},[{name}]:{port} {key}\n")
        blocks.append(f"Host {name}\n  HostName {address}\n  Port {port}\n")
        _sshd_config(layout, name)
    ssh = layout.ssh_config.parent
    (ssh / "known_hosts").write_text("".join(known))
    common = f"""Host {" ".join(layout.machines)}
  User root
  IdentityFile {ssh}/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile {ssh}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
"""
    layout.ssh_config.write_text("".join([*blocks, common]))
    layout.ssh_config.chmod(0o600)


def _sshd_config(layout: Layout, name: str) -> None:
    environment = {
        "PATH": f"{TOOLS}:{SEARCH}",
        "SLURM_CONF": str(layout.slurm_conf),
        # On the head, too: jobs take their environment along from there.
        "LD_LIBRARY_PATH": str(layout.library_dir),
        **layout.spec.env,
    }
    values = {
        "address": layout.address(name),
        "sshd_port": layout.sshd_port,
        "state": layout.state,
        "name": name,
        "environment": " ".join(shlex.quote(f"{key}={value}") for key, value in environment.items()),
    }
    text = Template((TEMPLATES / "sshd_config").read_text()).substitute(values)
    (layout.host_dir(name) / "sshd_config").write_text(text)


def _gpu_devices(layout: Layout) -> None:
    """Eight device files a node, bind-mounted over STATE/dev by its init: one node can lose a GPU alone."""
    for name in layout.spec.nodes:
        folder = layout.host_dir(name) / "dev"
        folder.mkdir()
        for index in range(layout.spec.gpus):
            try:
                os.mknod(folder / f"nvidia{index}", stat.S_IFCHR | 0o666, os.makedev(195, index))
            except PermissionError:
                # Slurm then only complains that it is no device; indexes still work.
                (folder / f"nvidia{index}").touch()


def _nvml(layout: Layout) -> None:
    """NVIDIA's library and nvidia-smi for every node, where this machine can build the library."""
    if not layout.spec.gpus or nvml.missing() is not None:
        return
    nvml.install(layout.library_dir)
    for name in layout.spec.nodes:
        nvml.install_smi(layout.host_dir(name) / "bin")
        nvml.NvmlControl(layout.nvml_state(name), gpus=layout.spec.gpus, seed=name)
