"""The program that runs on every GPU node and streams what it sees, and how it gets there.

`agent/` is the program: Python 3.6 and the standard library. `bundle.py` packs it with nvidia-ml-py's own
source for `Host.stream(probe_argv(2), stdin=probe_stdin())`; nothing is installed or written on the node.
`cockpit.formats.probe.ProbeReader` reads what comes back.

What is sent over stdin
    24 bytes: three lengths, blank-padded to 8 characters each; then a shell script (used where there is no
    Python), the agent (zlib), pynvml.py (zlib). Whatever comes later is a heartbeat: any byte,
    `-` one that asks for half the pace until the next. stdin stays open; its end ends the probe.

What comes back: one JSON object a line; `k` tells the kind.

`k: h`, hello: first, and again whenever something in it changes
    v protocol · t wall time · rev revision of the GPU list · iv interval in s · host · kernel · boot (id) · booted
    (wall time) · cpus · py · drv {driver, nvml, cuda} · pci [bus ids of NVIDIA GPUs as the kernel sees them] ·
    hid [N of each /dev/nvidiaN that the probe's login or cgroup may not open] ·
    efa [[name, GID, [counter, ...]], ...] · log (where kernel messages come from: journal, kmsg, dmesg, "") ·
    no {what: why it cannot be read} · gpus [{i index, minor, uuid, pci, name, serial, mig, err,
    max [memory MiB, SM MHz, PCIe generation, PCIe width], inst [[gi, ci, uuid, name, MiB], ...]}, ...]
    A GPU never leaves `gpus`; `err` says why there are no readings of it, `dup` that the driver names it twice.

`k: s`, sample: one an interval. Only n, t, rev, l, m and d are in every one
    n counts from 1 · t wall time · rev as in the hello that the GPU rows refer to
    l [1, 5, 15 min load] · m [MiB in all, MiB available] · d processes in uninterruptible sleep
    D [[pid, program, wait channel, seconds seen], ...] the longest of them
    dr [state, since, why, NVML code] unless NVML answers: starting, silent, slow, hung, crashed, none, smi, neuron
    q milliseconds the driver took
    g per GPU FAST · G per GPU SLOW · i per GPU [[gi, ci, MiB used], ...] (rows in the order of `gpus`)
    p processes on GPUs, all of them: [GPU, pid, MiB, gi], followed by 0 where there is no such process, or by
      1, user, program, started at, job, step, task, RANK, LOCAL_RANK, SLURM_PROCID, WORLD_SIZE; or [GPU, word]
    x NVML events: [[time, GPU, event type, data], ...] · e EFA [[device, counter, value, ...], ...] that changed
    mt mounts, all of them: [path, type, source, MiB in all, used, available, inodes, inodes used];
      [path, type, source, "?", since] does not answer; [path, type, source, "!", why] answers with an error
    km kernel messages [[time, text], ...], with the boot id as third when it is not this boot; kd how many were
      dropped so far
    c {f [fields], rc, out}: nvidia-smi's own CSV text, read on our side

    FAST: GPU use %, memory-controller use %, memory used MiB, GPU temperature C, HBM temperature C, power W,
      SM clock MHz, throttle mask
    SLOW: power limit W, corrected ECC, uncorrected ECC (volatile), row remap pending, row remap failed, NVLinks
      down, NVLinks, PCIe generation, PCIe width, recovery action

`k: b`, bye: why the probe ends.

A value is a number, or a word: `-` not supported, `p` not permitted, `e15` NVML's return code 15, `?text` another
failure. A row of one word stands for a row in which every value failed that way. 0 is never a missing value.
"""
