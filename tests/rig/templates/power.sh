#!/bin/sh
# ResumeProgram, SuspendProgram and RebootProgram, told apart by the name each is called by.
# Slurm starts them with an almost empty environment and ends their process group afterwards, so the
# supervisor outside is only asked: one line a node, each written at once.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
state=$(dirname "$(dirname "$0")")
case ${0##*/} in
resume) verb=boot nodes=$(scontrol show hostnames "$1") ;;
suspend) verb=halt nodes=$(scontrol show hostnames "$1") ;;
reboot) verb=reboot nodes=$(hostname) ;;
*) exit 64 ;;
esac
# A slurmd that starts in the very second of the request may count as booted before it, since slurmd -b counts
# in seconds of uptime and slurmctld in seconds of wall time; such a node would stay in power-up.
[ $verb = halt ] || sleep 1.2
for node in $nodes; do
    echo "$verb $node"
done >"$state/requests"
