#!/bin/sh
# PID 1 of one machine of the rig, inside mount, UTS and PID namespaces of its own: init.sh STATE NAME head|node
# Everything mounted here is private to that namespace and goes with it.
set -u
state=$1 name=$2 role=$3
dir=$state/hosts/$name

readlink /proc/self/ns/pid >"$dir/ns.new" && mv "$dir/ns.new" "$dir/ns"
hostname "$name"
rm -rf "$dir/run" "$dir/spool" "$dir/ended"
mkdir -p "$dir/run/sshd" "$dir/run/munge" "$dir/spool"
# A /run of its own: munge's usual socket path then belongs to this machine alone.
mount --bind "$dir/run" /run
# Binding single files would not last: when one is replaced outside (useradd does), its bind mount goes here too.
mount -t overlay -o "lowerdir=$state/accounts:/etc" overlay /etc ||
    for file in hosts passwd shadow; do
        mount --bind "$state/accounts/$file" "/etc/$file"
    done
ln -s "$dir/bin" /run/tools
[ -f "$dir/nvml.state" ] && ln -s "$dir/nvml.state" /run/nvml-stand-in.state
[ -d "$dir/dev" ] && mount --bind "$dir/dev" "$state/dev"

SLURM_CONF=$state/etc/slurm.conf
PATH=/run/tools:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HOME=$state/home/root
export SLURM_CONF PATH HOME
cd "$HOME" || exit 1
# A test that needs more mounts or stand-ins on this machine puts them here before it boots.
[ -f "$dir/boot.sh" ] && . "$dir/boot.sh"

daemon() {
    program=$1
    shift
    ("$@" </dev/null >>"$dir/log/$program.log" 2>&1; echo "$program $?" >>"$dir/ended") &
}

daemon sshd /usr/sbin/sshd -D -e -f "$dir/sshd_config"
daemon munged munged --foreground --force --key-file="$state/etc/munge.key" \
    --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid --seed-file=/run/munge/seed
tries=0
while [ ! -S /run/munge/munge.socket.2 ] && [ $tries -lt 500 ]; do
    sleep 0.02
    tries=$((tries + 1))
done
case $role in
head) daemon slurmctld slurmctld -D -f "$SLURM_CONF" ;;
# -b says that the machine was rebooted, which is what a new cloud instance looks like.
node) daemon slurmd slurmd -D -b -f "$SLURM_CONF" ;;
esac

# Reaps orphans, and keeps the machine up when its daemons have ended, as a real one would.
while :; do
    wait
    sleep 5
done
